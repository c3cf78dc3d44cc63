/* Heat maps: colour lies where the shares are, in the picture's own pixels. */
#include "report/heat.h"

#include <stdio.h>
#include <string.h>

#include "support/testing.h"

enum { W = 80, H = 40 };

/* A grey picture of an image twice its size; the network saw the middle, 80 x 80 pixels of 160 x 80, as 2 x 2 positions. */
static double shares[4];
static const kith_explanation why = {.score = 1, .rows = 2, .columns = 2};

static ki_image lay(const double given[4]) {
    ki_image picture = {0}, drawn = {0};
    kith_error err = {0};
    memcpy(shares, given, sizeof shares);
    const kith_shares of = {.share = shares, .view = {40, 0, 80, 80}, .width = 2 * W, .height = 2 * H};
    assert_ok(ki_image_shape(&picture, W, H, 1, &err), &err);
    memset(picture.data, 100, W * H);
    assert_ok(ki_heat_lay(&picture, &why, &of, &drawn, &err), &err);
    ki_image_release(&picture);
    assert_int_equal(drawn.w, W);
    assert_int_equal(drawn.h, H);
    assert_int_equal(drawn.channels, 3);
    return drawn;
}

static void assert_colour(const ki_image *drawn, int x, int y, int r, int g, int b) {
    const uint8_t *p = drawn->data + 3 * (y * W + x);
    if (p[0] != r || p[1] != g || p[2] != b)
        fail_msg("(%d, %d) is %d, %d, %d; wanted %d, %d, %d", x, y, p[0], p[1], p[2], r, g, b);
}

static void test_colours(void **state) {
    (void)state;
    /* In the picture's pixels the view is x 20 … 59; positions begin at 20 and 40, and at 0 and 20. */
    ki_image drawn = lay((double[]){0, 0.5, -0.25, 0});
    assert_colour(&drawn, 10, 20, 200, 200, 200); /* not seen: pale */
    assert_colour(&drawn, 70, 20, 200, 200, 200);
    assert_colour(&drawn, 21, 1, 100, 100, 100); /* nothing: the picture */
    assert_colour(&drawn, 58, 38, 100, 100, 100);
    assert_colour(&drawn, 58, 1, 216, 198, 25); /* the largest: 3/4 yellow */
    assert_colour(&drawn, 21, 38, 74, 96, 158); /* half as strong, against it: 3/8 blue */
    ki_image_release(&drawn);
}

/* Without shares there is nothing to draw. */
static void test_zeros(void **state) {
    (void)state;
    ki_image drawn = lay((double[]){0, 0, 0, 0});
    assert_colour(&drawn, 30, 20, 100, 100, 100);
    ki_image_release(&drawn);
}

/* An image that is 30 high and one that is 50 high, side by side on white. */
static void test_a_row_of_pictures(void **state) {
    (void)state;
    ki_bytes file[2] = {{0}};
    ki_image source = {0}, drawn = {0};
    kith_error err = {0};
    kith_query_image image[2];
    kith_shares of[2];
    for (int i = 0; i < 2; i++) {
        assert_ok(ki_image_shape(&source, 40, 30 + 20 * i, 3, &err), &err);
        memset(source.data, 100, (size_t)source.w * (size_t)source.h * 3);
        assert_ok(ki_png_encode(&source, &file[i], &err), &err);
        image[i] = (kith_query_image){.bytes = file[i].data, .n_bytes = file[i].n, .weight = 1};
        of[i] = (kith_shares){
            .share = shares, .view = {0, 0, 40, 30 + 20 * i}, .width = 40, .height = 30 + 20 * i};
    }
    memset(shares, 0, sizeof shares);
    const kith_explanation two = {.rows = 2, .columns = 2, .query = &of[0], .n = 1, .hit = of[1]};
    assert_ok(ki_heat_draw(&two, &image[0], &image[1], &drawn, &err), &err);
    assert_int_equal(drawn.w, 40 + 12 + 40);
    assert_int_equal(drawn.h, 50);
    const struct {
        int x, y, grey;
    } rows[] = {{0, 9, 255},   {0, 10, 100}, {39, 39, 100}, {39, 40, 255},
                {45, 25, 255}, {52, 0, 100}, {91, 49, 100}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        const int found = drawn.data[3 * (rows[i].y * drawn.w + rows[i].x)];
        if (found != rows[i].grey)
            fail_msg("(%d, %d) is %d, wanted %d", rows[i].x, rows[i].y, found, rows[i].grey);
    }
    /* An image that cannot be read is the error. */
    image[1] = (kith_query_image){.path = "/nowhere/at/all.png"};
    assert_int_equal(ki_heat_draw(&two, &image[0], &image[1], &drawn, &err), KITH_EIO);
    ki_image_release(&source);
    ki_image_release(&drawn);
    for (int i = 0; i < 2; i++) ki_bytes_release(&file[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_colours), cmocka_unit_test(test_zeros),
                                       cmocka_unit_test(test_a_row_of_pictures)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
