/* The learner that stays on the device against the one on the host: the same losses and parameters step by
 * step, through warm-up, recording and launching; micro-batches, resuming, stopped gradients, bad numbers. */
#include "train/drawn.h"

#include <math.h>

#include "train/describe.h"

/* Of the learners that are made from now on: chunks of the device's, with frozen batch norms on both; 0: whole batches. */
static int64_t chunk;

static setup *make_heads(const char *device, int heads, const char *objective, const char *optim,
                         int64_t batch, bool one_by_one) {
    const kith_transform t = transform_of();
    /* Two learners are compared bit by bit: they must run the same algorithms. */
    ki_backend *backend = op_backend(device, &(ki_backend_options){.deterministic = true});
    setup *s = setup_make(backend, 3, WIDTH, heads, objective, optim,
                          (ki_learner_settings){.batch = batch,
                                                .format = ki_feed_format(backend, NULL, &t),
                                                .transform = &t,
                                                .chunk = strcmp(device, "cuda") == 0 ? chunk : 0,
                                                .frozen_bn = chunk > 0,
                                                .one_by_one = one_by_one});
    const ki_batch_memory memory = ki_feed_memory(backend);
    if (memory.take) s->pinned = memory.take(memory.user, sizeof pixels);
    return s;
}

static setup *make(const char *device, const char *objective, const char *optim, int64_t batch,
                   bool one_by_one) {
    return make_heads(device, 1, objective, optim, batch, one_by_one);
}

static void near(const char *what, uint64_t step, double found, double wanted, double tolerance) {
    if (!(fabs(found - wanted) <= tolerance * (fabs(wanted) + 1e-6)))
        fail_msg("step %llu: %s is %.9g, wanted %.9g", (unsigned long long)step, what, found, wanted);
}

/* Steps of both, compared one by one; parameters at the end. sizes: of the batches, in turn, 0 ends; NULL: all full. */
static void follow_heads(int heads, const char *objective, const char *optim, int n_micro, bool one_by_one,
                         const int *sizes) {
    enum { BATCH = 8 };
    static const int full[] = {8, 8, 8, 8, 8, 8, 0};
    if (!sizes) sizes = full;
    int n_last = 0;
    setup *host = make_heads("cpu", heads, objective, optim, BATCH, false);
    setup *device = make_heads("cuda", heads, objective, optim, BATCH, one_by_one);
    assert_ptr_equal(host->learner->engine_type, &ki_engine_host);
    assert_ptr_not_equal(device->learner->engine_type, &ki_engine_host);
    for (uint64_t step = 0; sizes[step] > 0; step++) {
        const double lr = 1e-2 / (double)(step + 1);
        n_last = sizes[step];
        for (int m = 0; m < n_micro; m++) {
            const int first = BATCH * (int)((step + (uint64_t)m) % 3);
            add(host, first, n_last, step);
            add(device, first, n_last, step);
        }
        update(host, lr);
        update(device, lr);
        const ki_learner_values a = read(host), b = read(device);
        assert_true(b.is_finite);
        near("the total", step, b.total, a.total, 1e-3);
        assert_int_equal(b.n_terms, a.n_terms);
        for (size_t i = 0; i < a.n_terms; i++) {
            assert_string_equal(b.term[i].name, a.term[i].name);
            near(a.term[i].name, step, b.term[i].value, a.term[i].value, 1e-3);
            near("its weight", step, b.term[i].weight, a.term[i].weight, 1e-6);
        }
        assert_int_equal(b.n_pos, a.n_pos);
        assert_int_equal(b.n_neg, a.n_neg);
        for (int g = 0; g < KI_N_GROUPS; g++)
            near(ki_learner_group_name((ki_learner_group)g), step, b.grad_norm[g], a.grad_norm[g], 5e-3);
    }
    ki_real x[BATCH * DIM], y[BATCH * DIM];
    kith_error err;
    assert_ok(ki_learner_embedding(host->learner, x, &err), &err);
    assert_ok(ki_learner_embedding(device->learner, y, &err), &err);
    assert_true(testing_relative_l2(y, x, n_last * DIM) < 2e-3);
    int64_t n = 0;
    float *a = values_of(host, &n), *b = values_of(device, &n);
    const double off = testing_relative_l2(b, a, n);
    if (!(off < 1e-3)) fail_msg("parameters differ by %g", off);
    free(a);
    free(b);
    release(host);
    release(device);
}

