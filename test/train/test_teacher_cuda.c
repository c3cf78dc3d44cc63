/* Teachers beside a learner: what an objective gets is what the teacher says of the very images that the learner sees, prepared as the
 * teacher wants them; on a device the same as on the host, through warm-up, recording and launching; items without a class. */
#include "train/drawn.h"

#include <math.h>

#include "objective/objective.h"

enum { BATCH = 8, N_TEACHERS = 2 };

/* Of the learners that are made from now on, with frozen batch norms; 0: whole batches. */
static int64_t chunk;

/* A learner with two teachers: one prepares images in another order and scale, the other as the network itself. */
typedef struct taught {
    setup *setup;
    ki_teacher teacher[N_TEACHERS];
} taught;

static kith_preprocess way_of(int t) {
    const kith_transform own = transform_of();
    kith_preprocess way = {.bgr = own.bgr, .scale = own.pixel_scale};
    for (int k = 0; k < 3; k++) way.mean[k] = own.mean[k], way.std[k] = own.std[k];
    if (t == 1) return way;
    way.bgr = false;
    way.scale = 1;
    for (int k = 0; k < 3; k++) way.mean[k] = 100 + 10 * k, way.std[k] = 50 + 5 * k;
    return way;
}

/* The first says pooled features, the second an embedding. */
static void make_teacher(taught *all, int t, ki_backend *backend) {
    kith_error err;
    ki_teacher *teacher = &all->teacher[t];
    const ki_net_options net = {
        .backbone = "convnet4", .c = 3, .h = SIDE, .w = SIDE, .embedding = t ? 12 : 0};
    assert_ok(ki_net_init(&net, &teacher->net, &err), &err);
    teacher->net.preprocess = way_of(t);
    assert_ok(ki_params_new(teacher->net.graph, backend, &teacher->params, &err), &err);
    assert_ok(ki_params_init(teacher->params, (uint64_t)(20 + t), &err), &err);
}

static taught *make(const char *device, const char *objective, int64_t n_unlabelled, int n_micro) {
    const kith_transform t = transform_of();
    taught *all = calloc(1, sizeof *all);
    char optim[80];
    assert_non_null(all);
    snprintf(optim, sizeof optim, "{lr: 1e-2, steps: 1, accumulate: %d}", n_micro);
    ki_backend *backend = op_backend(device, &(ki_backend_options){.deterministic = true});
    for (int k = 0; k < N_TEACHERS; k++) make_teacher(all, k, backend);
    all->setup = setup_make(backend, 3, 8, 1, objective, optim,
                            (ki_learner_settings){.batch = BATCH,
                                                  .format = ki_feed_format(backend, NULL, &t),
                                                  .transform = &t,
                                                  .teacher = all->teacher,
                                                  .n_teachers = N_TEACHERS,
                                                  .n_unlabelled = n_unlabelled,
                                                  .chunk = chunk,
                                                  .frozen_bn = chunk > 0});
    const ki_batch_memory memory = ki_feed_memory(backend);
    if (memory.take) all->setup->pinned = memory.take(memory.user, sizeof pixels);
    return all;
}

static void drop(taught *all) {
    setup *s = all->setup;
    const ki_batch_memory memory = ki_feed_memory(s->backend);
    if (s->pinned) memory.give(memory.user, s->pinned);
    s->pinned = NULL;
    ki_learner_free(s->learner); /* before its teachers */
    s->learner = NULL;
    for (int t = 0; t < N_TEACHERS; t++) ki_teacher_release(&all->teacher[t]);
    setup_release(s);
    free(all);
}

/* What teacher t says of images [0, n), by a plan of its own from floats that its own transform made. */
static void say(taught *all, int t, int n, float *ret_rows) {
    kith_error err;
    kith_transform way = transform_of();
    const kith_preprocess own = way_of(t);
    static float input[BATCH * 3 * SIDE * SIDE];
    ki_teacher *teacher = &all->teacher[t];
    ki_plan *plan = NULL;
    ki_edge edge;
    void *rows = NULL;
    way.bgr = own.bgr;
    way.pixel_scale = own.scale;
    for (int k = 0; k < 3; k++) way.mean[k] = own.mean[k], way.std[k] = own.std[k];
    draw_floats(&way, n, input);
    assert_ok(ki_teacher_plan(teacher, all->setup->backend, n, &plan, &edge, &rows, &err), &err);
    assert_ok(ki_plan_set_input(plan, input, &err), &err);
    assert_ok(ki_plan_forward(plan, &err), &err);
    assert_ok(ki_plan_read(plan, t ? "embedding" : "pooled", ret_rows, &err), &err);
    ki_plan_free(plan);
}

static const char objective[] =
    "{loss: binomial, regularizers: [{name: relational, teacher: 1, form: softmax, temperature: 0.2},"
    " {name: match, form: squared, weight: 0.1}, {name: match, teacher: 1, weight: 0.3}]}";

