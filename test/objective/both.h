/* One objective on one batch, on the host and through the engine of the cuda backend. Included by one test
 * program each; everything is static. */
#ifndef KITH_TEST_OBJECTIVE_BOTH_H
#define KITH_TEST_OBJECTIVE_BOTH_H

#include "base/rng.h"
#include "device/backend.h"
#include "objective/cases.h"
#include "objective/engine.h"

/* A batch of any shape with every tap; labels as the test says. */
typedef struct device_batch {
    int64_t m, dim, c, h, w; /* pooled features and map have c channels */
    ki_batch batch;
    int32_t *label;
    ki_real *tap[KI_N_TAPS];
    ki_sizes sizes;
    int64_t n_unlabelled; /* items at the end whose label is -1 */
    int64_t pitch;        /* of the map on the device when it is a slice of something wider; else 0 */
} device_batch;

enum { DEVICE_CLASSES = 40 };

static inline ki_real *device_numbers(ki_rng *rng, int64_t n, double least) {
    ki_real *v = ki_alloc((size_t)n, sizeof *v);
    for (int64_t i = 0; i < n; i++) v[i] = (ki_real)fmax(least, ki_rng_normal(rng));
    return v;
}

/* label_of(i) is the class of item i. */
static inline device_batch device_batch_new(int64_t m, int64_t dim, int64_t c, int64_t h, int64_t w,
                                            int32_t (*label_of)(int64_t i)) {
    device_batch b = {.m = m, .dim = dim, .c = c, .h = h, .w = w};
    ki_rng rng = ki_rng_at(11, KI_RNG_TEST, (uint32_t)m, (uint32_t)dim);
    b.label = ki_alloc((size_t)m, sizeof *b.label);
    for (int64_t i = 0; i < m; i++) b.label[i] = label_of(i);
    b.tap[KI_TAP_EMBEDDING] = device_numbers(&rng, m * dim, -100);
    for (int64_t i = 0; i < m; i++) b.tap[KI_TAP_EMBEDDING][i * dim + (b.label[i] + 1) % dim] += 1;
    for (int64_t i = 0; i < m; i++) b.n_unlabelled += b.label[i] < 0;
    b.tap[KI_TAP_POOLED] = device_numbers(&rng, m * c, 0);
    b.tap[KI_TAP_MAP] = device_numbers(&rng, m * c * h * w, 0);
    b.tap[KI_TAP_WEIGHT] = device_numbers(&rng, dim * c, -100);
    b.tap[KI_TAP_TEACHER] = device_numbers(&rng, m * (c + 2), -100);
    b.tap[KI_TAP_TEACHER + 1] = device_numbers(&rng, m * (c + 5), -100);
    b.sizes = (ki_sizes){
        .n_classes = DEVICE_CLASSES, .embedding = dim, .pooled = c, .map = c, .teacher = {c + 2, c + 5}};
    b.batch = (ki_batch){.m = m, .label = b.label, .step = 3};
    const int64_t cols[KI_N_TAPS] = {
        [KI_TAP_MAP] = c * h * w, [KI_TAP_POOLED] = c,      [KI_TAP_EMBEDDING] = dim,
        [KI_TAP_WEIGHT] = c,      [KI_TAP_TEACHER] = c + 2, [KI_TAP_TEACHER + 1] = c + 5};
    for (int tap = 0; tap < KI_N_TAPS; tap++) {
        if (b.tap[tap])
            b.batch.tap[tap] =
                (ki_tap_data){.data = b.tap[tap], .rows = tap == KI_TAP_WEIGHT ? dim : m, .cols = cols[tap]};
    }
    b.batch.tap[KI_TAP_MAP].c = c;
    b.batch.tap[KI_TAP_MAP].hw = h * w;
    return b;
}

static inline void device_batch_free(device_batch *b) {
    ki_free(b->label);
    for (int tap = 0; tap < KI_N_TAPS; tap++) ki_free(b->tap[tap]);
}

/* The engine of one objective, with its device memory. */
typedef struct device_run {
    ki_backend *backend;
    const device_batch *batch;
    ki_objective *objective;
    ki_engine *engine;
    ki_engine_batch in;
    void *memory[3 + 2 * KI_N_TAPS];
    int n_memory;
} device_run;

