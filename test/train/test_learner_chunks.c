/* Learners that compute a batch in chunks: the gradients of the whole batch, on every kind of network and objective that may be
 * combined; memory; what is refused. */
#include "train/learning.h"

#include <math.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "kith/log.h"

enum { BATCH = 12, MOST_SIDE = 48, STEPS = 3 };

static float images[BATCH * 3 * MOST_SIDE * MOST_SIDE];
static int32_t labels[BATCH];

static void draw_images(void) {
    ki_rng rng = ki_rng_at(6, KI_RNG_TEST, 0, 0);
    for (size_t i = 0; i < N_ROWS(images); i++) images[i] = 2 * ki_rng_float(&rng) - 1;
    for (int i = 0; i < BATCH; i++) labels[i] = i / 2 % CLASSES;
}

/* What is trained; backbone NULL: convnet4. */
typedef struct row {
    const char *backbone, *settings;
    int channels, side, heads; /* 0: 1 */
    const char *objective, *optim;
    ki_learner_settings settings_of;
    double tolerance; /* of the first step; 0: 1e-5 */
} row;

static const char plain_optim[] = "{name: sgd, momentum: 0, steps: 1}";

static setup *make(const row *r, const char *device, int64_t chunk) {
    ki_learner_settings settings = r->settings_of;
    settings.batch = BATCH;
    settings.frozen_bn = true;
    settings.chunk = chunk;
    setup_net.backbone = r->backbone;
    setup_net.settings = r->settings;
    setup_net.side = r->side;
    setup *s = setup_make(op_backend(device, NULL), r->channels, 16, r->heads ? r->heads : 1, r->objective,
                          r->optim ? r->optim : plain_optim, settings);
    setup_net.backbone = NULL;
    return s;
}

static void add(setup *s, int n, uint64_t step) {
    kith_error err;
    const ki_learner_batch batch = {.n = n, .side = s->net.h, .data = images, .label = labels};
    assert_ok(ki_learner_add(s->learner, &batch, step, &err), &err);
}

/* All gradients of the network, one behind the other; to be freed. */
static float *diffs_of(const setup *s, int64_t *ret_n) {
    kith_error err;
    const int64_t n = ki_params_trained_n(s->params);
    float *all = malloc((size_t)n * sizeof *all);
    ki_backend *backend = s->backend;
    assert_ok(backend->type->memory.download(backend, ki_params_diffs(s->params), all,
                                             (size_t)n * sizeof *all, &err),
              &err);
    assert_ok(backend->type->memory.sync(backend, &err), &err);
    *ret_n = n;
    return all;
}

static void near(const char *what, const row *r, int64_t chunk, const float *found, const float *wanted,
                 int64_t n, uint64_t step) {
    const double off = testing_relative_l2(found, wanted, n), first = r->tolerance > 0 ? r->tolerance : 1e-5;
    if (!(off <= first * (double)(step + 1)))
        fail_msg("%s on %s in chunks of %lld: %s is off by %g", r->objective,
                 r->backbone ? r->backbone : "convnet4", (long long)chunk, what, off);
}

