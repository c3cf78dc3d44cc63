/* A small network with an objective, an optimizer and a learner on one backend, for tests of learners. Included by one
 * test program each. */
#ifndef TEST_TRAIN_LEARNING_H
#define TEST_TRAIN_LEARNING_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/yaml.h"
#include "support/op_check.h"
#include "support/testing.h"
#include "train/learner_inside.h"

enum { SIDE = 16, CLASSES = 4, DIM = 8 };

/* Of the networks that are made from now on. */
static ki_adaptation setup_adapt;

/* … and what they are; NULL: convnet4 for images of SIDE pixels. */
static struct {
    const char *backbone, *settings;
    int side;
} setup_net;

typedef struct setup {
    ki_arena arena;
    ki_backend *backend;
    ki_net net;
    ki_params *params;
    ki_objective *objective;
    ki_optim_settings optim;
    ki_learner *learner;
    void *pinned; /* the test's own; NULL here */
} setup;

static inline kith_status setup_parse(setup *s, const char *yaml, ki_value **ret, kith_error *err) {
    return ki_yaml_parse(yaml, strlen(yaml), "test", &s->arena, ret, err);
}

/* As setup_make, for callers that must not fail an assertion (support/thread_ranks.h). s is zeroed but for its backend. */
static inline kith_status setup_try(setup *s, int channels, int width, int heads, const char *objective,
                                    const char *optim, ki_learner_settings settings, kith_error *err) {
    char text[32];
    ki_value *of_net = NULL, *of_objective = NULL, *of_optim = NULL;
    const bool is_other = setup_net.backbone != NULL;
    snprintf(text, sizeof text, "{width: %d}", width);
    KI_TRY(setup_parse(s, is_other ? setup_net.settings : text, &of_net, err));
    KI_TRY(setup_parse(s, objective, &of_objective, err));
    KI_TRY(setup_parse(s, optim, &of_optim, err));
    const ki_net_options net = {.backbone = is_other ? setup_net.backbone : "convnet4",
                                .settings = of_net,
                                .c = channels,
                                .h = is_other ? setup_net.side : SIDE,
                                .w = is_other ? setup_net.side : SIDE,
                                .embedding = DIM,
                                .heads = heads,
                                .map_channels = heads > 1 ? width : 0,
                                .adapt = setup_adapt};
    KI_TRY(ki_net_init(&net, &s->net, err));
    KI_TRY(ki_params_new(s->net.graph, s->backend, &s->params, err));
    KI_TRY(ki_params_init(s->params, 3, err));
    ki_sizes sizes = {
        .n_classes = CLASSES, .embedding = DIM, .pooled = width * heads, .map = width, .heads = heads};
    if (is_other) sizes.pooled = sizes.map = (int)ki_params_find(s->params, "embedding.weight")->shape.dim[1];
    sizes.no_map = ki_net_takes_vectors(&s->net);
    for (int t = 0; t < settings.n_teachers; t++) sizes.teacher[t] = ki_teacher_width(&settings.teacher[t]);
    KI_TRY(ki_objective_new(of_objective, &sizes, 3, &s->objective, err));
    KI_TRY(ki_optim_parse(of_optim, &s->optim, err));
    settings.backend = s->backend;
    settings.net = &s->net;
    settings.params = s->params;
    settings.objective = s->objective;
    settings.n_micro = (int)s->optim.accumulate;
    settings.seed = 3;
    settings.optim = &s->optim;
    return ki_learner_new(&settings, &s->learner, err);
}

/* Takes over the backend. heads: of an ensemble, whose map is then narrowed to `width`; 1: a plain network. Of
 * `settings` only what differs from test to test: batch, format, frozen_bn, … */
static inline setup *setup_make(ki_backend *backend, int channels, int width, int heads,
                                const char *objective, const char *optim, ki_learner_settings settings) {
    setup *s = calloc(1, sizeof *s);
    kith_error err;
    assert_non_null(s);
    s->backend = backend;
    assert_ok(setup_try(s, channels, width, heads, objective, optim, settings, &err), &err);
    return s;
}

static inline void setup_release(setup *s) {
    ki_learner_free(s->learner);
    ki_objective_free(s->objective);
    ki_params_free(s->params);
    ki_net_release(&s->net);
    ki_backend_close(s->backend);
    ki_arena_release(&s->arena);
    free(s);
}

static inline void update(setup *s, double lr) {
    kith_error err;
    assert_ok(ki_learner_update(s->learner, lr, &err), &err);
}

static inline ki_learner_values read(setup *s) {
    ki_learner_values values;
    kith_error err;
    assert_ok(ki_learner_read(s->learner, &values, &err), &err);
    return values;
}

/* All values of the network, one behind the other; to be freed. */
static inline float *values_of(const setup *s, int64_t *ret_n) {
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

static inline void assert_same_values(const setup *a, const setup *b) {
    int64_t n = 0;
    float *x = values_of(a, &n), *y = values_of(b, &n);
    for (int64_t i = 0; i < n; i++) {
        if (memcmp(&x[i], &y[i], sizeof *x) != 0)
            fail_msg("value %lld is %g and %g", (long long)i, (double)x[i], (double)y[i]);
    }
    free(x);
    free(y);
}

/* The values of the averages, as values_of, which are in their place again afterwards. */
static inline float *averages_of(const setup *s, int64_t *ret_n) {
    kith_error err;
    assert_ok(ki_learner_swap(s->learner, &err), &err);
    float *all = values_of(s, ret_n);
    assert_ok(ki_learner_swap(s->learner, &err), &err);
    return all;
}

static inline void assert_same_averages(const setup *a, const setup *b) {
    int64_t n = 0;
    float *x = averages_of(a, &n), *y = averages_of(b, &n);
    for (int64_t i = 0; i < n; i++) {
        if (memcmp(&x[i], &y[i], sizeof *x) != 0)
            fail_msg("average %lld is %g and %g", (long long)i, (double)x[i], (double)y[i]);
    }
    free(x);
    free(y);
}

/* Saved by one learner, loaded by the other. */
static inline void hand_over(setup *from, setup *to) {
    kith_error err;
    kith_tensors_writer *writer = NULL;
    kith_tensors *tensors = NULL;
    char path[4096];
    snprintf(path, sizeof path, "%s/learner.safetensors", testing_folder());
    assert_ok(kith_tensors_writer_new(&writer, &err), &err);
    assert_ok(ki_learner_save(from->learner, writer, &err), &err);
    assert_ok(kith_tensors_writer_save(writer, path, &err), &err);
    kith_tensors_writer_free(writer);
    assert_ok(kith_tensors_open(path, &tensors, &err), &err);
    assert_ok(ki_learner_load(to->learner, tensors, &err), &err);
    kith_tensors_free(tensors);
}

#endif