static inline void *device_take(device_run *run, size_t bytes) {
    void *ptr = NULL;
    kith_error err = {0};
    assert_ok(run->backend->type->memory.alloc(run->backend, bytes, &ptr, &err), &err);
    assert_true(run->n_memory < (int)N_ROWS(run->memory));
    run->memory[run->n_memory++] = ptr;
    return ptr;
}

static inline void device_upload(device_run *run, const void *dst, const void *src, size_t bytes) {
    kith_error err = {0};
    assert_ok(run->backend->type->memory.upload(run->backend, (void *)(uintptr_t)dst, src, bytes, &err),
              &err);
    assert_ok(run->backend->type->memory.sync(run->backend, &err), &err);
}

static inline ki_edge device_edge(const device_run *run, ki_tap tap) {
    const device_batch *b = run->batch;
    const ki_shape shape = tap == KI_TAP_MAP ? KI_SHAPE4(b->m, b->c, b->h, b->w)
                                             : KI_SHAPE2(b->batch.tap[tap].rows, b->batch.tap[tap].cols);
    ki_edge edge = {.shape = shape, .layout = tap == KI_TAP_MAP ? KI_NATIVE : KI_PLAIN};
    edge.bytes = run->backend->type->memory.edge_bytes(run->backend, &edge.shape, edge.layout);
    if (tap == KI_TAP_MAP) edge.pitch = b->pitch;
    return edge;
}

/* Everything but the engine itself. */
static inline void device_run_prepare(device_run *run, ki_backend *backend, ki_objective *objective,
                                      const device_batch *b) {
    kith_error err = {0};
    *run = (device_run){.backend = backend, .batch = b, .objective = objective};
    run->in.n_unlabelled = b->n_unlabelled;
    run->in.label = device_take(run, (size_t)b->m * sizeof *run->in.label);
    run->in.step = device_take(run, sizeof *run->in.step);
    device_upload(run, run->in.label, b->label, (size_t)b->m * sizeof *b->label);
    device_upload(run, run->in.step, &b->batch.step, sizeof b->batch.step);
    for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) {
        if (tap == KI_TAP_LOGITS || !(ki_objective_taps(objective) & KI_TAP_BIT(tap))) continue;
        const ki_edge edge = device_edge(run, tap);
        const size_t bytes = edge.pitch ? edge.bytes / (size_t)b->c * (size_t)edge.pitch : edge.bytes;
        void *data = device_take(run, bytes);
        run->in.tap_edge[tap] = edge;
        if (!ki_tap_is_teacher(tap)) run->in.diff[tap] = device_take(run, bytes);
        assert_ok(backend->type->memory.import(backend, &edge, data, b->tap[tap], &err), &err);
        run->in.tap[tap] = data;
        if (tap == KI_TAP_WEIGHT)
            assert_ok(backend->type->memory.zero(backend, run->in.diff[tap], edge.bytes, &err), &err);
    }
    if (ki_engine_stops(objective))
        run->in.diff_stopped = device_take(run, (size_t)(b->m * b->dim) * sizeof(ki_real));
}

static inline void device_run_open(device_run *run, ki_backend *backend, ki_objective *objective,
                                   const device_batch *b) {
    kith_error err = {0};
    device_run_prepare(run, backend, objective, b);
    assert_non_null(ki_engine_of(backend));
    assert_ok(ki_engine_of(backend)->open(backend, objective, &run->in, b->m, &run->engine, &err), &err);
}

static inline void device_run_close(device_run *run) {
    ki_engine_of(run->backend)->close(run->engine);
    for (int i = 0; i < run->n_memory; i++) run->backend->type->memory.free(run->backend, run->memory[i]);
}

/* A tap's gradient on the host; give back with ki_free. */
static inline ki_real *device_diff(device_run *run, ki_tap tap) {
    kith_error err = {0};
    const ki_edge edge = device_edge(run, tap);
    ki_real *host = ki_alloc((size_t)ki_shape_count(&edge.shape), sizeof *host);
    assert_ok(run->backend->type->memory.export(run->backend, &edge, run->in.diff[tap], host, &err), &err);
    assert_ok(run->backend->type->memory.sync(run->backend, &err), &err);
    return host;
}