/* Steps side by side, of full batches and smaller ones; the gradients of each are compared before they are used. */
static void compare(const row *r, const char *device, int64_t chunk) {
    static const int sizes[STEPS] = {BATCH, BATCH - 2, BATCH};
    setup *whole = make(r, device, 0), *parts = make(r, device, chunk);
    kith_error err;
    for (uint64_t step = 0; step < STEPS; step++) {
        float x[BATCH * DIM * 2], y[BATCH * DIM * 2];
        int64_t n = 0;
        for (int m = 0; m < whole->learner->settings.n_micro; m++) {
            add(whole, sizes[step], step);
            add(parts, sizes[step], step);
        }
        float *a = diffs_of(whole, &n), *b = diffs_of(parts, &n);
        near("the gradient", r, chunk, b, a, n, step);
        assert_ok(ki_learner_embedding(whole->learner, x, &err), &err);
        assert_ok(ki_learner_embedding(parts->learner, y, &err), &err);
        near("the embedding", r, chunk, y, x, sizes[step] * DIM, step);
        free(a);
        free(b);
        update(whole, 1e-3);
        update(parts, 1e-3);
        const ki_learner_values u = read(whole), v = read(parts);
        if (!(fabs(u.total - v.total) <= 1e-5 * (double)(step + 1) * fabs(u.total)))
            fail_msg("%s: the total is %.9g, wanted %.9g", r->objective, v.total, u.total);
        assert_int_equal(v.n_pos, u.n_pos);
        assert_int_equal(v.n_neg, u.n_neg);
    }
    const ki_state *p = NULL, *q = NULL;
    for (size_t i = 0; (p = ki_objective_param(whole->objective, i)); i++) {
        q = ki_objective_param(parts->objective, i);
        if (p->diff) near(p->name, r, chunk, q->value, p->value, p->count, 0);
    }
    setup_release(whole);
    setup_release(parts);
}

/* Of 12: chunks that fit, chunks that leave a rest, one by one, one chunk alone, one larger than the batch. */
static void compare_chunks(const row *r) {
    static const int64_t chunks[] = {4, 5, 1, 12, 64};
    for (size_t i = 0; i < N_ROWS(chunks); i++) compare(r, "cpu", chunks[i]);
}

static void test_convolutions(void **state) {
    (void)state;
    compare_chunks(&(row){.channels = 1, .objective = "{loss: raw, miner: {name: vthm, margin: 0.1}}"});
    compare(&(row){.channels = 1, .objective = "{loss: binomial}"}, "ref", 5);
    /* 57 convolutions, which oneDNN computes in other ways for other sizes of a batch: 1.1e-5 here. On "ref", where an image's numbers do not
     * depend on the batch, it is 5.5e-8, but takes minutes. */
    compare(&(row){.backbone = "googlenet",
                   .settings = "{}",
                   .channels = 3,
                   .side = 48,
                   .objective = "{loss: binomial}",
                   .tolerance = 5e-5},
            "cpu", 5);
}

/* Both forwards of an image leave out the same blocks, those that the whole batch leaves out. */
static void test_drop_path(void **state) {
    (void)state;
    compare_chunks(&(row){.backbone = "vit_t",
                          .settings = "{width: 32, depth: 2, heads: 2, patch: 8, drop_path: 0.5}",
                          .channels = 3,
                          .side = 32,
                          .objective = "{loss: ntxent}"});
}

/* … and drop the same numbers. */
static void test_dropout(void **state) {
    (void)state;
    compare_chunks(&(row){.backbone = "mlp",
                          .settings = "{width: 32, depth: 2, norm: layer, dropout: 0.4}",
                          .channels = 40,
                          .side = 1,
                          .objective = "{loss: binomial}"});
}

static void test_every_tap(void **state) {
    (void)state;
    static const char *const objectives[] = {
        "{loss: amsoftmax, regularizers: [{name: density}]}",
        "{loss: binomial, memory: {size: 20, warmup: 1}, regularizers: [{name: horde, orders: 2, dimension: "
        "32, embedding: 8}]}",
        "{loss: binomial, regularizers: [{name: energy_confusion, weight: 0.1}, {name: row_norm_penalty, "
        "weight: 0.1}]}",
        "{loss: none, regularizers: [{name: energy_confusion}]}",
        "{loss: none, regularizers: [{name: row_norm_penalty}]}",
        "{loss: smooth_ap}",
    };
    for (size_t i = 0; i < N_ROWS(objectives); i++) {
        const row r = {.channels = 1, .objective = objectives[i]};
        compare(&r, "cpu", 5);
        compare(&r, "cpu", 4);
    }
}