static void follow_sizes(const char *objective, const char *optim, int n_micro, bool one_by_one,
                         const int *sizes) {
    follow_heads(1, objective, optim, n_micro, one_by_one, sizes);
}

static void follow(const char *objective, const char *optim, int n_micro, bool one_by_one) {
    follow_sizes(objective, optim, n_micro, one_by_one, NULL);
}

static void test_pairs(void **state) {
    (void)state;
    follow("{loss: raw, miner: {name: vthm, margin: 0.1}}", "{lr: 1e-2, steps: 1}", 1, false);
}

/* An ensemble, with everything that looks at its heads; the last batch is smaller. */
static void test_heads(void **state) {
    (void)state;
    static const int sizes[] = {8, 8, 8, 6, 8, 6, 8, 0};
    follow_heads(
        2,
        "{loss: {name: contrastive, form: horde}, memory: {size: 12, warmup: 2}, regularizers: "
        "[{name: head_divergence, weight: 0.5}, {name: horde, orders: 3, dimension: 16, embedding: 8, "
        "weight: 0.25}]}",
        "{lr: 1e-3, steps: 1}", 1, false, sizes);
}

/* The device computes 3 images at a time, the host all of them. */
static void test_chunks(void **state) {
    (void)state;
    static const int sizes[] = {8, 8, 8, 6, 8, 6, 8, 6, 6, 0};
    chunk = 3;
    follow_sizes("{loss: raw, miner: {name: vthm, margin: 0.1}}", "{lr: 1e-2, steps: 1}", 1, false, sizes);
    follow_sizes("{loss: amsoftmax, regularizers: [{name: energy_confusion, weight: 0.1}]}",
                 "{lr: 1e-2, steps: 1, accumulate: 2}", 2, false, sizes);
    follow("{loss: binomial, memory: {size: 12, warmup: 2}, regularizers: [{name: row_norm_penalty}]}",
           "{lr: 1e-3, steps: 1}", 1, true);
    follow_heads(2,
                 "{loss: {name: contrastive, form: horde}, regularizers: [{name: head_divergence, weight: "
                 "0.5}, {name: horde, orders: 3, dimension: 16, embedding: 8, weight: 0.25}]}",
                 "{lr: 1e-3, steps: 1}", 1, false, sizes);
    chunk = 0;
}

static void test_kernel_by_kernel(void **state) {
    (void)state;
    follow("{loss: raw, miner: {name: vthm, margin: 0.1}}", "{lr: 1e-2, steps: 1}", 1, true);
}

/* Proxies learn too; a second term stops at the embedding and warms up over steps. */
static void test_proxies_and_a_stopped_term(void **state) {
    (void)state;
    follow("{loss: amsoftmax, regularizers: [{name: energy_confusion, weight: 0.1, warmup: 4}]}",
           "{lr: 1e-2, steps: 1, weight_decay: 1e-3, clip: 1}", 1, false);
}

static void test_micro_batches(void **state) {
    (void)state;
    follow("{loss: binomial}", "{name: sgd, momentum: 0.9, steps: 1, accumulate: 2}", 2, false);
}

/* The last batch of an epoch is smaller; it comes often enough to be recorded. What the loss learns and remembers is
 * one thing for all sizes. */
static void test_smaller_batches(void **state) {
    (void)state;
    static const int epochs[] = {8, 8, 6, 8, 6, 8, 6, 8, 6, 8, 0};
    follow_sizes("{loss: amsoftmax, regularizers: [{name: energy_confusion, weight: 0.1}]}",
                 "{lr: 1e-2, steps: 1, weight_decay: 1e-3}", 1, false, epochs);
    follow_sizes("{loss: contrastive, memory: {size: 16}}", "{lr: 1e-2, steps: 1}", 1, false, epochs);
}

