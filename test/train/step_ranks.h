/* A whole training step over ranks beside one process: a small network with batch norms and dropout, taps, objective, gradients
 * of the network. For tests in float and in double; included by one test program each. */
#ifndef KITH_TEST_TRAIN_STEP_RANKS_H
#define KITH_TEST_TRAIN_STEP_RANKS_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "base/rng.h"
#include "io/yaml.h"
#include "nn/plan.h"
#include "objective/objective.h"
#include "support/op_check.h"
#include "support/small_net.h"
#include "support/thread_ranks.h"

enum {
    STEP_MB = 10,
    STEP_INPUT = SMALL_NET_C * SMALL_NET_H * SMALL_NET_W,
    STEP_DIM = 7,
    STEP_POOLED = 8,
    STEP_MOST = 1 << 15,
    STEP_PASSES = 2, /* the second shows that running statistics and the memory are right after the first */
};

static const char *const step_taps[] = {"map", "pooled", "embedding"};
static const ki_tap step_tap[] = {KI_TAP_MAP, KI_TAP_POOLED, KI_TAP_EMBEDDING};

/* What a step gave: the network's gradients and running statistics, and the value. */
typedef struct step_found {
    kith_status status;
    kith_error err;
    double total;
    ki_real *diff, *values;
    int64_t n_diff, n_values;
} step_found;

typedef struct step_case {
    const char *backend, *objective;
    bool frozen_bn;
    const ki_real *input; /* [STEP_MB, STEP_INPUT] */
    const int32_t *label;
    step_found found[THREAD_RANKS_MOST];
} step_case;

typedef struct step_rank {
    ki_comm *comm;
    ki_device_comm *device_comm; /* of a device */
    ki_backend *backend;
    ki_graph *graph;
    ki_params *params;
    ki_plan *plan;
    ki_arena arena;
    ki_objective *objective;
    ki_real *tap[3];
} step_rank;

static inline kith_status step_make(const step_case *c, step_rank *s, int64_t n, kith_error *err) {
    ki_value *root = NULL;
    const ki_sizes sizes = {.n_classes = 4, .embedding = STEP_DIM, .pooled = STEP_POOLED, .map = 8};
    KI_TRY(ki_backend_open(c->backend, NULL, &s->backend, err));
    KI_TRY((s->backend->type->is_host ? ki_direct_open : ki_staged_open)(s->backend, s->comm, &s->device_comm,
                                                                         err));
    KI_TRY(ki_graph_new(&s->graph, err));
    small_net_build(s->graph, true);
    KI_TRY(ki_params_new(s->graph, s->backend, &s->params, err));
    KI_TRY(ki_params_init(s->params, 5, err));
    ki_plan_options options = {.mb = n,
                               .mode = KI_TRAIN,
                               .frozen_bn = c->frozen_bn,
                               .seed = 9,

                               .device_comm = s->device_comm};
    for (int i = 0; i < 3; i++) {
        options.taps[i] = options.grad_taps[i] = step_taps[i];
        s->tap[i] = malloc(STEP_MOST * sizeof *s->tap[i]);
    }
    KI_TRY(ki_plan_new(s->graph, s->params, s->backend, &options, &s->plan, err));
    KI_TRY(ki_yaml_parse(c->objective, strlen(c->objective), "test", &s->arena, &root, err));
    return ki_objective_new(root, &sizes, 7, &s->objective, err);
}

static inline kith_status step_pass(const step_case *c, step_rank *s, int64_t first, int64_t n, uint64_t step,
                                    double *ret_total, kith_error *err) {
    ki_batch batch = {.m = n, .label = c->label + first, .step = step, .comm = s->comm};
    ki_result result;
    ki_plan_set_step(s->plan, step);
    ki_plan_set_first(s->plan, first);
    KI_TRY(ki_plan_set_input(s->plan, c->input + first * STEP_INPUT, err));
    KI_TRY(ki_plan_forward(s->plan, err));
    for (int i = 0; i < 3; i++) {
        ki_shape shape;
        KI_TRY(ki_plan_tap_shape(s->plan, step_taps[i], &shape, err));
        KI_TRY(ki_plan_read(s->plan, step_taps[i], s->tap[i], err));
        ki_tap_data *data = &batch.tap[step_tap[i]];
        *data = (ki_tap_data){.data = s->tap[i], .rows = n, .cols = ki_shape_count(&shape) / n};
        if (i == 0) data->c = shape.dim[1], data->hw = data->cols / data->c;
    }
    KI_TRY(ki_objective_evaluate(s->objective, &batch, &result, err));
    for (int i = 0; i < 3; i++) {
        if (result.diff[step_tap[i]])
            KI_TRY(ki_plan_set_grad(s->plan, step_taps[i], result.diff[step_tap[i]], err));
    }
    *ret_total = result.total;
    return ki_plan_backward(s->plan, err);
}

