/* A photo that was indexed and the same photo uploaded have one vector. */
#include "model/uploads.h"

static void test_one_vector(void **state) {
    (void)state;
    uploads_compare_all("cpu");
}

/* One at a time both ways are the same arithmetic: not a bit may differ. */
static void test_one_at_a_time(void **state) {
    (void)state;
    static char path[UPLOADS_N][1024];
    static const char *const resize[] = {"squash32", "shorter32", "pad32", "atmost32", "none"};
    kith_error err;
    float found[UPLOADS_DIM], wanted[UPLOADS_DIM];
    uploads_write(path);
    for (size_t r = 0; r < N_ROWS(resize); r++) {
        kith_model *model = uploads_model("cpu", resize[r], 3);
        for (int i = 0; i < UPLOADS_N; i++) {
            const char *const paths[] = {path[i]};
            ki_image image = {0};
            uploads_decode(model, path[i], &image);
            const kith_pixels pixels = {image.w, image.h, image.channels, image.data};
            assert_ok(kith_model_embed_files(model, paths, 1, NULL, wanted, NULL, &err), &err);
            assert_ok(kith_model_embed_pixels(model, &pixels, 1, NULL, found, &err), &err);
            if (memcmp(found, wanted, sizeof found) != 0)
                fail_msg("%s, photo %d of %d x %d: %g off", resize[r], i, uploads_photo[i].w,
                         uploads_photo[i].h, testing_relative_l2(found, wanted, UPLOADS_DIM));
            ki_image_release(&image);
        }
        kith_model_free(model);
    }
}

/* Photos and a network as people have them. */
static void test_photos_of_birds(void **state) {
    (void)state;
    static const char *const names[] = {"0001_545", "0002_1027", "0003_1033", "0004_930", "0005_565"};
    char weights[1024], path[N_ROWS(names)][1200];
    const char *paths[N_ROWS(names)];
    const char *found = testing_shared("weights/googlenet_bvlc.safetensors");
    kith_error err;
    if (!found) skip();
    snprintf(weights, sizeof weights, "%s", found);
    found = testing_shared("data/CUB_200_2011/images/002.Laysan_Albatross");
    if (!found) skip();
    for (size_t i = 0; i < N_ROWS(names); i++) {
        snprintf(path[i], sizeof path[i], "%s/Laysan_Albatross_%s.jpg", found, names[i]);
        paths[i] = path[i];
    }
    static const char *const resize[] = {"shorter128", "pad200"};
    for (size_t i = 0; i < N_ROWS(resize); i++) {
        kith_model *model = NULL;
        KITH_OPTIONS(kith_model_options, o);
        o.weights = weights;
        o.backbone = "googlenet";
        o.resize = resize[i];
        assert_ok(kith_model_open(&o, &model, &err), &err);
        uploads_compare(model, paths, (int64_t)N_ROWS(names), resize[i]);
        kith_model_free(model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_vector),
        cmocka_unit_test(test_one_at_a_time),
        cmocka_unit_test(test_photos_of_birds),
    };
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