/* More sizes than are kept, each coming back. */
static void test_many_sizes(void **state) {
    (void)state;
    static const int sizes[] = {7, 6, 5, 4, 3, 8, 7, 6, 5, 4, 8, 0};
    follow_sizes("{loss: amsoftmax}", "{lr: 1e-2, steps: 1}", 1, false, sizes);
}

/* Values of a step may be asked for when the next batch is already queued. */
static void test_values_of_the_step_before(void **state) {
    (void)state;
    const char *objective = "{loss: binomial}", *optim = "{lr: 1e-2, steps: 1}";
    setup *at_once = make("cuda", objective, optim, 8, false),
          *later = make("cuda", objective, optim, 8, false);
    for (uint64_t step = 0; step < 5; step++) {
        add(at_once, 0, 8, step);
        update(at_once, 1e-2);
        const double wanted = read(at_once).total, norm = read(at_once).grad_norm[KI_GROUP_BACKBONE];
        add(later, 0, 8, step);
        update(later, 1e-2);
        if (step == 4) break;
        add(later, 0, 8, step + 1);
        const ki_learner_values values = read(later);
        assert_true(values.total == wanted);
        assert_true(values.grad_norm[KI_GROUP_BACKBONE] == norm);
        update(later, 1e-2);
        /* Keep both at the same step. */
        add(at_once, 0, 8, ++step);
        update(at_once, 1e-2);
    }
    release(at_once);
    release(later);
}

static void test_resume(void **state) {
    (void)state;
    const char *objective = "{loss: amsoftmax}", *optim = "{lr: 1e-2, steps: 1, ema: 0.9}";
    setup *s = make("cuda", objective, optim, 8, false);
    for (uint64_t step = 0; step < 4; step++) {
        add(s, 8 * (int)(step % 3), 8, step);
        update(s, 1e-2);
    }
    setup *again = make("cuda", objective, optim, 8, false);
    hand_over(s, again);
    for (uint64_t step = 4; step < 8; step++) {
        add(s, 8 * (int)(step % 3), 8, step);
        add(again, 8 * (int)(step % 3), 8, step);
        update(s, 1e-2);
        update(again, 1e-2);
        assert_true(read(s).total == read(again).total);
    }
    assert_same_values(s, again);
    assert_same_averages(s, again);
    release(s);
    release(again);
}

/* Frozen layers, rates by depth and averages, through warm-up, recording and launching; the averages are looked at on the way. */
static void test_adapted(void **state) {
    (void)state;
    setup_adapt = (ki_adaptation){.freeze = "bn1"};
    const char *objective = "{loss: amsoftmax}", *optim = "{lr: 1e-2, steps: 1, ema: 0.9, layer_decay: 0.7}";
    setup *host = make("cpu", objective, optim, 8, false), *device = make("cuda", objective, optim, 8, false);
    setup *unseen = make("cuda", objective, optim, 8, false);
    setup_adapt = (ki_adaptation){0};
    setup *const all[] = {host, device, unseen};
    int64_t n = 0;
    for (uint64_t step = 0; step < 8; step++) {
        for (int i = 0; i < 3; i++) {
            add(all[i], 8 * (int)(step % 3), 8, step);
            update(all[i], 1e-2);
        }
        near("the total", step, read(device).total, read(host).total, 1e-3);
        float *a = averages_of(host, &n), *b = averages_of(device, &n);
        const double off = testing_relative_l2(b, a, n);
        if (!(off < 1e-3)) fail_msg("step %d: averages differ by %g", (int)step, off);
        free(a);
        free(b);
    }
    assert_same_values(device, unseen);
    assert_same_averages(device, unseen);
    for (int i = 0; i < 3; i++) release(all[i]);
}

