/* A network is planned once for a tap, a format and a number of images, and few plans are kept. */
#include <string.h>

#include "kith/data.h"
#include "model/handle.h"
#include "support/testing.h"

enum { DIM = 6, SIDE = 16, N = 20, W = 24, H = 20 };

static uint8_t bytes[N][W * H * 3];
static kith_pixels picture[N];

static kith_model *open_model(int64_t batch) {
    kith_model *model = NULL;
    kith_error err;
    KITH_OPTIONS(kith_model_options, o);
    o.backbone = "convnet4";
    o.settings = "width=8";
    o.height = o.width = SIDE;
    o.embedding = DIM;
    o.seed = 3;
    o.batch = batch;
    assert_ok(kith_model_open(&o, &model, &err), &err);
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < W * H * 3; j++) bytes[i][j] = (uint8_t)((j * (i + 3) + j / (7 + i)) % 251);
        picture[i] = (kith_pixels){W, H, 3, bytes[i]};
    }
    return model;
}

static int count(const kith_model *model, int64_t *ret_images) {
    int n = 0;
    *ret_images = 0;
    for (int i = 0; i < KI_MOST_PLANS; i++) {
        n += model->plans.plan[i].embedder != NULL;
        *ret_images += model->plans.plan[i].batch;
    }
    return n;
}

static void embed(kith_model *model, int64_t n, const char *tap, const char *resize, float *ret) {
    kith_error err;
    KITH_OPTIONS(kith_embed_options, o);
    o.tap = tap;
    o.resize = resize;
    assert_ok(kith_model_embed_pixels(model, picture, n, &o, ret, &err), &err);
}

/* Calls that take turns, as those of a server do: pictures alone, in groups, other taps, other ways of resizing, and the floats of
 * one picture. The second round makes nothing new, and gives the same bits. */
static void test_turns_plan_once(void **state) {
    (void)state;
    static const struct {
        int64_t n;
        const char *tap, *resize;
    } calls[] = {{1, NULL, NULL},       {N, NULL, NULL},        {1, "map", NULL},
                 {1, NULL, "squash20"}, {5, NULL, "shorter20"}, {1, "pooled", NULL}};
    static float first[N_ROWS(calls)][N * 2048], again[N * 2048], floats[3 * SIDE * SIDE];
    kith_error err;
    ki_plans before;
    float row[DIM];
    int64_t n_images = 0;
    kith_model *model = open_model(32);
    for (size_t i = 0; i < N_ROWS(calls); i++)
        embed(model, calls[i].n, calls[i].tap, calls[i].resize, first[i]);
    /* 16, 4 and 1 pictures of the embedding, one of each other tap: resizing makes no other plan on the host. */
    assert_int_equal(count(model, &n_images), 5);
    assert_int_equal(n_images, 16 + 4 + 1 + 1 + 1);
    before = model->plans;
    for (size_t i = 0; i < N_ROWS(calls); i++) {
        embed(model, calls[i].n, calls[i].tap, calls[i].resize, again);
        if (memcmp(first[i], again, (size_t)calls[i].n * DIM * sizeof(float)) != 0)
            fail_msg("call %zu gives something else the second time", i);
    }
    assert_ok(kith_model_embed_floats(model, floats, 1, "embedding", row, &err), &err);
    for (int i = 0; i < KI_MOST_PLANS; i++)
        assert_ptr_equal(model->plans.plan[i].embedder, before.plan[i].embedder);
    if (memcmp(first[0], first[3], DIM * sizeof(float)) == 0) fail_msg("resizing changes nothing");
    kith_model_free(model);
}

static const ki_model_plan *find(const kith_model *model, const char *tap, int64_t batch) {
    for (int i = 0; i < KI_MOST_PLANS; i++) {
        const ki_model_plan *p = &model->plans.plan[i];
        if (p->embedder && p->batch == batch && strcmp(p->tap, tap) == 0) return p;
    }
    return NULL;
}

/* More kinds of calls than plans: the one that was used longest ago goes, and memory stays bounded. */
static void test_the_oldest_goes(void **state) {
    (void)state;
    static float images[12 * 3 * SIDE * SIDE], values[12 * DIM];
    kith_error err;
    int64_t n_images = 0;
    kith_model *model = open_model(32);
    for (int64_t n = 1; n <= 8; n++) {
        assert_ok(kith_model_embed_floats(model, images, n, "embedding", values, &err), &err);
        /* That of one image is used between all others. */
        assert_ok(kith_model_embed_floats(model, images, 1, "embedding", values, &err), &err);
    }
    assert_int_equal(count(model, &n_images), KI_MOST_PLANS);
    assert_non_null(find(model, "embedding", 1));
    assert_null(find(model, "embedding", 2));
    assert_null(find(model, "embedding", 3));
    for (int64_t n = 4; n <= 8; n++) assert_non_null(find(model, "embedding", n));
    kith_model_free(model);
    /* At most twice the largest batch, however few plans that are. */
    model = open_model(12);
    for (int64_t n = 8; n <= 12; n++) {
        assert_ok(kith_model_embed_floats(model, images, n, "embedding", values, &err), &err);
        count(model, &n_images);
        if (n_images > 24) fail_msg("plans of %lld images", (long long)n_images);
    }
    assert_non_null(find(model, "embedding", 12));
    assert_non_null(find(model, "embedding", 11));
    kith_model_free(model);
}

/* Plans that were made before a parameter was set use it. */
static void test_plans_hold_no_weights(void **state) {
    (void)state;
    kith_error err;
    float before[DIM], after[DIM], bias[DIM];
    kith_model *model = open_model(4);
    embed(model, 1, NULL, NULL, before);
    for (int i = 0; i < DIM; i++) bias[i] = 5;
    for (int64_t i = 0; i < kith_model_param_count(model); i++) {
        kith_model_param param;
        assert_true(kith_model_param_at(model, i, &param));
        if (strcmp(param.name, "embedding.bias") == 0)
            assert_ok(kith_model_param_set(model, i, bias, &err), &err);
    }
    embed(model, 1, NULL, NULL, after);
    for (int i = 0; i < DIM; i++) assert_float_equal(after[i], before[i] + 5, 1e-5);
    kith_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns_plan_once),
        cmocka_unit_test(test_the_oldest_goes),
        cmocka_unit_test(test_plans_hold_no_weights),
    };
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
