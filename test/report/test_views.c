/* The page of views: a row for each photo, a picture for each draw, and a name where a photo cannot be read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pictures), cmocka_unit_test(test_refusals)};
    const int n_failed = cmocka_run_group_tests_name("report/views", tests, NULL, NULL);
    testing_clean_up();
    return n_failed;
}
