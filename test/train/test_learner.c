/* Learners: the loss falls, accumulation, resumed bits, no allocation. */
#include "train/learning.h"

#include <math.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "kith/log.h"
#include "train/describe.h"

enum { MOST_IMAGES = 16 };

static float images[MOST_IMAGES * SIDE * SIDE];
static int32_t labels[MOST_IMAGES];

static void draw_images(void) {
    ki_rng rng = ki_rng_at(5, KI_RNG_TEST, 0, 0);
    for (size_t i = 0; i < N_ROWS(images); i++) images[i] = 2 * ki_rng_float(&rng) - 1;
    for (int i = 0; i < MOST_IMAGES; i++) labels[i] = i / 2 % CLASSES;
}

static setup *make(const char *objective, const char *optim, int64_t batch, bool frozen_bn) {
    return setup_make(op_backend("cpu", NULL), 1, 16, 1, objective, optim,
                      (ki_learner_settings){.batch = batch, .frozen_bn = frozen_bn});
}

static void add(setup *s, int first, int n, uint64_t step) {
    kith_error err;
    const ki_learner_batch batch = {.n = n, .data = images + first * SIDE * SIDE, .label = labels + first};
    assert_ok(ki_learner_add(s->learner, &batch, step, &err), &err);
}

static void test_loss_falls(void **state) {
    (void)state;
    setup *s = make("{loss: binomial}", "{lr: 1e-2, steps: 1}", 16, false);
    double first = 0, last = 0;
    for (uint64_t step = 0; step < 30; step++) {
        add(s, 0, 16, step);
        update(s, 1e-2);
        last = read(s).total;
        if (step == 0) first = last;
    }
    if (!(last < 0.5 * first)) fail_msg("the loss went from %g to %g", first, last);
    setup_release(s);
}

/* AM-softmax is a mean over items, and frozen batch norms keep items apart: two halves make the whole. */
static void test_accumulation_equals_the_larger_batch(void **state) {
    (void)state;
    setup *whole = make("{loss: amsoftmax}", "{name: sgd, momentum: 0, steps: 1}", 16, true);
    setup *halves = make("{loss: amsoftmax}", "{name: sgd, momentum: 0, steps: 1, accumulate: 2}", 8, true);
    add(whole, 0, 16, 0);
    update(whole, 0.1);
    add(halves, 0, 8, 0);
    add(halves, 8, 8, 0);
    update(halves, 0.1);
    int64_t n = 0;
    float *a = values_of(whole, &n), *b = values_of(halves, &n);
    const double off = testing_relative_l2(b, a, n), of_total = fabs(read(whole).total - read(halves).total);
    if (!(off < 1e-6)) fail_msg("values after the step differ by %g", off);
    if (!(of_total < 1e-5)) fail_msg("totals differ by %g", of_total);
    const ki_state *pa = ki_objective_param_named(whole->objective, "proxies"),
                   *pb = ki_objective_param_named(halves->objective, "proxies");
    const double off_proxies = testing_relative_l2(pb->value, pa->value, pa->count);
    if (!(off_proxies < 1e-6)) fail_msg("proxies differ by %g", off_proxies);
    free(a);
    free(b);
    setup_release(whole);
    setup_release(halves);
}

/* Energy confusion alone: its gradient trains the embedding layer and nothing below it. */
static void test_a_gradient_that_stops_at_the_embedding(void **state) {
    (void)state;
    setup *s = make("{loss: none, regularizers: [{name: energy_confusion}]}",
                    "{name: sgd, momentum: 0, steps: 1}", 16, false);
    add(s, 0, 16, 0);
    update(s, 0);
    const ki_learner_values v = read(s);
    if (v.grad_norm[KI_GROUP_BACKBONE] != 0 || !(v.grad_norm[KI_GROUP_EMBEDDING] > 0))
        fail_msg("gradient norms %g below and %g in the layer; wanted 0 and more than 0",
                 v.grad_norm[KI_GROUP_BACKBONE], v.grad_norm[KI_GROUP_EMBEDDING]);
    setup_release(s);
}

