/* LoRA on a backend. Included by one test program each. */
#ifndef TEST_NET_ADAPTING_H
#define TEST_NET_ADAPTING_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/rng.h"
#include "io/yaml.h"
#include "net/adapt.h"
#include "net/model_file.h"
#include "net/weights.h"
#include "nn/plan.h"
#include "support/op_check.h"
#include "support/testing.h"

enum { MB = 5, IN = 12, WIDTH = 10, DIM = 6, MOST = 4096 };

typedef struct side {
    ki_arena arena;
    ki_backend *backend;
    ki_net net;
    ki_params *params;
    ki_plan *plan;
} side;

static void fill(ki_real *x, int64_t n, uint32_t stream) {
    ki_rng rng = ki_rng_at(7, KI_RNG_TEST, stream, 0);
    for (int64_t i = 0; i < n; i++) x[i] = (ki_real)(2 * ki_rng_double(&rng) - 1);
}

static void set_param(side *s, const char *name, const ki_real *x) {
    kith_error err;
    const ki_param *p = ki_params_find(s->params, name);
    if (!p) fail_msg("there is no parameter %s", name);
    assert_ok(ki_params_set(s->params, p, x, &err), &err);
}

static void make_plan(side *s) {
    kith_error err;
    const ki_plan_options options = {
        .mb = MB, .mode = KI_TRAIN, .taps = {"pooled"}, .grad_taps = {"embedding"}};
    assert_ok(ki_plan_new(s->net.graph, s->params, s->backend, &options, &s->plan, &err), &err);
}

/* An mlp of two layers with layer norms, adapted as `how` says. */
static side side_make_dropout(const char *device, const ki_adaptation *how, double dropout) {
    side s = {.backend = op_backend(device, NULL)};
    kith_error err;
    ki_value *settings = NULL;
    char yaml[96];
    snprintf(yaml, sizeof yaml, "{width: %d, depth: 2, norm: layer, dropout: %g}", WIDTH, dropout);
    assert_ok(ki_yaml_parse(yaml, strlen(yaml), "test", &s.arena, &settings, &err), &err);
    const ki_net_options options = {.backbone = "mlp", .settings = settings, .c = IN, .embedding = DIM};
    assert_ok(ki_net_init(&options, &s.net, &err), &err);
    assert_ok(ki_params_new(s.net.graph, s.backend, &s.params, &err), &err);
    assert_ok(ki_params_init(s.params, 5, &err), &err);
    assert_ok(ki_adapt(how, 5, s.backend, &s.net, &s.params, &err), &err);
    make_plan(&s);
    return s;
}

static side side_make(const char *device, const ki_adaptation *how) {
    return side_make_dropout(device, how, 0);
}

static void side_release(side *s) {
    ki_plan_free(s->plan);
    ki_params_free(s->params);
    ki_net_release(&s->net);
    ki_backend_close(s->backend);
    ki_arena_release(&s->arena);
}

static void side_step(side *s, ki_real *ret_embedding) {
    static ki_real input[MB * IN], diff[MB * DIM];
    kith_error err;
    fill(input, MB * IN, 1);
    fill(diff, MB * DIM, 2);
    assert_ok(ki_params_zero_diffs(s->params, &err), &err);
    assert_ok(ki_plan_set_input(s->plan, input, &err), &err);
    assert_ok(ki_plan_forward(s->plan, &err), &err);
    assert_ok(ki_plan_read(s->plan, "embedding", ret_embedding, &err), &err);
    assert_ok(ki_plan_set_grad(s->plan, "embedding", diff, &err), &err);
    assert_ok(ki_plan_backward(s->plan, &err), &err);
}

static void diff_of(const side *s, const char *name, ki_real *ret) {
    kith_error err;
    const ki_param *p = ki_params_find(s->params, name);
    assert_non_null(p);
    assert_ok(ki_params_get_diff(s->params, p, ret, &err), &err);
}

static const char *const second[] = {"block2.*"};

/* With A the identity and B 0 the network is what it was, B learns what the layer would, times alpha / rank, and A nothing. */
static void check_gradient(const char *device) {
    static ki_real x[MOST], y[MOST], a[MB * DIM], b[MB * DIM];
    const double s = 0.7;
    const ki_adaptation how = {.rank = WIDTH, .alpha = s * WIDTH, .n_layers = 1, .layers = second};
    side plain = side_make(device, &(ki_adaptation){0}), lora = side_make(device, &how);
    assert_null(ki_params_find(lora.params, "block1.linear.lora_a.weight"));
    for (int i = 0; i < WIDTH * WIDTH; i++) x[i] = i % (WIDTH + 1) == 0;
    set_param(&lora, "block2.linear.lora_a.weight", x);
    side_step(&plain, a);
    side_step(&lora, b);
    if (memcmp(a, b, sizeof a) != 0 && !(testing_relative_l2(b, a, MB * DIM) < 1e-7))
        fail_msg("%s: with B = 0 the embedding is off by %g", device, testing_relative_l2(b, a, MB * DIM));
    diff_of(&plain, "block2.linear.weight", x);
    diff_of(&lora, "block2.linear.lora_b.weight", y);
    for (int i = 0; i < WIDTH * WIDTH; i++) x[i] = (ki_real)(s * (double)x[i]);
    const double off = testing_relative_l2(y, x, WIDTH * WIDTH);
    if (!(off < 1e-6)) fail_msg("%s: the gradient of B is off by %g", device, off);
    diff_of(&lora, "block2.linear.lora_a.weight", y);
    for (int i = 0; i < WIDTH * WIDTH; i++) {
        if (y[i] != 0) fail_msg("%s: the gradient of A has %g at %d; wanted 0", device, (double)y[i], i);
    }
    diff_of(&plain, "embedding.weight", x);
    diff_of(&lora, "embedding.weight", y);
    if (!(testing_relative_l2(y, x, WIDTH * DIM) < 1e-6))
        fail_msg("%s: the embedding learns otherwise", device);
    side_release(&plain);
    side_release(&lora);
}

