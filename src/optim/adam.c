#include "optim/adam.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"

/* Consecutive parameters with the same multipliers, with the padding between them. */
typedef struct run {
    int64_t n, at; /* `at` is its place in the moments */
    ki_real *value;
    const ki_real *diff;
    double lr, decay;
} run;

struct ki_adam {
    ki_backend *backend;
    ki_adam_options options; /* without the rules */
    int64_t n, steps;
    ki_real *m, *v; /* device memory */
    ki_optim_clock clock, *device_clock;
    int n_runs;
    run *runs;
    ki_optim_run *given; /* what a step hands to the backend */
};

static bool rule_holds(const ki_optim_rule *rule, const char *name) {
    if (rule->layer) {
        const size_t n = strlen(rule->layer);
        if (strncmp(name, rule->layer, n) != 0 || (name[n] != '.' && name[n] != '\0')) return false;
    }
    if (rule->role) {
        const size_t n = strlen(name), m = strlen(rule->role);
        if (n < m || strcmp(name + n - m, rule->role) != 0) return false;
    }
    return true;
}

static kith_status check_options(const ki_optim_param *params, int n_params, const ki_adam_options *o,
                                 kith_error *err) {
    const struct {
        const char *name;
        double value, most;
    } rows[] = {{"beta1", o->beta1, 1},
                {"beta2", o->beta2, 1},
                {"eps", o->eps, HUGE_VAL},
                {"weight decay", o->decay, HUGE_VAL},
                {"decoupled weight decay", o->decoupled, HUGE_VAL}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!(rows[i].value >= 0 && rows[i].value < rows[i].most))
            return ki_fail(err, KITH_EINVAL, "%s is %g; wanted at least 0 and less than %g", rows[i].name,
                           rows[i].value, rows[i].most);
    }
    for (int i = 0; i < o->n_rules; i++) {
        const ki_optim_rule *rule = &o->rules[i];
        if (!(rule->lr >= 0 && rule->decay >= 0) || isinf(rule->lr) || isinf(rule->decay))
            return ki_fail(err, KITH_EINVAL, "multipliers of %s are %g and %g; wanted at least 0",
                           rule->layer ? rule->layer : "all", rule->lr, rule->decay);
        int n_held = 0;
        for (int k = 0; k < n_params; k++) n_held += rule_holds(rule, params[k].name);
        if (n_held == 0)
            return ki_fail(err, KITH_ENOTFOUND, "no parameter is called %s%s",
                           rule->layer ? rule->layer : "…", rule->role ? rule->role : "");
    }
    return KITH_OK;
}

enum { MOST_PADDING = KI_ALIGN / sizeof(ki_real) };

/* Values between the end of one parameter and the start of the next, when both its arrays have the
 * same few there: padding, that is. Negative when they do not. */
static int64_t padding_between(const ki_optim_param *a, const ki_optim_param *b) {
    const uintptr_t value_end = (uintptr_t)(a->value + a->n), diff_end = (uintptr_t)(a->diff + a->n);
    const uintptr_t value = (uintptr_t)b->value, diff = (uintptr_t)b->diff;
    if (value < value_end || diff < diff_end || value - value_end != diff - diff_end) return -1;
    const size_t n = (value - value_end) / sizeof(ki_real);
    return n < MOST_PADDING ? (int64_t)n : -1;
}

static void multipliers(const ki_adam_options *options, const char *name, double *ret_lr, double *ret_decay) {
    *ret_lr = *ret_decay = 1;
    for (int i = 0; i < options->n_rules; i++) {
        if (!rule_holds(&options->rules[i], name)) continue;
        *ret_lr *= options->rules[i].lr;
        *ret_decay *= options->rules[i].decay;
    }
}

/* Fill adam->runs and adam->n. */
static void make_runs(ki_adam *adam, const ki_optim_param *params, int n_params,
                      const ki_adam_options *options) {
    for (int i = 0; i < n_params; i++) {
        double lr, decay;
        multipliers(options, params[i].name, &lr, &decay);
        run *last = i > 0 ? &adam->runs[adam->n_runs - 1] : NULL;
        const int64_t padding = i > 0 ? padding_between(&params[i - 1], &params[i]) : -1;
        if (padding >= 0 && last->lr == lr && last->decay == decay) {
            last->n += padding + params[i].n;
            adam->n += padding + params[i].n;
            continue;
        }
        adam->runs[adam->n_runs++] = (run){.n = params[i].n,
                                           .at = adam->n,
                                           .value = params[i].value,
                                           .diff = params[i].diff,
                                           .lr = lr,
                                           .decay = decay};
        adam->n += params[i].n;
    }
}

