/* Optimizers: runs of parameters, the clock, the backend's step, saved states. */
#include "optim/optim.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "optim/groups.h"

/* One array of a checkpoint: a parameter's part of the moments. */
typedef struct state {
    const char *name;
    ki_real *value; /* backend memory */
    int64_t n;
} state;

struct ki_optim {
    ki_backend *backend;
    ki_arena arena;     /* names */
    ki_optim_step step; /* as given to the backend each time */
    ki_optim_run *runs;
    ki_optim_group *group; /* of each run */
    bool *is_part;         /* each run */
    int64_t n_moments;     /* of each kind, padding included */
    ki_real *m, *v;        /* backend memory; NULL where the method has none */
    ki_optim_clock clock, *device_clock;
    double *device_norms, *norms; /* [n_runs]: sums of squares; the second is for reading */
    int n_states;
    state *states;
};

enum { ALIGN = KI_ALIGN / sizeof(ki_real) };

/* How many values are between the end of one parameter and the start of the next, if this is padding: the
 * same small number in both arrays. Negative otherwise. */
static int64_t padding_between(const ki_optim_param *a, const ki_optim_param *b) {
    const uintptr_t value_end = (uintptr_t)(a->value + a->n), diff_end = (uintptr_t)(a->diff + a->n);
    const uintptr_t value = (uintptr_t)b->value, diff = (uintptr_t)b->diff;
    if (value < value_end || diff < diff_end || value - value_end != diff - diff_end) return -1;
    const size_t n = (value - value_end) / sizeof(ki_real);
    return n < ALIGN ? (int64_t)n : -1;
}

static bool same_numbers(const ki_optim_run *a, const ki_optim_run *b) {
    return a->lr == b->lr && a->decay == b->decay && a->decoupled == b->decoupled && a->start == b->start;
}

/* Fill runs, groups and sizes; ret_at[i] is where the moments of parameter i begin; -1: it has none. */
static void make_runs(ki_optim *optim, const ki_optim_param *params, int n_params,
                      const ki_optim_settings *settings, int64_t *ret_at) {
    int n = 0, before = -1; /* `before`: the parameter at the end of the last run */
    for (int i = 0; i < n_params; i++) {
        const ki_optim_param *p = &params[i];
        const ki_optim_group group = ki_optim_group_of(p->name, p->is_objective);
        double lr, decay;
        ki_optim_multipliers(settings, p, &lr, &decay);
        decay *= settings->weight_decay;
        ret_at[i] = -1;
        if (lr == 0 || p->n == 0) continue;
        const ki_optim_run run = {.n = p->n,
                                  .value = p->value,
                                  .diff = p->diff,
                                  .lr = lr,
                                  .decay = settings->method->decouples ? 0 : decay,
                                  .decoupled = settings->method->decouples ? decay : 0,
                                  .start = group == KI_OPTIM_BACKBONE ? settings->schedule.head_only : 0};
        const int64_t padding = before >= 0 ? padding_between(&params[before], p) : -1;
        if (padding >= 0 && optim->group[n - 1] == group && optim->is_part[n - 1] == p->is_part &&
            same_numbers(&optim->runs[n - 1], &run)) {
            optim->runs[n - 1].n += padding + p->n;
            optim->n_moments += padding;
        } else {
            optim->n_moments = (optim->n_moments + ALIGN - 1) / ALIGN * ALIGN;
            optim->group[n] = group;
            optim->is_part[n] = p->is_part;
            optim->runs[n++] = run;
        }
        ret_at[i] = optim->n_moments;
        optim->n_moments += p->n;
        before = i;
    }
    optim->step.n_runs = n;
    optim->step.runs = optim->runs;
}

static kith_status alloc_zeroed(ki_backend *backend, size_t bytes, void *ret, kith_error *err) {
    void *ptr = NULL;
    KI_TRY(backend->type->memory.alloc(backend, bytes, &ptr, err));
    memcpy(ret, &ptr, sizeof ptr);
    return backend->type->memory.zero(backend, ptr, bytes, err);
}