static inline kith_status step_run(const step_case *c, step_rank *s, step_found *found, kith_error *err) {
    int64_t first = 0, n = 0;
    ki_comm_own(s->comm, STEP_MB, &first, &n);
    KI_TRY(step_make(c, s, n, err));
    for (uint64_t step = 0; step < STEP_PASSES; step++) {
        KI_TRY(ki_params_zero_diffs(s->params, err));
        KI_TRY(step_pass(c, s, first, n, step, &found->total, err));
    }
    KI_TRY(s->backend->type->memory.sync(s->backend, err)); /* an emulated device's memory is the host's */
    found->n_diff = ki_params_trained_n(s->params);
    KI_TRY(ki_comm_sum(s->comm, ki_params_diffs(s->params), found->n_diff, err));
    found->diff = malloc((size_t)found->n_diff * sizeof *found->diff);
    memcpy(found->diff, ki_params_diffs(s->params), (size_t)found->n_diff * sizeof *found->diff);
    found->values = malloc(STEP_MOST * sizeof *found->values);
    for (int i = 0; i < ki_params_count(s->params); i++) {
        const ki_param *p = ki_params_at(s->params, i);
        if (p->trained) continue;
        KI_TRY(ki_params_get(s->params, p, found->values + found->n_values, err));
        found->n_values += p->n;
    }
    return KITH_OK;
}

static inline void step_rank_main(ki_comm *comm, void *user) {
    step_case *c = user;
    step_found *found = &c->found[comm->rank];
    step_rank s = {.comm = comm};
    ki_threads_set(1);
    found->status = step_run(c, &s, found, &found->err);
    ki_objective_free(s.objective);
    ki_arena_release(&s.arena);
    ki_plan_free(s.plan);
    ki_params_free(s.params);
    ki_graph_free(s.graph);
    ki_device_comm_close(s.device_comm);
    ki_backend_close(s.backend);
    for (int i = 0; i < 3; i++) free(s.tap[i]);
}

static inline void step_near(const char *what, int rank, int size, const ki_real *found,
                             const ki_real *wanted, int64_t n, double tolerance) {
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs((double)wanted[i]));
    for (int64_t i = 0; i < n; i++) {
        if (!(fabs((double)found[i] - (double)wanted[i]) <= tolerance * most))
            fail_msg("%s, rank %d of %d: number %lld is %.17g; one process has %.17g (largest %g)", what,
                     rank, size, (long long)i, (double)found[i], (double)wanted[i], most);
    }
}

static inline void step_release(step_case *c) {
    for (int r = 0; r < THREAD_RANKS_MOST; r++) {
        free(c->found[r].diff);
        free(c->found[r].values);
        c->found[r] = (step_found){0};
    }
}

static inline void step_check(const char *backend, const char *objective, bool frozen_bn, double tolerance) {
    static ki_real input[STEP_MB * STEP_INPUT];
    static int32_t label[STEP_MB];
    ki_rng rng = ki_rng_at(3, KI_RNG_TEST, 0, 0);
    for (size_t i = 0; i < N_ROWS(input); i++) input[i] = (ki_real)ki_rng_normal(&rng);
    for (int i = 0; i < STEP_MB; i++) label[i] = i / 3;
    step_case one = {
        .backend = backend, .objective = objective, .frozen_bn = frozen_bn, .input = input, .label = label};
    thread_ranks_run(1, step_rank_main, &one);
    assert_ok(one.found[0].status, &one.found[0].err);
    for (int size = 2; size <= 4; size++) {
        step_case c = {.backend = backend,
                       .objective = objective,
                       .frozen_bn = frozen_bn,
                       .input = input,
                       .label = label};
        thread_ranks_run(size, step_rank_main, &c);
        for (int r = 0; r < size; r++) {
            const step_found *f = &c.found[r], *w = &one.found[0];
            if (f->status != KITH_OK) fail_msg("%s, rank %d of %d: %s", objective, r, size, f->err.message);
            if (!(fabs(f->total - w->total) <= tolerance * fmax(1, fabs(w->total))))
                fail_msg("%s, rank %d of %d: %.17g; one process has %.17g", objective, r, size, f->total,
                         w->total);
            step_near(objective, r, size, f->diff, w->diff, w->n_diff, tolerance);
            step_near("running statistics", r, size, f->values, w->values, w->n_values, tolerance);
            if (memcmp(f->diff, c.found[0].diff, (size_t)w->n_diff * sizeof *f->diff) != 0 ||
                memcmp(f->values, c.found[0].values, (size_t)w->n_values * sizeof *f->values) != 0)
                fail_msg("%s: ranks 0 and %d of %d have other bits", objective, r, size);
        }
        step_release(&c);
    }
    step_release(&one);
}

/* Losses of every kind, and terms at every tap. */
static const char *const step_objectives[] = {
    "{loss: binomial}",
    "{loss: amsoftmax, regularizers: [{name: density, weight: 0.3}]}",
    "{loss: triplet, miner: semihard, memory: {size: 24, warmup: 0}}",
    "{loss: contrastive, regularizers: [{name: horde, orders: 3, dimension: 12, embedding: 5}]}",
    "{loss: normsoftmax, regularizers: [{name: horde, orders: 3, dimension: 9, embedding: 0, weight: 0.5}]}",
    "{loss: proxy_nca, regularizers: [{name: joint_mmd}, {name: energy_confusion, weight: 0.1}]}",
};

static inline void step_check_all(const char *backend, double tolerance) {
    for (size_t i = 0; i < N_ROWS(step_objectives); i++) {
        step_check(backend, step_objectives[i], false, tolerance);
        step_check(backend, step_objectives[i], true, tolerance);
    }
}

#endif