static kith_status alloc_zeroed(ki_backend *backend, int64_t n, ki_real **ret, kith_error *err) {
    void *ptr = NULL;
    const size_t bytes = (size_t)n * sizeof(ki_real);
    KI_TRY(backend->type->alloc(backend, bytes, &ptr, err));
    *ret = ptr;
    return backend->type->zero(backend, ptr, bytes, err);
}

kith_status ki_adam_new(ki_backend *backend, const ki_optim_param *params, int n_params,
                        const ki_adam_options *options, ki_adam **ret_adam, kith_error *err) {
    KI_TRY(check_options(params, n_params, options, err));
    kith_status status;
    ki_adam *adam = NULL;
    KI_CHECK(ki_zalloc_or(&adam, 1, sizeof *adam, "the optimizer", err));
    adam->backend = backend;
    adam->options = *options;
    adam->options.rules = NULL;
    if (adam->options.beta1 == 0) adam->options.beta1 = 0.9;
    if (adam->options.beta2 == 0) adam->options.beta2 = 0.999;
    if (adam->options.eps == 0) adam->options.eps = 1e-8;
    KI_CHECK(ki_zalloc_or(&adam->runs, (size_t)n_params, sizeof *adam->runs, "the optimizer's groups", err));
    KI_CHECK(
        ki_zalloc_or(&adam->given, (size_t)n_params, sizeof *adam->given, "the optimizer's groups", err));
    make_runs(adam, params, n_params, options);
    void *clock = NULL;
    KI_CHECK(backend->type->alloc(backend, sizeof(ki_optim_clock), &clock, err));
    adam->device_clock = clock;
    KI_CHECK(alloc_zeroed(backend, adam->n, &adam->m, err));
    KI_CHECK(alloc_zeroed(backend, adam->n, &adam->v, err));
    *ret_adam = adam;
    adam = NULL;
done:
    ki_adam_free(adam);
    return status;
}

void ki_adam_free(ki_adam *adam) {
    if (!adam) return;
    if (adam->m) adam->backend->type->free(adam->backend, adam->m);
    if (adam->v) adam->backend->type->free(adam->backend, adam->v);
    if (adam->device_clock) adam->backend->type->free(adam->backend, adam->device_clock);
    ki_free(adam->runs);
    ki_free(adam->given);
    ki_free(adam);
}

kith_status ki_adam_update(ki_adam *adam, double lr, kith_error *err) {
    const ki_adam_options *o = &adam->options;
    const ki_backend_type *type = adam->backend->type;
    adam->steps++;
    adam->clock = (ki_optim_clock){.lr = lr, .t = adam->steps};
    KI_TRY(type->upload(adam->backend, adam->device_clock, &adam->clock, sizeof adam->clock, err));
    int n = 0;
    for (int i = 0; i < adam->n_runs; i++) {
        const run *r = &adam->runs[i];
        if (r->lr == 0 || r->n == 0) continue;
        adam->given[n++] = (ki_optim_run){.n = r->n,
                                          .value = r->value,
                                          .diff = r->diff,
                                          .m = adam->m + r->at,
                                          .v = adam->v + r->at,
                                          .lr = r->lr,
                                          .decay = o->decay * r->decay,
                                          .decoupled = o->decoupled * r->decay};
    }
    return type->optim(adam->backend,
                       &(ki_optim_step){.kind = KI_OPTIM_ADAM,
                                        .beta1 = o->beta1,
                                        .beta2 = o->beta2,
                                        .eps = o->eps,
                                        .diff_scale = 1,
                                        .clock = adam->device_clock,
                                        .n_runs = n,
                                        .runs = adam->given},
                       err);
}

int64_t ki_adam_steps(const ki_adam *adam) { return adam->steps; }
int64_t ki_adam_moments_n(const ki_adam *adam) { return adam->n; }
int ki_adam_n_runs(const ki_adam *adam) { return adam->n_runs; }

kith_status ki_adam_get(const ki_adam *adam, ki_real *ret_m, ki_real *ret_v, kith_error *err) {
    const size_t bytes = (size_t)adam->n * sizeof(ki_real);
    KI_TRY(adam->backend->type->download(adam->backend, adam->m, ret_m, bytes, err));
    KI_TRY(adam->backend->type->download(adam->backend, adam->v, ret_v, bytes, err));
    return adam->backend->type->sync(adam->backend, err);
}

kith_status ki_adam_set(ki_adam *adam, int64_t steps, const ki_real *m, const ki_real *v, kith_error *err) {
    const size_t bytes = (size_t)adam->n * sizeof(ki_real);
    KI_TRY(adam->backend->type->upload(adam->backend, adam->m, m, bytes, err));
    KI_TRY(adam->backend->type->upload(adam->backend, adam->v, v, bytes, err));
    KI_TRY(adam->backend->type->sync(adam->backend, err));
    adam->steps = steps;
    return KITH_OK;
}