static void test_heads_and_micro_batches(void **state) {
    (void)state;
    compare(&(row){.channels = 3,
                   .heads = 2,
                   .objective = "{loss: {name: contrastive, form: horde}, regularizers: [{name: "
                                "head_divergence, weight: 0.5}, {name: horde, orders: 2, dimension: 16, "
                                "embedding: 8, weight: 0.25}]}"},
            "cpu", 5);
    compare(&(row){.channels = 1,
                   .objective = "{loss: binomial}",
                   .optim = "{name: sgd, momentum: 0, steps: 1, accumulate: 2}"},
            "cpu", 5);
}

/* What does not learn needs no gradient. */
static void test_frozen_layers(void **state) {
    (void)state;
    setup_adapt = (ki_adaptation){.freeze = "backbone"};
    compare(&(row){.channels = 1,
                   .objective = "{loss: binomial, regularizers: [{name: horde, orders: 2, "
                                "dimension: 16, embedding: 8}]}"},
            "cpu", 5);
    setup_adapt = (ki_adaptation){.freeze = "bn2"};
    compare(&(row){.channels = 1, .objective = "{loss: binomial}"}, "cpu", 5);
    setup_adapt = (ki_adaptation){0};
}

/* Batches of several sides, each with chunks of its own. */
static void test_sides(void **state) {
    (void)state;
    const row r = {.channels = 1,
                   .objective =
                       "{loss: binomial, regularizers: [{name: horde, orders: 2, dimension: 16, "
                       "embedding: 8}]}",
                   .settings_of = {.sides = {.n = 2, .side = {SIDE, 32}}}};
    setup *whole = make(&r, "cpu", 0), *parts = make(&r, "cpu", 5);
    kith_error err;
    for (uint64_t step = 0; step < 4; step++) {
        int64_t n = 0;
        const ki_learner_batch batch = {
            .n = BATCH, .side = step % 2 ? SIDE : 32, .data = images, .label = labels};
        assert_ok(ki_learner_add(whole->learner, &batch, step, &err), &err);
        assert_ok(ki_learner_add(parts->learner, &batch, step, &err), &err);
        float *a = diffs_of(whole, &n), *b = diffs_of(parts, &n);
        near("the gradient", &r, 5, b, a, n, step);
        free(a);
        free(b);
        update(whole, 1e-3);
        update(parts, 1e-3);
    }
    setup_release(whole);
    setup_release(parts);
}

/* A step that is repeated has the same bits, and so has one that goes on from a saved state. */
static void test_same_bits(void **state) {
    (void)state;
    const row r = {.backbone = "vit_t",
                   .settings = "{width: 32, depth: 2, heads: 2, patch: 8, drop_path: 0.5}",
                   .channels = 3,
                   .side = 32,
                   .objective = "{loss: binomial, memory: {size: 20, warmup: 1}}",
                   .optim = "{lr: 1e-2, steps: 1, ema: 0.9}"};
    setup *a = make(&r, "cpu", 5), *b = make(&r, "cpu", 5), *other = make(&r, "cpu", 5);
    for (uint64_t step = 0; step < 4; step++) {
        if (step == 2) hand_over(a, b);
        add(a, BATCH, step);
        update(a, 1e-2);
        add(other, BATCH, step);
        update(other, 1e-2);
        if (step < 2) continue;
        add(b, BATCH, step);
        update(b, 1e-2);
    }
    assert_same_values(a, other);
    assert_same_values(a, b);
    setup_release(a);
    setup_release(b);
    setup_release(other);
}

/* The bytes that a learner of batches of 12 takes for activations, and all bytes. */
static size_t activations(int64_t chunk) {
    const row r = {.channels = 1, .objective = "{loss: binomial}"};
    ki_plan_stats stats;
    setup *s = make(&r, "cpu", chunk);
    ki_plan_stats_get(ki_learner_plan(s->learner), &stats);
    setup_release(s);
    return stats.activation_bytes;
}