/* By differences: moving one weight of the embedding layer changes the value as the gradient says. */
static void check_layer_gradient(const char *objective) {
    setup *s = make(objective, "{name: sgd, momentum: 0, steps: 1}", 16, true);
    kith_error err;
    const ki_param *w = ki_params_find(s->params, "embedding.weight");
    float *value = malloc((size_t)w->n * sizeof *value), *diff = malloc((size_t)w->n * sizeof *diff);
    add(s, 0, 16, 0);
    assert_ok(ki_params_get(s->params, w, value, &err), &err);
    assert_ok(ki_params_get_diff(s->params, w, diff, &err), &err);
    update(s, 0);
    /* Along the gradient, where float32 differences have the most to see. */
    double length = 0;
    for (int64_t i = 0; i < w->n; i++) length += (double)diff[i] * (double)diff[i];
    const float step = (float)(1e-2 / sqrt(length));
    double total[2];
    for (int side = 0; side < 2; side++) {
        float *moved = malloc((size_t)w->n * sizeof *moved);
        for (int64_t i = 0; i < w->n; i++) moved[i] = value[i] + (side ? step : -step) * diff[i];
        assert_ok(ki_params_set(s->params, w, moved, &err), &err);
        add(s, 0, 16, 0);
        update(s, 0);
        total[side] = read(s).total;
        free(moved);
    }
    const double found = (total[1] - total[0]) / (2 * (double)step), wanted = length;
    if (!(fabs(found - wanted) < 1e-2 * wanted))
        fail_msg("%s: slope along the gradient %g, its squared length %g", objective, found, wanted);
    free(value);
    free(diff);
    setup_release(s);
}

static void test_gradient_of_the_embedding_layer(void **state) {
    (void)state;
    check_layer_gradient("{loss: binomial}");
    check_layer_gradient("{loss: none, regularizers: [{name: energy_confusion}]}");
    check_layer_gradient("{loss: none, regularizers: [{name: row_norm_penalty}]}");
    check_layer_gradient(
        "{loss: binomial, regularizers: [{name: energy_confusion, weight: 0.1}, "
        "{name: row_norm_penalty, weight: 0.1}]}");
}

/* The gradient of the layer's weights after micro-batches of 8 images that begin at first[0], …; to be freed. */
static float *layer_diff(const char *objective, int n_micro, const int *first, int64_t *ret_n) {
    setup *s = make(objective, "{name: sgd, steps: 1, accumulate: 2}", 8, true);
    kith_error err;
    const ki_param *w = ki_params_find(s->params, "embedding.weight");
    float *diff = malloc((size_t)w->n * sizeof *diff);
    for (int i = 0; i < n_micro; i++) add(s, first[i], 8, 0);
    assert_ok(ki_params_get_diff(s->params, w, diff, &err), &err);
    *ret_n = w->n;
    setup_release(s);
    return diff;
}

/* Runs are resumed to the bit by later versions, and sums of floats depend on their order: in every micro-batch first what backward
 * has, then what the objective has for the weights themselves. */
static void test_order_of_the_layers_gradients(void **state) {
    (void)state;
    static const char loss[] = "{loss: amsoftmax}",
                      penalty[] = "{loss: none, regularizers: [{name: row_norm_penalty}]}",
                      both[] = "{loss: amsoftmax, regularizers: [{name: row_norm_penalty}]}";
    static const int first[] = {0, 8};
    int64_t n = 0;
    float *a = layer_diff(loss, 1, &first[0], &n), *b = layer_diff(loss, 1, &first[1], &n);
    float *own = layer_diff(penalty, 1, first, &n), *found = layer_diff(both, 2, first, &n);
    for (int64_t i = 0; i < n; i++) {
        const float wanted = ((a[i] + own[i]) + b[i]) + own[i];
        if (memcmp(&found[i], &wanted, sizeof wanted) != 0)
            fail_msg("number %lld is %.9g; wanted %.9g", (long long)i, (double)found[i], (double)wanted);
    }
    free(a);
    free(b);
    free(own);
    free(found);
}

