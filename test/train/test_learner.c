#include "train/learner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "io/yaml.h"
#include "kith/log.h"
#include "nn/plan.h"
#include "support/testing.h"
#include "train/recipe.h"

enum { SIDE = 16, CLASSES = 4, DIM = 8, MOST_IMAGES = 16 };

/* A small network with an objective and an optimizer, and images drawn at random. */
typedef struct setup {
    ki_arena arena;
    ki_backend *backend;
    ki_net net;
    ki_params *params;
    ki_objective *objective;
    ki_optim_settings optim;
    ki_learner *learner;
    float image[MOST_IMAGES * SIDE * SIDE];
    int32_t label[MOST_IMAGES];
} setup;

static const ki_value *parse(setup *s, const char *yaml) {
    ki_value *root = NULL;
    kith_error err;
    assert_ok(ki_yaml_parse(yaml, strlen(yaml), "test", &s->arena, &root, &err), &err);
    return root;
}

static setup *make(const char *objective, const char *optim, int64_t batch, bool frozen_bn) {
    setup *s = calloc(1, sizeof *s);
    kith_error err;
    assert_ok(ki_backend_open("cpu", NULL, &s->backend, &err), &err);
    const ki_net_options net = {.backbone = "convnet4",
                                .settings = parse(s, "{width: 16}"),
                                .c = 1,
                                .h = SIDE,
                                .w = SIDE,
                                .embedding = DIM};
    assert_ok(ki_net_init(&net, &s->net, &err), &err);
    assert_ok(ki_params_new(s->net.graph, s->backend, &s->params, &err), &err);
    assert_ok(ki_params_init(s->params, 3, &err), &err);
    const ki_sizes sizes = {.n_classes = CLASSES, .embedding = DIM, .pooled = 16, .map = 16};
    assert_ok(ki_objective_new(parse(s, objective), &sizes, 3, &s->objective, &err), &err);
    assert_ok(ki_optim_parse(parse(s, optim), &s->optim, &err), &err);
    const ki_learner_settings settings = {.backend = s->backend,
                                          .net = &s->net,
                                          .params = s->params,
                                          .objective = s->objective,
                                          .batch = batch,
                                          .n_micro = (int)s->optim.accumulate,
                                          .frozen_bn = frozen_bn,
                                          .seed = 3,
                                          .optim = &s->optim};
    assert_ok(ki_learner_new(&settings, &s->learner, &err), &err);
    ki_rng rng = ki_rng_at(5, KI_RNG_TEST, 0, 0);
    for (size_t i = 0; i < N_ROWS(s->image); i++) s->image[i] = 2 * ki_rng_float(&rng) - 1;
    for (int i = 0; i < MOST_IMAGES; i++) s->label[i] = i / 2 % CLASSES;
    return s;
}

static void release(setup *s) {
    ki_learner_free(s->learner);
    ki_objective_free(s->objective);
    ki_params_free(s->params);
    ki_net_release(&s->net);
    ki_backend_close(s->backend);
    ki_arena_release(&s->arena);
    free(s);
}

static void add(setup *s, int first, int n, uint64_t step) {
    kith_error err;
    const ki_learner_batch batch = {
        .n = n, .data = s->image + first * SIDE * SIDE, .label = s->label + first};
    assert_ok(ki_learner_add(s->learner, &batch, step, &err), &err);
}

static void update(setup *s, double lr) {
    kith_error err;
    assert_ok(ki_learner_update(s->learner, lr, &err), &err);
}

static ki_learner_values read(setup *s) {
    ki_learner_values values;
    kith_error err;
    assert_ok(ki_learner_read(s->learner, &values, &err), &err);
    return values;
}

/* All trained values of the network, one behind the other. */
static float *values_of(const setup *s, int64_t *ret_n) {
    kith_error err;
    float *all = malloc((size_t)ki_learner_model_n(s->params) * sizeof *all);
    int64_t n = 0;
    for (int i = 0; i < ki_params_count(s->params); i++) {
        const ki_param *p = ki_params_at(s->params, i);
        assert_ok(ki_params_get(s->params, p, all + n, &err), &err);
        n += p->n;
    }
    *ret_n = n;
    return all;
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
    release(s);
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
    release(whole);
    release(halves);
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
    release(s);
}