static void test_memory(void **state) {
    (void)state;
    const size_t whole = activations(0), third = activations(4), one = activations(1);
    if (!(3 * third < whole + whole / 8 && 12 * one < 2 * whole))
        fail_msg("activations: %zu bytes, in chunks of 4 %zu, of 1 %zu", whole, third, one);
    const row r = {.channels = 1, .objective = "{loss: binomial}"};
    kith_memory_stats before, after;
    setup *s = make(&r, "cpu", 5);
    for (uint64_t step = 0; step < 4; step++) {
        if (step == 2) kith_memory_stats_get(&before);
        add(s, BATCH, step);
        update(s, 1e-3);
    }
    kith_memory_stats_get(&after);
    assert_int_equal(after.n_allocations - before.n_allocations, 0);
    setup_release(s);
}

/* Whichever allocation fails (every fifth is tried), the error says so and nothing is left behind. */
static void test_no_memory(void **state) {
    (void)state;
    static const char objective[] =
        "{loss: amsoftmax, regularizers: [{name: horde, orders: 2, dimension: 8, embedding: 8}, "
        "{name: energy_confusion}]}";
    ki_backend *backend = op_backend("cpu", NULL);
    kith_status status = KITH_ENOMEM;
    kith_memory_stats before, after;
    for (int64_t n = 0; status != KITH_OK; n += 5) {
        setup s = {.backend = backend};
        kith_error err;
        const ki_learner_batch batch = {.n = 8, .data = images, .label = labels};
        kith_memory_stats_get(&before);
        ki_alloc_fail_after(n);
        status = setup_try(&s, 1, 16, 1, objective, plain_optim,
                           (ki_learner_settings){.batch = 8, .chunk = 3, .frozen_bn = true}, &err);
        if (status == KITH_OK) status = ki_learner_add(s.learner, &batch, 0, &err);
        ki_alloc_fail_after(-1);
        if (status != KITH_OK && status != KITH_ENOMEM)
            fail_msg("without allocation %lld: %s", (long long)n, err.message);
        ki_learner_free(s.learner);
        ki_objective_free(s.objective);
        ki_params_free(s.params);
        ki_net_release(&s.net);
        ki_arena_release(&s.arena);
        kith_memory_stats_get(&after);
        if (n > 0 && after.live_bytes > before.live_bytes)
            fail_msg("without allocation %lld: %lld bytes are left behind", (long long)n,
                     (long long)(after.live_bytes - before.live_bytes));
    }
    ki_backend_close(backend);
}

/* A chunk's own mean and variance are not the batch's. */
static void test_batch_norms(void **state) {
    (void)state;
    static const struct {
        ki_learner_settings settings;
        const char *message;
    } rows[] = {{{.batch = 8, .chunk = 4}, "use the statistics of a batch"},
                {{.batch = 8, .chunk = -1, .frozen_bn = true}, "chunks of -1 images"}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        setup s = {.backend = op_backend("cpu", NULL)};
        kith_error err;
        const kith_status status =
            setup_try(&s, 1, 16, 1, "{loss: binomial}", plain_optim, rows[i].settings, &err);
        assert_int_equal(status, KITH_EINVAL);
        if (!strstr(err.message, rows[i].message)) fail_msg("%s", err.message);
        ki_objective_free(s.objective);
        ki_params_free(s.params);
        ki_net_release(&s.net);
        ki_backend_close(s.backend);
        ki_arena_release(&s.arena);
    }
}

int main(void) {
    draw_images();
    ki_threads_set(1); /* many small steps: threads would wait for each other most of the time */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_convolutions),
        cmocka_unit_test(test_drop_path),
        cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_every_tap),
        cmocka_unit_test(test_heads_and_micro_batches),
        cmocka_unit_test(test_frozen_layers),
        cmocka_unit_test(test_sides),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_batch_norms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