static void test_smaller_batches(void **state) {
    (void)state;
    setup *s = make("{loss: binomial}", "{lr: 1e-3, steps: 1}", 16, false);
    static const int sizes[] = {16, 4, 6, 8, 10, 12, 4, 16};
    for (size_t i = 0; i < N_ROWS(sizes); i++) {
        add(s, 0, sizes[i], i);
        update(s, 1e-3);
        assert_true(isfinite(read(s).total));
    }
    kith_error err;
    const ki_learner_batch too_many = {.n = 17, .data = images, .label = labels};
    assert_int_equal(ki_learner_add(s->learner, &too_many, 0, &err), KITH_EINVAL);
    setup_release(s);
}

static void test_not_a_number(void **state) {
    (void)state;
    setup *s = make("{loss: binomial}", "{lr: 1e-3, steps: 1}", 16, false);
    kith_error err;
    images[5] = NAN;
    const ki_learner_batch batch = {.n = 16, .data = images, .label = labels};
    kith_status status = ki_learner_add(s->learner, &batch, 0, &err);
    if (status == KITH_OK) status = ki_learner_update(s->learner, 1e-3, &err);
    draw_images();
    assert_int_equal(status, KITH_ENUMERIC);
    setup_release(s);
}

/* Saved, loaded into a fresh learner, and both go on: the same bits. */
static void test_saved_state_goes_on_to_the_same_bits(void **state) {
    (void)state;
    static const char *const objectives[] = {
        "{loss: amsoftmax, regularizers: [{name: density}]}",
        "{loss: binomial, memory: {size: 20, warmup: 1}, regularizers: [{name: horde, dimension: 32}]}"};
    for (size_t o = 0; o < N_ROWS(objectives); o++) {
        setup *a = make(objectives[o], "{lr: 1e-2, steps: 1}", 16, false);
        setup *b = make(objectives[o], "{lr: 1e-2, steps: 1}", 16, false);
        for (uint64_t step = 0; step < 3; step++) {
            add(a, 0, 16, step);
            update(a, 1e-2);
        }
        hand_over(a, b);
        for (uint64_t step = 3; step < 6; step++) {
            add(a, 0, 16, step);
            update(a, 1e-2);
            add(b, 0, 16, step);
            update(b, 1e-2);
        }
        assert_same_values(a, b);
        setup_release(a);
        setup_release(b);
    }
}

/* The average of all values, running statistics too, follows them as its definition says. Looking at it changes nothing, and a
 * resumed one goes on to the same bits. */
static void test_averages(void **state) {
    (void)state;
    static const char optim[] = "{lr: 1e-2, steps: 1, ema: 0.9}";
    setup *s = make("{loss: binomial}", optim, 16, false),
          *again = make("{loss: binomial}", optim, 16, false);
    setup *plain = make("{loss: binomial}", "{lr: 1e-2, steps: 1}", 16, false);
    int64_t n = 0;
    float *x = values_of(s, &n);
    double *wanted = malloc((size_t)n * sizeof *wanted);
    for (int64_t i = 0; i < n; i++) wanted[i] = (double)x[i];
    free(x);
    for (uint64_t step = 0; step < 12; step++) {
        const double t = (double)step + 1, most = (1 + t) / (10 + t), d = most < 0.9 ? most : 0.9;
        add(s, 0, 16, step);
        update(s, 1e-2);
        add(plain, 0, 16, step);
        update(plain, 1e-2);
        x = values_of(s, &n);
        for (int64_t i = 0; i < n; i++) wanted[i] = d * wanted[i] + (1 - d) * (double)x[i];
        free(x);
        if (step == 5) hand_over(s, again);
        if (step > 5) {
            add(again, 0, 16, step);
            update(again, 1e-2);
        }
        x = averages_of(s, &n);
        for (int64_t i = 0; i < n; i++) {
            if (!(fabs((double)x[i] - wanted[i]) < 2e-6 * (1 + fabs(wanted[i]))))
                fail_msg("step %d: average %lld is %.9g; wanted %.9g", (int)step, (long long)i, (double)x[i],
                         wanted[i]);
        }
        free(x);
    }
    assert_same_values(s, plain);
    assert_same_values(s, again);
    assert_same_averages(s, again);
    free(wanted);
    setup_release(s);
    setup_release(again);
    setup_release(plain);
}