static kith_status add_state(ki_optim *optim, const char *param, const char *suffix, ki_real *value,
                             int64_t n, kith_error *err) {
    const char *name = ki_arena_printf(&optim->arena, "%s%s", param, suffix);
    if (!name) return ki_fail_memory(err, strlen(param), "a name");
    optim->states[optim->n_states++] = (state){name, value, n};
    return KITH_OK;
}

/* Moments in backend memory, a place for each run, a name for each parameter's part. */
static kith_status make_moments(ki_optim *optim, const ki_optim_method *method, const ki_optim_param *params,
                                int n_params, const int64_t *at, kith_error *err) {
    const bool has_m = method->has_m && optim->step.beta1 > 0;
    const size_t bytes = (size_t)optim->n_moments * sizeof(ki_real);
    if (has_m) KI_TRY(alloc_zeroed(optim->backend, bytes, &optim->m, err));
    if (method->has_v) KI_TRY(alloc_zeroed(optim->backend, bytes, &optim->v, err));
    int run = -1;
    for (int i = 0; i < n_params; i++) {
        if (at[i] < 0) continue;
        if (run + 1 < optim->step.n_runs && optim->runs[run + 1].value == params[i].value) {
            run++;
            if (has_m) optim->runs[run].m = optim->m + at[i];
            if (method->has_v) optim->runs[run].v = optim->v + at[i];
        }
        if (has_m) KI_TRY(add_state(optim, params[i].name, ".m", optim->m + at[i], params[i].n, err));
        if (method->has_v) KI_TRY(add_state(optim, params[i].name, ".v", optim->v + at[i], params[i].n, err));
    }
    return KITH_OK;
}

static kith_status build(ki_optim *optim, const ki_optim_param *params, int n_params,
                         const ki_optim_settings *settings, int64_t *at, kith_error *err) {
    const size_t n = (size_t)n_params;
    KI_TRY(settings->method->complete(settings, &optim->step, err));
    KI_TRY(ki_optim_check_rules(settings, params, n_params, err));
    KI_TRY(ki_zalloc_or(&optim->runs, n, sizeof *optim->runs, "the optimizer's runs", err));
    KI_TRY(ki_zalloc_or(&optim->group, n, sizeof *optim->group, "the optimizer's runs", err));
    KI_TRY(ki_zalloc_or(&optim->is_part, n, sizeof *optim->is_part, "the optimizer's runs", err));
    KI_TRY(ki_zalloc_or(&optim->norms, n, sizeof *optim->norms, "the optimizer's norms", err));
    KI_TRY(ki_zalloc_or(&optim->states, 2 * n, sizeof *optim->states, "the optimizer's names", err));
    make_runs(optim, params, n_params, settings, at);
    KI_TRY(make_moments(optim, settings->method, params, n_params, at, err));
    KI_TRY(alloc_zeroed(optim->backend, sizeof(ki_optim_clock), &optim->device_clock, err));
    KI_TRY(alloc_zeroed(optim->backend, (n + 1) * sizeof(double), &optim->device_norms, err));
    optim->step.diff_scale = 1 / (double)settings->accumulate;
    optim->step.max_norm = settings->clip;
    optim->step.norm_sq = optim->device_norms;
    optim->step.clock = optim->device_clock;
    return optim->backend->type->memory.sync(optim->backend, err);
}

kith_status ki_optim_new(ki_backend *backend, const ki_optim_param *params, int n_params,
                         const ki_optim_settings *settings, ki_optim **ret_optim, kith_error *err) {
    kith_status status;
    ki_optim *optim = NULL;
    int64_t *at = NULL;
    KI_CHECK(ki_zalloc_or(&optim, 1, sizeof *optim, "the optimizer", err));
    optim->backend = backend;
    KI_CHECK(ki_alloc_or(&at, (size_t)n_params, sizeof *at, "the optimizer's places", err));
    KI_CHECK(build(optim, params, n_params, settings, at, err));
    *ret_optim = optim;
    optim = NULL;
done:
    ki_free(at);
    ki_optim_free(optim);
    return status;
}

void ki_optim_free(ki_optim *optim) {
    if (!optim) return;
    void *const device[] = {optim->m, optim->v, optim->device_clock, optim->device_norms};
    for (size_t i = 0; i < sizeof device / sizeof device[0]; i++) {
        if (device[i]) optim->backend->type->memory.free(optim->backend, device[i]);
    }
    ki_arena_release(&optim->arena);
    ki_free(optim->runs);
    ki_free(optim->group);
    ki_free(optim->is_part);
    ki_free(optim->norms);
    ki_free(optim->states);
    ki_free(optim);
}