static inline ki_real *device_reals(device_run *run, const ki_real *src, int64_t n) {
    kith_error err = {0};
    ki_real *host = ki_alloc((size_t)n, sizeof *host);
    assert_ok(run->backend->type->memory.download(run->backend, src, host, (size_t)n * sizeof *host, &err),
              &err);
    assert_ok(run->backend->type->memory.sync(run->backend, &err), &err);
    return host;
}

static inline void device_same(const char *what, const char *where, const ki_real *found,
                               const ki_real *wanted, int64_t n, double tolerance) {
    const double off = testing_relative_l2(found, wanted, n);
    if (!(off <= tolerance)) {
        int64_t at = 0;
        for (int64_t i = 0; i < n; i++) {
            if (!(fabs((double)found[i] - (double)wanted[i]) <= fabs((double)found[at] - (double)wanted[at])))
                at = i;
        }
        fail_msg("%s: %s differs by %.3g (at most %.3g); [%lld] is %.9g, wanted %.9g", where, what, off,
                 tolerance, (long long)at, (double)found[at], (double)wanted[at]);
    }
}

/* What the engine left behind against the host's evaluation of `host` on the same batch. */
static inline void device_compare(device_run *run, ki_objective *host, const char *where, double tolerance) {
    const ki_engine_type *type = ki_engine_of(run->backend);
    const device_batch *b = run->batch;
    kith_error err = {0};
    ki_result wanted;
    ki_engine_values found;
    ki_objective_clear_diffs(host);
    assert_ok(ki_objective_evaluate(host, &b->batch, &wanted, &err), &err);
    assert_ok(type->read(run->engine, &found, &err), &err);
    assert_int_equal(found.n_terms, wanted.n_terms);
    for (size_t i = 0; i < wanted.n_terms; i++) {
        const double size = fmax(fabs(wanted.term[i].value), 1e-3);
        if (!(fabs(found.term[i].value - wanted.term[i].value) <= tolerance * size))
            fail_msg("%s: %s is %.9g, wanted %.9g", where, wanted.term[i].name, found.term[i].value,
                     wanted.term[i].value);
        if (!(fabs(found.term[i].weight - wanted.term[i].weight) <= 1e-6 * fabs(wanted.term[i].weight)))
            fail_msg("%s: %s has weight %.9g, wanted %.9g", where, wanted.term[i].name, found.term[i].weight,
                     wanted.term[i].weight);
    }
    for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) {
        if (!wanted.diff[tap]) continue;
        ki_real *diff = device_diff(run, tap);
        device_same(ki_tap_name(tap), where, diff, wanted.diff[tap],
                    b->batch.tap[tap].rows * b->batch.tap[tap].cols, tolerance);
        ki_free(diff);
    }
    if (wanted.diff_stopped) {
        ki_real *diff = device_reals(run, run->in.diff_stopped, b->m * b->dim);
        device_same("what stops at the embedding", where, diff, wanted.diff_stopped, b->m * b->dim,
                    tolerance);
        ki_free(diff);
    }
    for (size_t i = 0; ki_objective_param(host, i); i++) {
        const ki_state *param = ki_objective_param(host, i);
        ki_engine_param there;
        assert_true(type->param_at(run->engine, i, &there));
        assert_string_equal(there.name, param->name);
        assert_true((there.diff == NULL) == (param->diff == NULL));
        if (!param->diff) continue;
        ki_real *diff = device_reals(run, there.diff, param->count);
        device_same(param->name, where, diff, param->diff, param->count, tolerance);
        ki_free(diff);
    }
}

/* Queue one evaluation. */
static inline void device_evaluate(device_run *run) {
    const ki_engine_type *type = ki_engine_of(run->backend);
    kith_error err = {0};
    assert_ok(type->clear_diffs(run->engine, &err), &err);
    if (run->in.diff[KI_TAP_WEIGHT])
        assert_ok(run->backend->type->memory.zero(run->backend, run->in.diff[KI_TAP_WEIGHT],
                                                  run->in.tap_edge[KI_TAP_WEIGHT].bytes, &err),
                  &err);
    assert_ok(type->evaluate(run->engine, &err), &err);
}

#endif