/* A step that went wrong is named, also when it is read steps later. */
static void test_bad_numbers(void **state) {
    (void)state;
    kith_error err;
    setup *s = make("cuda", "{loss: binomial}", "{lr: 1e-2, steps: 1}", 8, false);
    for (uint64_t step = 0; step < 7; step++) {
        if (step == 4) {
            const ki_param *p = ki_params_find(s->params, "embedding.weight");
            float *bad = malloc((size_t)p->n * sizeof *bad);
            for (int64_t i = 0; i < p->n; i++) bad[i] = NAN;
            assert_ok(ki_params_set(s->params, p, bad, &err), &err);
            assert_ok(s->backend->type->memory.sync(s->backend, &err), &err);
            free(bad);
        }
        add(s, 0, 8, step);
        update(s, 1e-2);
    }
    const ki_learner_values values = read(s);
    assert_false(values.is_finite);
    assert_int_equal(values.bad_step, 4);
    release(s);
}

static void test_refusals(void **state) {
    (void)state;
    kith_error err;
    setup *s = make("cuda", "{loss: binomial}", "{lr: 1e-2, steps: 1}", 8, false);
    const ki_learner_batch many = {.n = 9, .data = s->pinned, .label = labels, .window = windows};
    assert_int_equal(ki_learner_add(s->learner, &many, 0, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "a batch of 9 images; wanted 1 to 8"));
    const ki_learner_batch bare = {.n = 8, .data = s->pinned, .label = labels};
    assert_int_equal(ki_learner_add(s->learner, &bare, 0, &err), KITH_EINVAL);
    release(s);
}

/* Embeddings on the device, in batches that are not full, are the host's, whether they stay or come back at once. */
static void test_forward(void **state) {
    (void)state;
    enum { BATCH = 5 };
    kith_error err;
    setup *host = make("cpu", "{loss: binomial}", "{steps: 1}", 8, false);
    setup *device = make("cuda", "{loss: binomial}", "{steps: 1}", 8, false);
    setup *stays = make("cuda", "{loss: binomial}", "{steps: 1}", 8, false);
    setup *all[] = {host, device, stays};
    float rows[3][MOST_IMAGES * DIM];
    for (int w = 0; w < 3; w++) {
        setup *s = all[w];
        ki_forward *forward = NULL;
        const kith_transform t = transform_of();
        const ki_forward_settings settings = {.backend = s->backend,
                                              .net = &s->net,
                                              .params = s->params,
                                              .tap = "embedding",
                                              .batch = BATCH,
                                              .format = format_of(s),
                                              .transform = &t};
        assert_ok(ki_forward_new(&settings, &forward, &err), &err);
        assert_int_equal(ki_forward_dim(forward), DIM);
        assert_int_equal(ki_forward_can_stay(forward), w > 0);
        for (int round = 0; round < 2; round++) { /* the second with other parameters */
            ki_vectors v = {0};
            const float *found = NULL;
            assert_ok(ki_vectors_init(s->backend, w == 2, MOST_IMAGES, DIM, &v, &err), &err);
            for (int at = 0; at < MOST_IMAGES; at += BATCH) {
                const int n = MOST_IMAGES - at < BATCH ? MOST_IMAGES - at : BATCH;
                ki_forward_batch batch = {.n = n};
                batch.data = show(s, at, n, &batch.window);
                assert_ok(ki_forward_add(forward, &batch, &v, &err), &err);
                if (s->pinned) memset(s->pinned, 0x55, sizeof pixels);
            }
            assert_ok(ki_forward_finish(forward, &err), &err);
            const ki_forward_batch more = {.n = 1, .data = s->pinned ? s->pinned : (void *)rows};
            assert_int_equal(ki_forward_add(forward, &more, &v, &err), KITH_EINTERNAL); /* no room */
            assert_int_equal(v.n, MOST_IMAGES);
            assert_ok(ki_vectors_host(&v, &found, &err), &err);
            memcpy(rows[w], found, sizeof rows[w]);
            ki_vectors_release(&v);
            if (round == 0) {
                add(s, 0, 8, 0);
                update(s, 1e-2);
            }
        }
        ki_forward_free(forward);
    }
    const double off = testing_relative_l2(rows[1], rows[0], MOST_IMAGES * DIM);
    if (!(off < 1e-3)) fail_msg("embeddings differ by %g", off);
    assert_memory_equal(rows[1], rows[2], sizeof rows[1]);
    release(host);
    release(device);
    release(stays);
}