/* By differences: moving one weight of the embedding layer changes the value as the gradient says. */
static void check_layer_gradient(const char *objective) {
    setup *s = make(objective, "{name: sgd, momentum: 0, steps: 1}", 16, true);
    kith_error err;
    const ki_param *w = ki_params_find(s->params, "embedding.weight");
    float *value = malloc((size_t)w->n * sizeof *value), *diff = malloc((size_t)w->n * sizeof *diff);
    add(s, 0, 16, 0);
    update(s, 0);
    assert_ok(ki_params_get(s->params, w, value, &err), &err);
    assert_ok(ki_params_get_diff(s->params, w, diff, &err), &err);
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
    release(s);
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
    const ki_learner_batch too_many = {.n = 17, .data = s->image, .label = s->label};
    assert_int_equal(ki_learner_add(s->learner, &too_many, 0, &err), KITH_EINVAL);
    release(s);
}

static void test_not_a_number(void **state) {
    (void)state;
    setup *s = make("{loss: binomial}", "{lr: 1e-3, steps: 1}", 16, false);
    kith_error err;
    s->image[5] = NAN;
    const ki_learner_batch batch = {.n = 16, .data = s->image, .label = s->label};
    kith_status status = ki_learner_add(s->learner, &batch, 0, &err);
    if (status == KITH_OK) status = ki_learner_update(s->learner, 1e-3, &err);
    assert_int_equal(status, KITH_ENUMERIC);
    release(s);
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
        kith_error err;
        kith_tensors_writer *writer = NULL;
        kith_tensors *tensors = NULL;
        char path[4096];
        snprintf(path, sizeof path, "%s/learner.safetensors", testing_folder());
        for (uint64_t step = 0; step < 3; step++) {
            add(a, 0, 16, step);
            update(a, 1e-2);
        }
        assert_ok(kith_tensors_writer_new(&writer, &err), &err);
        assert_ok(ki_learner_save(a->learner, writer, &err), &err);
        assert_ok(kith_tensors_writer_save(writer, path, &err), &err);
        kith_tensors_writer_free(writer);
        assert_ok(kith_tensors_open(path, &tensors, &err), &err);
        assert_ok(ki_learner_load(b->learner, tensors, &err), &err);
        kith_tensors_free(tensors);
        for (uint64_t step = 3; step < 6; step++) {
            add(a, 0, 16, step);
            update(a, 1e-2);
            add(b, 0, 16, step);
            update(b, 1e-2);
        }
        int64_t n = 0;
        float *x = values_of(a, &n), *y = values_of(b, &n);
        for (int64_t i = 0; i < n; i++) {
            if (memcmp(&x[i], &y[i], sizeof *x) != 0)
                fail_msg("value %lld is %g and %g", (long long)i, (double)x[i], (double)y[i]);
        }
        free(x);
        free(y);
        release(a);
        release(b);
    }
}

static void test_a_step_allocates_nothing(void **state) {
    (void)state;
    setup *s =
        make("{loss: binomial, regularizers: [{name: energy_confusion}]}", "{lr: 1e-3, steps: 1}", 16, false);
    kith_memory_stats before, after;
    for (uint64_t step = 0; step < 4; step++) {
        if (step == 2) kith_memory_stats_get(&before);
        add(s, 0, 16, step);
        update(s, 1e-3);
    }
    kith_memory_stats_get(&after);
    assert_int_equal(after.n_allocations - before.n_allocations, 0);
    release(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loss_falls),
        cmocka_unit_test(test_accumulation_equals_the_larger_batch),
        cmocka_unit_test(test_a_gradient_that_stops_at_the_embedding),
        cmocka_unit_test(test_gradient_of_the_embedding_layer),
        cmocka_unit_test(test_smaller_batches),
        cmocka_unit_test(test_not_a_number),
        cmocka_unit_test(test_saved_state_goes_on_to_the_same_bits),
        cmocka_unit_test(test_a_step_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