kith_status ki_optim_tick(ki_optim *optim, double lr, kith_error *err) {
    optim->clock.lr = lr;
    optim->clock.t++;
    return optim->backend->type->memory.upload(optim->backend, optim->device_clock, &optim->clock,
                                               sizeof optim->clock, err);
}

kith_status ki_optim_measure(ki_optim *optim, kith_error *err) {
    return optim->backend->type->optimizers.sum_squares(optim->backend, optim->step.n_runs, optim->runs,
                                                        optim->device_norms, err);
}

kith_status ki_optim_apply(ki_optim *optim, kith_error *err) {
    return optim->backend->type->optimizers.update(optim->backend, &optim->step, err);
}

kith_status ki_optim_launch(ki_optim *optim, kith_error *err) {
    KI_TRY(ki_optim_measure(optim, err));
    return ki_optim_apply(optim, err);
}

bool ki_optim_is_part(const ki_optim *optim, int run) { return optim->is_part[run]; }

kith_status ki_optim_sums_get(const ki_optim *optim, double *sums, kith_error *err) {
    KI_TRY(optim->backend->type->memory.download(optim->backend, optim->device_norms, sums,
                                                 (size_t)optim->step.n_runs * sizeof *sums, err));
    return optim->backend->type->memory.sync(optim->backend, err);
}

kith_status ki_optim_sums_set(ki_optim *optim, const double *sums, kith_error *err) {
    return optim->backend->type->memory.upload(optim->backend, optim->device_norms, sums,
                                               (size_t)optim->step.n_runs * sizeof *sums, err);
}

kith_status ki_optim_update(ki_optim *optim, double lr, kith_error *err) {
    KI_TRY(ki_optim_tick(optim, lr, err));
    return ki_optim_launch(optim, err);
}

const double *ki_optim_sums(const ki_optim *optim) { return optim->device_norms; }

void ki_optim_norms_of(const ki_optim *optim, const double *sums, double ret_norm[KI_OPTIM_N_GROUPS]) {
    double sum[KI_OPTIM_N_GROUPS] = {0};
    for (int i = 0; i < optim->step.n_runs; i++) sum[optim->group[i]] += sums[i];
    for (int g = 0; g < KI_OPTIM_N_GROUPS; g++) ret_norm[g] = optim->step.diff_scale * sqrt(sum[g]);
}

kith_status ki_optim_norms(const ki_optim *optim, double ret_norm[KI_OPTIM_N_GROUPS], kith_error *err) {
    KI_TRY(ki_optim_sums_get(optim, optim->norms, err));
    ki_optim_norms_of(optim, optim->norms, ret_norm);
    return KITH_OK;
}

int64_t ki_optim_steps(const ki_optim *optim) { return optim->clock.t; }
void ki_optim_steps_set(ki_optim *optim, int64_t steps) { optim->clock.t = steps; }
int ki_optim_n_runs(const ki_optim *optim) { return optim->step.n_runs; }
int ki_optim_n_states(const ki_optim *optim) { return optim->n_states; }
const char *ki_optim_state_name(const ki_optim *optim, int i) { return optim->states[i].name; }
int64_t ki_optim_state_count(const ki_optim *optim, int i) { return optim->states[i].n; }

kith_status ki_optim_state_get(const ki_optim *optim, int i, ki_real *ret_value, kith_error *err) {
    const state *s = &optim->states[i];
    KI_TRY(optim->backend->type->memory.download(optim->backend, s->value, ret_value,
                                                 (size_t)s->n * sizeof(ki_real), err));
    return optim->backend->type->memory.sync(optim->backend, err);
}

kith_status ki_optim_state_set(ki_optim *optim, int i, const ki_real *value, kith_error *err) {
    const state *s = &optim->states[i];
    KI_TRY(optim->backend->type->memory.upload(optim->backend, s->value, value,
                                               (size_t)s->n * sizeof(ki_real), err));
    return optim->backend->type->memory.sync(optim->backend, err);
}