/* The terms' values are those of the objective on arrays: the learner's embedding and what the teachers say. */
static void check_terms(const char *device) {
    kith_error err;
    taught *all = make(device, objective, 0, 1);
    setup *s = all->setup;
    static float x[BATCH * DIM], rows[N_TEACHERS][BATCH * 1024];
    ki_value *section = NULL;
    ki_objective *wanted = NULL;
    ki_result result;
    ki_batch batch = {.m = BATCH, .label = labels};
    add(s, 0, BATCH, 0);
    assert_ok(ki_learner_embedding(s->learner, x, &err), &err);
    batch.tap[KI_TAP_EMBEDDING] = (ki_tap_data){.data = x, .rows = BATCH, .cols = DIM};
    ki_sizes sizes = {.n_classes = CLASSES, .embedding = DIM, .pooled = 8, .map = 8, .heads = 1};
    for (int t = 0; t < N_TEACHERS; t++) {
        sizes.teacher[t] = ki_teacher_width(&all->teacher[t]);
        assert_true(sizes.teacher[t] <= 1024);
        say(all, t, BATCH, rows[t]);
        batch.tap[ki_tap_of_teacher(t)] =
            (ki_tap_data){.data = rows[t], .rows = BATCH, .cols = sizes.teacher[t]};
    }
    assert_ok(setup_parse(s, objective, &section, &err), &err);
    assert_ok(ki_objective_new(section, &sizes, 3, &wanted, &err), &err);
    assert_ok(ki_objective_evaluate(wanted, &batch, &result, &err), &err);
    update(s, 1e-2);
    const ki_learner_values found = read(s);
    assert_int_equal(found.n_terms, 4);
    for (size_t i = 0; i < found.n_terms; i++) {
        if (!(fabs(found.term[i].value - result.term[i].value) <= 1e-4 * fabs(result.term[i].value)))
            fail_msg("%s on %s: %.9g, wanted %.9g", result.term[i].name, device, found.term[i].value,
                     result.term[i].value);
    }
    ki_objective_free(wanted);
    drop(all);
}

static void test_what_the_objective_gets(void **state) {
    (void)state;
    check_terms("cpu");
    check_terms("cuda");
}

/* Steps on both, compared one by one. Smaller batches in between have plans of their own. */
static void follow(const char *terms, int64_t n_unlabelled, int n_micro) {
    static const int sizes[] = {8, 8, 8, 6, 8, 6, 6, 6, 8, 0};
    taught *host = make("cpu", terms, n_unlabelled, n_micro),
           *device = make("cuda", terms, n_unlabelled, n_micro);
    int32_t before[MOST_IMAGES];
    memcpy(before, labels, sizeof before);
    for (uint64_t step = 0; sizes[step] > 0; step++) {
        const int n = sizes[step], first = BATCH * (int)(step % 3);
        memcpy(labels, before, sizeof before);
        for (int64_t i = n - n_unlabelled; i < n; i++) labels[first + i] = -1;
        for (int m = 0; m < n_micro; m++) {
            add(host->setup, first, n, step);
            add(device->setup, first, n, step);
        }
        update(host->setup, 1e-3);
        update(device->setup, 1e-3);
        const ki_learner_values a = read(host->setup), b = read(device->setup);
        assert_true(a.is_finite && b.is_finite);
        assert_int_equal(a.n_pos, b.n_pos);
        for (size_t i = 0; i < a.n_terms; i++) {
            if (!(fabs(b.term[i].value - a.term[i].value) <= 2e-3 * (fabs(a.term[i].value) + 1e-4)))
                fail_msg("step %llu: %s is %.9g, wanted %.9g", (unsigned long long)step, a.term[i].name,
                         b.term[i].value, a.term[i].value);
        }
    }
    memcpy(labels, before, sizeof before);
    drop(host);
    drop(device);
}

static void test_the_device_follows_the_host(void **state) {
    (void)state;
    follow(objective, 0, 1);
}

static void test_micro_batches(void **state) {
    (void)state;
    follow(objective, 0, 2);
}

/* Chunks of three images: the teachers see each once. */
static void test_chunks(void **state) {
    (void)state;
    chunk = 3;
    check_terms("cpu");
    check_terms("cuda");
    follow(objective, 0, 2);
    follow(objective, 4, 1);
    chunk = 0;
}

static void test_items_without_a_class(void **state) {
    (void)state;
    follow(objective, 4, 1);
}

/* A teacher is not changed by training. */
static void test_a_teacher_stays(void **state) {
    (void)state;
    static float before[BATCH * 1024], after[BATCH * 1024];
    taught *all = make("cpu", objective, 0, 1);
    say(all, 1, BATCH, before);
    for (uint64_t step = 0; step < 3; step++) {
        add(all->setup, 0, BATCH, step);
        update(all->setup, 1e-2);
    }
    say(all, 1, BATCH, after);
    assert_memory_equal(before, after, (size_t)(BATCH * 12) * sizeof *before);
    drop(all);
}

static void test_another_size_is_refused(void **state) {
    (void)state;
    kith_error err = {0};
    const kith_transform t = transform_of();
    ki_backend *backend = op_backend("cpu", NULL);
    ki_net own = {0}, other = {0};
    ki_feed *feed = NULL;
    ki_net_options net = {.backbone = "convnet4", .c = 3, .h = SIDE, .w = SIDE};
    assert_ok(ki_net_init(&net, &own, &err), &err);
    net.h = net.w = 32;
    assert_ok(ki_net_init(&net, &other, &err), &err);
    assert_ok(ki_feed_new(backend, &own, 4, KI_BATCH_FLOAT, &t, &feed, &err), &err);
    assert_int_equal(ki_feed_add_view(feed, &other, &err), KITH_ESHAPE);
    assert_string_equal(err.message, "convnet4 takes 3x32x32; the batches are 3x16x16");
    ki_feed_free(feed);
    ki_net_release(&own);
    ki_net_release(&other);
    ki_backend_close(backend);
}

static int draw(void **state) {
    (void)state;
    draw_images();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_the_objective_gets), cmocka_unit_test(test_the_device_follows_the_host),
        cmocka_unit_test(test_micro_batches),           cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_items_without_a_class),   cmocka_unit_test(test_a_teacher_stays),
        cmocka_unit_test(test_another_size_is_refused)};
    return cmocka_run_group_tests_name("train/teachers", tests, draw, NULL);
}
