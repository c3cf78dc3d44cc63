/* The page of views: a row for each photo, a picture for each draw, and a name where a photo cannot be read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/image/image.h"
#include "kith/report.h"
#include "support/testing.h"

static char output[65536];

static int count(const char *text, const char *what) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)); at++) n++;
    return n;
}

static const char *in_folder(const char *name) {
    static char path[4][1024];
    static int at;
    char *to = path[at = (at + 1) % 4];
    snprintf(to, sizeof path[0], "%s/%s", testing_folder(), name);
    return to;
}

static void make(void) {
    if (testing_run(output, sizeof output, "cd %s && rm -rf glyphs && %s synth glyphs --classes 4 --images 3",
                    testing_folder(), testing_program()) != 0)
        fail_msg("%s", output);
    testing_write(
        in_folder("recipe.yaml"),
        "data: {root: none, validation: 0}\neval: {select: last}\ninput: {resize: none, augment: multiscale, "
        "crop: 32, channels: 1}\n"
        "model: {backbone: convnet4, embedding: 8}\nobjective: {loss: triplet}\nbatch: {classes: 2}\n"
        "optim: {steps: 1}\n");
}

static char *write_page(const kith_views_options *options) {
    kith_error err = {0};
    assert_ok(kith_views_write(in_folder("recipe.yaml"), in_folder("views.html"), options, &err), &err);
    return testing_read(in_folder("views.html"));
}

static void test_pictures(void **state) {
    (void)state;
    make();
    char root[1100];
    snprintf(root, sizeof root, "data.root=%s", in_folder("glyphs"));
    const char *const sets[] = {root};
    KITH_OPTIONS(kith_views_options, options);
    options.sets = sets;
    options.n_sets = 1;
    options.n_images = 2;
    options.n_draws = 3;
    char *page = write_page(&options), *again = write_page(&options);
    assert_string_equal(page, again);
    assert_int_equal(count(page, "<section>"), 2);
    assert_int_equal(count(page, "src=\"data:image/"), 2 * (1 + 1 + 3));
    assert_int_equal(count(page, ">draw 3<"), 2);
    assert_null(strstr(page, "http://"));
    free(page);
    free(again);
    /* A photo that is none, and more photos than there are. */
    assert_int_equal(
        0, testing_run(output, sizeof output, "cd %s/glyphs && for f in */*0.png; do echo no > $f; done",
                       testing_folder()));
    options.n_images = 100;
    page = write_page(&options);
    assert_int_equal(count(page, "<section>"), 6); /* half of the classes train */
    assert_true(count(page, "Left out: ") >= 1);
    free(page);
}

/* The same photos as one picture: tiles of 72 pixels, 4 apart on grey, decoded as any image is. */
static void read_picture(const char *name, ki_image *ret) {
    kith_error err = {0};
    ki_bytes bytes = {0};
    assert_ok(ki_bytes_read(&bytes, in_folder(name), &err), &err);
    assert_ok(ki_image_decode(bytes.data, bytes.n, &(ki_decode){0}, ret, &err), &err);
    ki_bytes_release(&bytes);
}

static bool is_ground(const ki_image *picture, int column, int row) {
    for (int y = 4 + 76 * row; y < 4 + 76 * row + 72; y++) {
        for (int x = 4 + 76 * column; x < 4 + 76 * column + 72; x++) {
            const uint8_t *at = picture->data + ((int64_t)y * picture->w + x) * 3;
            if (at[0] != 0xcc || at[1] != 0xcc || at[2] != 0xcc) return false;
        }
    }
    return true;
}

static void test_one_picture(void **state) {
    (void)state;
    char root[1100];
    kith_error err = {0};
    ki_image png = {0}, jpeg = {0};
    make();
    snprintf(root, sizeof root, "data.root=%s", in_folder("glyphs"));
    const char *const sets[] = {root};
    KITH_OPTIONS(kith_views_options, options);
    options.sets = sets;
    options.n_sets = 1;
    options.n_images = 2;
    options.n_draws = 3;
    /* The first photo shown is no photo: its row stays empty, the other's does not. */
    assert_int_equal(
        0, testing_run(output, sizeof output, "echo no > %s/glyphs/glyph00000/00000.png", testing_folder()));
    assert_ok(kith_views_write(in_folder("recipe.yaml"), in_folder("views.PNG"), &options, &err), &err);
    assert_ok(kith_views_write(in_folder("recipe.yaml"), in_folder("views.jpg"), &options, &err), &err);
    read_picture("views.PNG", &png);
    read_picture("views.jpg", &jpeg);
    assert_int_equal(png.w, 4 + 5 * 76);
    assert_int_equal(png.h, 4 + 2 * 76);
    assert_true(jpeg.w == png.w && jpeg.h == png.h);
    for (int column = 0; column < 5; column++) {
        if (!is_ground(&png, column, 0))
            fail_msg("tile %d of a photo that cannot be read shows something", column);
        if (is_ground(&png, column, 1)) fail_msg("tile %d is empty", column);
    }
    ki_image_release(&png);
    ki_image_release(&jpeg);
}

static void test_refusals(void **state) {
    (void)state;
    kith_error err = {0};
    make();
    KITH_OPTIONS(kith_views_options, options);
    options.n_draws = 0;
    assert_int_equal(kith_views_write(in_folder("recipe.yaml"), in_folder("no.html"), &options, &err),
                     KITH_EINVAL);
    assert_string_equal(err.message, "n_draws is 0; wanted 1 to 100");
    assert_int_not_equal(kith_views_write(in_folder("recipe.yaml"), in_folder("no.html"), NULL, &err),
                         KITH_OK);
    assert_int_not_equal(testing_run(output, sizeof output, "test -e %s", in_folder("no.html")), 0);
    assert_int_equal(testing_run(output, sizeof output, "%s data %s --views %s", testing_program(),
                                 in_folder("glyphs"), in_folder("no.html")),
                     2);
    if (!strstr(output, "--views wants a recipe")) fail_msg("%s", output);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pictures), cmocka_unit_test(test_one_picture),
                                       cmocka_unit_test(test_refusals)};
    const int n_failed = cmocka_run_group_tests_name("report/views", tests, NULL, NULL);
    testing_clean_up();
    return n_failed;
}