/* While the averages are where the network was, neither a step nor a checkpoint is taken. */
static void test_no_step_from_averages(void **state) {
    (void)state;
    kith_error err;
    setup *s = make("{loss: binomial}", "{lr: 1e-2, steps: 1, ema: 0.9}", 16, false);
    const ki_learner_batch batch = {.n = 16, .data = images, .label = labels};
    assert_ok(ki_learner_swap(s->learner, &err), &err);
    assert_int_equal(ki_learner_add(s->learner, &batch, 0, &err), KITH_EINTERNAL);
    assert_int_equal(ki_learner_save(s->learner, NULL, &err), KITH_EINTERNAL);
    assert_ok(ki_learner_swap(s->learner, &err), &err);
    add(s, 0, 16, 0);
    assert_int_equal(ki_learner_swap(s->learner, &err), KITH_EINTERNAL);
    setup_release(s);
}

/* What one step of plain gradient descent changes: of a layer less by the decay for each layer that is above it. */
static void test_rates_fall_with_depth(void **state) {
    (void)state;
    static const struct {
        const char *param;
        double rate;
    } rows[] = {{"conv1.weight", 0.0625}, {"bn2.weight", 0.125},     {"conv3.weight", 0.25},
                {"bn4.bias", 0.5},        {"embedding.weight", 1.0}, {"embedding.bias", 1.0}};
    static float before[1 << 14], all[1 << 14], less[1 << 14];
    for (size_t r = 0; r < N_ROWS(rows); r++) {
        const char *const recipes[] = {"{name: sgd, momentum: 0, steps: 1}",
                                       "{name: sgd, momentum: 0, steps: 1, layer_decay: 0.5}"};
        int64_t n = 0;
        for (int way = 0; way < 2; way++) {
            kith_error err;
            setup *s = make("{loss: binomial}", recipes[way], 16, false);
            const ki_param *p = ki_params_find(s->params, rows[r].param);
            n = p->n;
            assert_ok(ki_params_get(s->params, p, before, &err), &err);
            add(s, 0, 16, 0);
            update(s, 0.5);
            assert_ok(ki_params_get(s->params, p, way ? less : all, &err), &err);
            setup_release(s);
        }
        double of_all = 0, of_less = 0;
        for (int64_t i = 0; i < n; i++) {
            const double a = (double)(all[i] - before[i]), b = (double)(less[i] - before[i]);
            of_all += a * a;
            of_less += a * b;
        }
        const double found = of_less / of_all;
        if (!(fabs(found - rows[r].rate) < 1e-3 * rows[r].rate))
            fail_msg("%s changes by %g of what it would; wanted %g", rows[r].param, found, rows[r].rate);
    }
}

/* What is frozen has neither moments nor averages, and keeps its bits. */
static void test_frozen_layers(void **state) {
    (void)state;
    kith_error err;
    setup_adapt = (ki_adaptation){.freeze = "bn2"};
    setup *s = make("{loss: binomial}", "{lr: 1e-2, steps: 1, ema: 0.9, weight_decay: 0.1}", 16, false);
    setup_adapt = (ki_adaptation){0};
    static float before[1 << 14], after[1 << 14];
    static const char *const kept[] = {"conv1.weight", "bn1.running_mean", "bn2.weight", "bn2.running_var"};
    for (size_t i = 0; i < N_ROWS(kept); i++) {
        const ki_param *p = ki_params_find(s->params, kept[i]);
        assert_ok(ki_params_get(s->params, p, before, &err), &err);
        for (uint64_t step = 0; step < 3; step++) {
            add(s, 0, 16, step);
            update(s, 1e-2);
        }
        assert_ok(ki_params_get(s->params, p, after, &err), &err);
        if (memcmp(before, after, (size_t)p->n * sizeof *before) != 0) fail_msg("%s has changed", kept[i]);
    }
    for (int i = 0; i < ki_optim_n_states(s->learner->optim); i++) {
        const char *name = ki_optim_state_name(s->learner->optim, i);
        if (strncmp(name, "conv1", 5) == 0 || strncmp(name, "bn2", 3) == 0) fail_msg("there is a %s", name);
    }
    for (int i = 0; i < s->learner->n_averaged; i++) {
        const char *name = ki_params_at(s->params, s->learner->averaged[i])->name;
        if (strncmp(name, "conv1", 5) == 0) fail_msg("%s is averaged", name);
    }
    setup_release(s);
}

