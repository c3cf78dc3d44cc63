/* Every loss with every regularizer of the tables on a vision transformer of two blocks: one training step on the cpu and on cuda, whose
 * values and gradients are the same, and reach the first layer. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "objective/taps.h"
#include "support/op_check.h"
#include "train/describe.h"
#include "train/learner.h"

enum { IMAGES = 6, PIXELS = 32, WIDTH = 16, DIM = 8, N_CLASSES = 3 };
static const char network[] = "{depth: 2, width: 16, heads: 2, patch: 16, grid: 2}";
static const char first_layer[] = "patch_embed.proj.weight";

static float images[IMAGES * 3 * PIXELS * PIXELS];
static int32_t labels[IMAGES];

/* A backend with the network on it, which all methods share. */
typedef struct side {
    ki_backend *backend;
    ki_net net;
    ki_params *params;
    ki_teacher teacher;
    float *gradient; /* of all parameters, of the last step */
    double first;    /* squares of the first layer's */
    ki_learner_values values;
    ki_term term[4];
} side;

static side sides[2];

static void parse(ki_arena *arena, const char *yaml, ki_value **ret) {
    kith_error err = {0};
    const kith_status status = ki_yaml_parse(yaml, strlen(yaml), "test", arena, ret, &err);
    if (status != KITH_OK) fail_msg("%s: %s", yaml, err.message);
}

static void open_side(side *s, const char *device) {
    kith_error err = {0};
    ki_arena arena = {0};
    ki_value *settings = NULL;
    parse(&arena, network, &settings);
    const ki_net_options net = {.backbone = "vit_s",
                                .settings = settings,
                                .c = 3,
                                .h = PIXELS,
                                .w = PIXELS,
                                .pool = KI_POOLING_CLASS_AVG,
                                .embedding = DIM};
    s->backend = op_backend(device, &(ki_backend_options){.deterministic = true});
    assert_ok(ki_net_init(&net, &s->net, &err), &err);
    assert_ok(ki_params_new(s->net.graph, s->backend, &s->params, &err), &err);
    assert_ok(ki_net_init(&net, &s->teacher.net, &err), &err);
    assert_ok(ki_params_new(s->teacher.net.graph, s->backend, &s->teacher.params, &err), &err);
    assert_ok(ki_params_init(s->teacher.params, 4, &err), &err);
    s->teacher.net.preprocess =
        (kith_preprocess){.scale = 1, .std = {1, 1, 1}}; /* it sees what the network sees */
    ki_arena_release(&arena);
}

static int open_both(void **state) {
    (void)state;
    open_side(&sides[0], "cpu");
    open_side(&sides[1], "cuda");
    ki_rng rng = ki_rng_at(5, KI_RNG_TEST, 0, 0);
    for (size_t i = 0; i < N_ROWS(images); i++) images[i] = 2 * ki_rng_float(&rng) - 1;
    for (int i = 0; i < IMAGES; i++) labels[i] = i / 2 % N_CLASSES;
    return 0;
}

static int close_both(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        ki_params_free(sides[i].params);
        ki_net_release(&sides[i].net);
        ki_teacher_release(&sides[i].teacher);
        ki_backend_close(sides[i].backend);
    }
    return 0;
}

static int64_t read_gradient(side *s) {
    kith_error err = {0};
    int64_t n = 0, all = 0;
    for (int i = 0; i < ki_params_count(s->params); i++) all += ki_params_at(s->params, i)->n;
    s->gradient = ki_zalloc((size_t)all, sizeof *s->gradient);
    for (int i = 0; i < ki_params_count(s->params); i++) {
        const ki_param *p = ki_params_at(s->params, i);
        if (!p->trained) continue;
        assert_ok(ki_params_get_diff(s->params, p, s->gradient + n, &err), &err);
        if (strcmp(p->name, first_layer) == 0) {
            s->first = 0;
            for (int64_t k = 0; k < p->n; k++) s->first += pow((double)s->gradient[n + k], 2);
        }
        n += p->n;
    }
    return n;
}