/* Only A, B and the embedding layer learn, and the backward of what is frozen leaves out the gradients of its weights. */
static void check_trained(const char *device) {
    const ki_adaptation how = {.rank = 3, .alpha = 6};
    side lora = side_make(device, &how);
    static const char *const wanted[] = {"block1.linear.lora_a.weight",
                                         "block1.linear.lora_b.weight",
                                         "block2.linear.lora_a.weight",
                                         "block2.linear.lora_b.weight",
                                         "embedding.weight",
                                         "embedding.bias"};
    size_t n = 0;
    for (int i = 0; i < ki_params_count(lora.params); i++) {
        const ki_param *p = ki_params_at(lora.params, i);
        if (!p->trained) continue;
        bool is_wanted = false;
        for (size_t k = 0; k < N_ROWS(wanted); k++) is_wanted |= strcmp(p->name, wanted[k]) == 0;
        if (!is_wanted) fail_msg("%s learns", p->name);
        n++;
    }
    assert_int_equal(n, N_ROWS(wanted));
    side_release(&lora);
}

/* What is frozen does not drop anything: step after step it gives the same. */
static void check_no_dropout(const char *device) {
    static const char *const freeze[] = {"", "backbone"};
    for (int is_frozen = 0; is_frozen < 2; is_frozen++) {
        static ki_real a[MB * DIM], b[MB * DIM];
        side s = side_make_dropout(device, &(ki_adaptation){.freeze = freeze[is_frozen]}, 0.5);
        side_step(&s, a);
        side_step(&s, b);
        if ((memcmp(a, b, sizeof a) == 0) != is_frozen)
            fail_msg("%s, freeze '%s': two steps give %s", device, freeze[is_frozen],
                     is_frozen ? "other vectors" : "the same vectors");
        side_release(&s);
    }
}

static const char *file(void) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/merged.safetensors", testing_folder());
    return path;
}

static void embed(side *s, ki_real *ret) { side_step(s, ret); }

/* The model file is that of a plain network which gives the same vectors; read back, the additions are 0. */
static void check_merged(const char *device) {
    static ki_real x[MOST], wanted[MB * DIM], found[MB * DIM];
    kith_error err;
    kith_tensors *tensors = NULL;
    const ki_adaptation how = {.rank = 3, .alpha = 6};
    side lora = side_make(device, &how), plain = side_make(device, &(ki_adaptation){0});
    embed(&plain, found);
    for (int i = 0; i < ki_params_count(lora.params); i++) {
        const ki_param *p = ki_params_at(lora.params, i);
        if (!p->trained) continue;
        fill(x, p->n, (uint32_t)i);
        set_param(&lora, p->name, x);
    }
    embed(&lora, wanted);
    if (testing_relative_l2(found, wanted, MB * DIM) < 0.1) fail_msg("%s: LoRA changes nothing", device);
    assert_ok(ki_weights_save(&lora.net, lora.params, NULL, NULL, file(), &err), &err);
    assert_ok(kith_tensors_open(file(), &tensors, &err), &err);
    for (int64_t i = 0; i < kith_tensors_count(tensors); i++) {
        if (strstr(kith_tensors_name(tensors, i), "lora"))
            fail_msg("the file has %s", kith_tensors_name(tensors, i));
    }
    assert_ok(ki_weights_import(tensors, &plain.net, plain.params, &err), &err);
    embed(&plain, found);
    double off = testing_relative_l2(found, wanted, MB * DIM);
    if (!(off < 1e-6)) fail_msg("%s: vectors of the merged file are off by %g", device, off);
    assert_ok(ki_weights_import(tensors, &lora.net, lora.params, &err), &err);
    embed(&lora, found);
    off = testing_relative_l2(found, wanted, MB * DIM);
    if (!(off < 1e-6)) fail_msg("%s: vectors of the file read back are off by %g", device, off);
    kith_tensors_free(tensors);
    side_release(&lora);
    side_release(&plain);
}

#endif