static void test_a_step_allocates_nothing(void **state) {
    (void)state;
    setup *s = make("{loss: binomial, regularizers: [{name: energy_confusion}]}",
                    "{lr: 1e-3, steps: 1, ema: 0.9}", 16, false);
    kith_memory_stats before, after;
    for (uint64_t step = 0; step < 4; step++) {
        if (step == 2) kith_memory_stats_get(&before);
        add(s, 0, 16, step);
        update(s, 1e-3);
    }
    kith_memory_stats_get(&after);
    assert_int_equal(after.n_allocations - before.n_allocations, 0);
    setup_release(s);
}

/* A learner, two batches of different sizes, and descriptors beside it, as far as memory goes. */
static kith_status try_all(setup *s, ki_description **description, ki_forward **forward, kith_error *err) {
    static const char objective[] =
        "{loss: amsoftmax, regularizers: [{name: horde, orders: 2, dimension: 8, embedding: 8}, "
        "{name: energy_confusion}, {name: row_norm_penalty}]}";
    static float rows[5 * 16];
    ki_learner_batch batch = {.n = 8, .data = images, .label = labels};
    KI_TRY(setup_try(s, 1, 16, 1, objective,
                     "{name: sgd, steps: 1, accumulate: 2, ema: 0.9, layer_decay: 0.9}",
                     (ki_learner_settings){.batch = 8, .frozen_bn = true}, err));
    KI_TRY(ki_learner_add(s->learner, &batch, 0, err));
    batch.n = 5;
    KI_TRY(ki_learner_add(s->learner, &batch, 0, err));
    KI_TRY(ki_learner_update(s->learner, 0.1, err));
    KI_TRY(ki_description_new(s->learner, description, err));
    const ki_forward_settings settings = {.backend = s->backend,
                                          .net = &s->net,
                                          .params = s->params,
                                          .describer = ki_description_describer(*description),
                                          .batch = 8};
    KI_TRY(ki_forward_new(&settings, forward, err));
    ki_vectors to = {.dim = ki_forward_dim(*forward), .n_room = 5, .host = rows};
    const ki_forward_batch some = {.n = 5, .data = images};
    KI_TRY(ki_forward_add(*forward, &some, &to, err));
    return ki_forward_finish(*forward, err);
}

/* Whichever allocation fails (every fifth is tried), the error says so and nothing is left behind. */
static void test_no_memory(void **state) {
    (void)state;
    ki_backend *backend = op_backend("cpu", NULL);
    kith_status status = KITH_ENOMEM;
    kith_memory_stats before, after;
    for (int64_t n = 0; status != KITH_OK; n += 5) {
        setup s = {.backend = backend};
        ki_description *description = NULL;
        ki_forward *forward = NULL;
        kith_error err;
        kith_memory_stats_get(&before);
        ki_alloc_fail_after(n);
        status = try_all(&s, &description, &forward, &err);
        ki_alloc_fail_after(-1);
        if (status != KITH_OK && status != KITH_ENOMEM)
            fail_msg("without allocation %lld: %s", (long long)n, err.message);
        ki_forward_free(forward);
        ki_description_free(description);
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

int main(void) {
    draw_images();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loss_falls),
        cmocka_unit_test(test_accumulation_equals_the_larger_batch),
        cmocka_unit_test(test_a_gradient_that_stops_at_the_embedding),
        cmocka_unit_test(test_gradient_of_the_embedding_layer),
        cmocka_unit_test(test_order_of_the_layers_gradients),
        cmocka_unit_test(test_smaller_batches),
        cmocka_unit_test(test_not_a_number),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_saved_state_goes_on_to_the_same_bits),
        cmocka_unit_test(test_averages),
        cmocka_unit_test(test_no_step_from_averages),
        cmocka_unit_test(test_rates_fall_with_depth),
        cmocka_unit_test(test_frozen_layers),
        cmocka_unit_test(test_a_step_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