enum { DESCRIBED = 19, DESCRIBED_BATCH = 8 };

typedef struct described {
    ki_description *description;
    ki_forward *forward;
} described;

static described describe_open(setup *s) {
    kith_error err;
    described d = {0};
    const kith_transform t = transform_of();
    assert_ok(ki_description_new(s->learner, &d.description, &err), &err);
    const ki_forward_settings settings = {.backend = s->backend,
                                          .net = &s->net,
                                          .params = s->params,
                                          .describer = ki_description_describer(d.description),
                                          .batch = DESCRIBED_BATCH,
                                          .format = format_of(s),
                                          .transform = &t};
    assert_ok(ki_forward_new(&settings, &d.forward, &err), &err);
    assert_int_equal(ki_forward_can_stay(d.forward), s->pinned != NULL);
    return d;
}

static void describe_close(described *d) {
    ki_forward_free(d->forward);
    ki_description_free(d->description);
}

/* Descriptors of 19 images in batches of 8, the last one not full, of what the learner has come to; where they were made,
 * or brought to the host batch by batch. Often enough that a device has recorded it. */
static void describe_by(described *d, setup *s, int64_t dim, bool stays, float *rows) {
    enum { N = DESCRIBED, BATCH = DESCRIBED_BATCH };
    kith_error err;
    ki_forward *forward = d->forward;
    ki_vectors v = {0};
    const float *found = NULL;
    assert_int_equal(ki_objective_describe_dim(s->objective), dim);
    assert_ok(ki_vectors_init(s->backend, stays, N, dim, &v, &err), &err);
    for (int round = 0; round < 2; round++) {
        v.n = 0;
        for (int at = 0; at < N; at += BATCH) {
            const int n = N - at < BATCH ? N - at : BATCH;
            ki_forward_batch batch = {.n = n};
            batch.data = show(s, at, n, &batch.window);
            assert_ok(ki_forward_add(forward, &batch, &v, &err), &err);
        }
        assert_ok(ki_forward_finish(forward, &err), &err);
    }
    assert_ok(ki_vectors_host(&v, &found, &err), &err);
    memcpy(rows, found, (size_t)(N * dim) * sizeof *rows);
    ki_vectors_release(&v);
}

static void describe_all(setup *s, int64_t dim, bool stays, float *rows) {
    described d = describe_open(s);
    describe_by(&d, s, dim, stays, rows);
    describe_close(&d);
}

/* All orders on the device as on the host, after training, with terms that stop at the embedding and read its
 * weights; and training goes on as if nobody had asked. A description that is kept from step to step shows what the learner
 * has come to since. */