/* One step from the first values. Returns how many numbers the gradient has. */
static int64_t step(side *s, const char *recipe) {
    const ki_sizes sizes = {
        .n_classes = N_CLASSES, .embedding = DIM, .pooled = WIDTH, .map = WIDTH, .teacher = {DIM}};
    kith_error err = {0};
    made m = made_of(recipe, &sizes);
    ki_arena arena = {0};
    ki_value *optim = NULL;
    ki_optim_settings how;
    ki_learner *learner = NULL;
    parse(&arena, "{name: adamw, lr: 1e-3, steps: 1, clip: 1, layer_decay: 0.7}", &optim);
    assert_ok(ki_optim_parse(optim, &how, &err), &err);
    assert_ok(ki_params_init(s->params, 3, &err), &err);
    const kith_transform as_it_is = {.pixel_scale = 1, .std = {1, 1, 1}};
    const ki_learner_settings settings = {.backend = s->backend,
                                          .transform = &as_it_is,
                                          .net = &s->net,
                                          .params = s->params,
                                          .objective = m.objective,
                                          .batch = IMAGES,
                                          .n_micro = 1,
                                          .seed = 3,
                                          .teacher = &s->teacher,
                                          .n_teachers = 1,
                                          .optim = &how};
    assert_ok(ki_learner_new(&settings, &learner, &err), &err);
    const ki_learner_batch batch = {.n = IMAGES, .data = images, .label = labels};
    assert_ok(ki_learner_add(learner, &batch, 0, &err), &err);
    const int64_t n = read_gradient(s);
    assert_ok(ki_learner_update(learner, 1e-3, &err), &err);
    assert_ok(ki_learner_read(learner, &s->values, &err), &err);
    assert_in_range(s->values.n_terms, 1, N_ROWS(s->term));
    memcpy(s->term, s->values.term, s->values.n_terms * sizeof *s->term);
    ki_learner_free(learner);
    ki_arena_release(&arena);
    made_free(&m);
    return n;
}

static void near(const char *recipe, const char *what, double found, double wanted, double tolerance) {
    if (!(fabs(found - wanted) <= tolerance * (fabs(wanted) + 1e-6)))
        fail_msg("%s: %s is %.9g, wanted %.9g", recipe, what, found, wanted);
}

static double worst;

static void check_step(const side *s, const char *recipe) {
    if (!s->values.is_finite || !isfinite(s->values.total))
        fail_msg("%s: the total is %g", recipe, s->values.total);
    if (!(s->first > 0)) fail_msg("%s: the gradient of %s is %g", recipe, first_layer, s->first);
}

static void compare(const char *recipe, int64_t n) {
    const side *a = &sides[0], *b = &sides[1];
    near(recipe, "the total", b->values.total, a->values.total, 1e-3);
    for (size_t i = 0; i < a->values.n_terms; i++)
        near(recipe, "a term", b->term[i].value, a->term[i].value, 1e-3);
    for (int g = 0; g < KI_N_GROUPS; g++)
        near(recipe, ki_learner_group_name((ki_learner_group)g), b->values.grad_norm[g],
             a->values.grad_norm[g], 5e-3);
    const double off = testing_relative_l2(b->gradient, a->gradient, n);
    worst = fmax(worst, off);
    if (!(off < 1e-3)) fail_msg("%s: gradients differ by %.3g, at most 1e-3 wanted", recipe, off);
}

static void check(const char *recipe) {
    int64_t n = 0;
    for (int i = 0; i < 2; i++) {
        n = step(&sides[i], recipe);
        check_step(&sides[i], recipe);
    }
    compare(recipe, n);
    for (int i = 0; i < 2; i++) ki_free(sides[i].gradient);
}

static void test_every_loss_with_every_regularizer(void **state) {
    (void)state;
    char recipe[256];
    int n = 0;
    for (size_t i = 0; ki_loss_at(i); i++) {
        const char *loss = ki_loss_at(i)->method.name;
        snprintf(recipe, sizeof recipe, "loss: {name: %s}", loss);
        check(recipe);
        for (size_t k = 0; ki_reg_at(k); k++, n++)
            check(taps_recipe(loss, ki_reg_at(k)->method.name, recipe, sizeof recipe));
    }
    print_message("%d pairs; gradients differ by %.2g at most\n", n, worst);
    assert_true(n > 200);
}

int main(void) {
    ki_threads_set(1); /* the network is small: threads would only wait for each other */
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_loss_with_every_regularizer)};
    return cmocka_run_group_tests_name("train/methods on tokens", tests, open_both, close_both);
}