static void test_descriptors(void **state) {
    (void)state;
    enum { ORDERS = 3, E = 6, ALL = DIM + (ORDERS - 1) * E };
    static const char objective[] =
        "{loss: binomial, regularizers: [{name: horde, orders: 3, dimension: 20, embedding: 6},"
        " {name: energy_confusion, weight: 0.1, form: log}, row_norm_penalty]}";
    static const char optim[] = "{lr: 1e-2, steps: 5}";
    static float on_host[MOST_IMAGES * ALL], on_device[MOST_IMAGES * ALL], brought[MOST_IMAGES * ALL],
        before[MOST_IMAGES * ALL], kept[MOST_IMAGES * ALL];
    described standing = {0};
    draw_images();
    setup *host = make("cpu", objective, optim, 8, false), *device = make("cuda", objective, optim, 8, false),
          *unasked = make("cuda", objective, optim, 8, false);
    for (uint64_t step = 0; step < 5; step++) {
        setup *const all[] = {host, device, unasked};
        for (int i = 0; i < 3; i++) {
            add(all[i], 8 * (int)(step % 3), 8, step);
            update(all[i], 1e-2);
        }
        if (step == 1) {
            standing = describe_open(device);
            describe_by(&standing, device, ALL, true, before);
        }
        if (step != 3) continue;
        describe_by(&standing, device, ALL, true, kept);
        describe_all(device, ALL, true, on_device);
        describe_all(device, ALL, false, brought);
        describe_all(host, ALL, false, on_host);
    }
    describe_close(&standing);
    assert_memory_equal(on_device, brought, 19 * ALL * sizeof *brought);
    assert_memory_equal(on_device, kept, 19 * ALL * sizeof *kept);
    if (memcmp(before, kept, 19 * ALL * sizeof *kept) == 0) fail_msg("two steps have changed no descriptor");
    const double off = testing_relative_l2(on_device, on_host, 19 * ALL);
    if (!(off < 2e-3)) fail_msg("descriptors differ by %g", off);
    /* Each part of a row has length 1. */
    for (int64_t i = 0; i < 19; i++) {
        double embedding = 0, order = 0;
        for (int k = 0; k < DIM; k++) embedding += pow((double)on_device[i * ALL + k], 2);
        for (int k = 0; k < E; k++) order += pow((double)on_device[i * ALL + DIM + k], 2);
        if (fabs(embedding - 1) > 1e-4 || fabs(order - 1) > 1e-4)
            fail_msg("row %lld: squared lengths %g and %g", (long long)i, embedding, order);
    }
    assert_same_values(device, unasked);
    release(host);
    release(device);
    release(unasked);
}

/* The first allocations of a describer, failing one after the other. */
static void test_describer_out_of_memory(void **state) {
    (void)state;
    setup *s =
        make("cuda", "{loss: binomial, regularizers: [{name: horde, orders: 2, dimension: 8, embedding: 4}]}",
             "{steps: 1}", 4, false);
    const kith_transform t = transform_of();
    ki_forward_settings settings = {.backend = s->backend,
                                    .net = &s->net,
                                    .params = s->params,
                                    .batch = 4,
                                    .format = format_of(s),
                                    .transform = &t};
    kith_status status = KITH_ENOMEM;
    int n = 0;
    for (; status != KITH_OK && n < 3000; n++) {
        kith_error err = {0};
        ki_description *description = NULL;
        ki_forward *forward = NULL;
        ki_alloc_fail_after(n);
        status = ki_description_new(s->learner, &description, &err);
        if (status == KITH_OK) {
            settings.describer = ki_description_describer(description);
            status = ki_forward_new(&settings, &forward, &err);
        }
        ki_alloc_fail_after(-1);
        if (status != KITH_OK) assert_int_equal(status, KITH_ENOMEM);
        ki_forward_free(forward);
        ki_description_free(description);
    }
    assert_int_equal(status, KITH_OK);
    assert_true(n > 3);
    release(s);
}

int main(void) {
    draw_images();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pairs),
                                       cmocka_unit_test(test_heads),
                                       cmocka_unit_test(test_chunks),
                                       cmocka_unit_test(test_kernel_by_kernel),
                                       cmocka_unit_test(test_proxies_and_a_stopped_term),
                                       cmocka_unit_test(test_micro_batches),
                                       cmocka_unit_test(test_smaller_batches),
                                       cmocka_unit_test(test_many_sizes),
                                       cmocka_unit_test(test_values_of_the_step_before),
                                       cmocka_unit_test(test_resume),
                                       cmocka_unit_test(test_adapted),
                                       cmocka_unit_test(test_bad_numbers),
                                       cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_forward),
                                       cmocka_unit_test(test_descriptors),
                                       cmocka_unit_test(test_describer_out_of_memory)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    testing_clean_up();
    return failed;
}
