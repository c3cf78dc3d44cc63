/* Where the marks of a map go and which pixels they paint, beside the rules written out over the whole canvas. */
#include "map/drawing.h"

#include <math.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "support/testing.h"

enum { SIZE = 64 };
static uint8_t wanted[SIZE * SIZE * 3], found[SIZE * SIZE * 3];

static void read_png(const ki_buffer *bytes) {
    png_image image = {.version = PNG_IMAGE_VERSION};
    assert_true(png_image_begin_read_from_memory(&image, bytes->data, bytes->n));
    assert_int_equal(image.width, SIZE);
    assert_int_equal(image.height, SIZE);
    image.format = PNG_FORMAT_RGB;
    assert_true(png_image_finish_read(&image, NULL, found, 0, NULL));
}

static void assert_painted(const ki_drawing *d, const char *what) {
    kith_error err = {0};
    ki_buffer bytes = {.err = &err};
    ki_drawing_png(d, &bytes);
    assert_ok(bytes.status, &err);
    read_png(&bytes);
    ki_buffer_release(&bytes);
    for (int i = 0; i < SIZE * SIZE * 3; i++) {
        if (found[i] != wanted[i])
            fail_msg("%s: pixel (%d, %d) channel %d is %d, wanted %d", what, i / 3 % SIZE, i / 3 / SIZE,
                     i % 3, found[i], wanted[i]);
    }
}

/* A disc with an edge one pixel soft. */
static void want_dot(const ki_drawing_mark *m, double radius) {
    for (int y = 0; y < SIZE; y++) {
        for (int x = 0; x < SIZE; x++) {
            const double distance = hypot(x + 0.5 - m->x, y + 0.5 - m->y);
            const double cover = fmin(1, fmax(0, radius + 0.5 - distance));
            uint8_t *to = wanted + 3 * (y * SIZE + x);
            for (int c = 0; c < 3; c++) to[c] = (uint8_t)lround(to[c] + cover * (m->colour[c] - to[c]));
        }
    }
}

static void test_dots(void **state) {
    (void)state;
    /* Inside, at two corners, and one over another. */
    ki_drawing_mark marks[] = {{.x = 30.25, .y = 20.75, .colour = {10, 120, 200}, .thumbnail = -1},
                               {.x = 0, .y = 0, .colour = {200, 0, 0}, .thumbnail = -1},
                               {.x = 63.5, .y = 63.5, .colour = {0, 200, 0}, .thumbnail = -1},
                               {.x = 33, .y = 22, .colour = {0, 0, 0}, .thumbnail = -1}};
    const ki_drawing d = {.size = SIZE, .radius = 4.3, .n_marks = N_ROWS(marks), .mark = marks};
    memset(wanted, 255, sizeof wanted);
    for (size_t i = 0; i < N_ROWS(marks); i++) want_dot(marks + i, d.radius);
    assert_painted(&d, "dots");
}

/* Thumbnails lie over dots, in a frame of the mark's colour one pixel wide, and end at the canvas. */
static void test_thumbnails(void **state) {
    (void)state;
    enum { SIDE = 5 };
    static uint8_t rgb[3 * SIDE * SIDE * 3];
    for (size_t i = 0; i < sizeof rgb; i++) rgb[i] = (uint8_t)(i * 7 + 1);
    ki_drawing_mark marks[] = {{.x = 20, .y = 30, .colour = {9, 8, 7}, .thumbnail = 1},
                               {.x = 21, .y = 30, .colour = {90, 80, 70}, .thumbnail = -1},
                               {.x = 0, .y = 62, .colour = {1, 2, 3}, .thumbnail = 2},
                               {.x = 63, .y = 1, .colour = {4, 5, 6}, .thumbnail = 0}};
    const ki_drawing d = {.size = SIZE,
                          .thumbnail_size = SIDE,
                          .radius = 6,
                          .n_marks = N_ROWS(marks),
                          .mark = marks,
                          .n_thumbnails = 3,
                          .rgb = rgb};
    memset(wanted, 255, sizeof wanted);
    want_dot(marks + 1, d.radius);
    for (size_t i = 0; i < N_ROWS(marks); i++) {
        const ki_drawing_mark *m = marks + i;
        if (m->thumbnail < 0) continue;
        const int left = (int)lround(m->x - 2.5), top = (int)lround(m->y - 2.5);
        for (int y = 0; y < SIZE; y++) {
            for (int x = 0; x < SIZE; x++) {
                const int in_x = x - left, in_y = y - top;
                if (in_x < -1 || in_y < -1 || in_x > SIDE || in_y > SIDE) continue;
                const bool is_inside = in_x >= 0 && in_y >= 0 && in_x < SIDE && in_y < SIDE;
                memcpy(wanted + 3 * (y * SIZE + x),
                       is_inside ? rgb + 3 * ((m->thumbnail * SIDE + in_y) * SIDE + in_x) : m->colour, 3);
            }
        }
    }
    assert_painted(&d, "thumbnails");
}

static ki_drawing drawing_of(const double *map, int64_t n, const int64_t *labels, double radius) {
    kith_array array = {.dtype = KITH_F64, .n_dims = 2, .dim = {n, 2}, .data = (void *)(uintptr_t)map};
    const kith_map_drawing from = {
        .size = sizeof(kith_map_drawing), .map = &array, .labels = labels, .side = 100, .radius = radius};
    ki_drawing d;
    kith_map_report report = {0};
    kith_error err = {0};
    assert_ok(ki_drawing_init(&from, &d, &report, &err), &err);
    return d;
}

/* The wider axis fills the canvas but for 4 % on each side, the other has the same scale; y points up. */
static void test_places(void **state) {
    (void)state;
    static const double map[] = {-1, 5, 3, 7, 1, 6, 0, 5.5};
    static const double places[] = {4, 73, 96, 27, 50, 50, 27, 61.5};
    ki_drawing d = drawing_of(map, 4, NULL, 0);
    for (int i = 0; i < 4; i++) {
        if (fabs(d.mark[i].x - places[2 * i]) > 1e-9 || fabs(d.mark[i].y - places[2 * i + 1]) > 1e-9)
            fail_msg("mark %d at (%g, %g), wanted (%g, %g)", i, d.mark[i].x, d.mark[i].y, places[2 * i],
                     places[2 * i + 1]);
        assert_int_equal(d.mark[i].thumbnail, -1);
        assert_memory_equal(d.mark[i].colour, d.mark[0].colour, 3);
    }
    assert_true(d.radius == 6); /* 0.2 * 100 / 2 = 10 is cut */
    ki_drawing_release(&d);
    d = drawing_of(map, 1, NULL, 0); /* one point: in the middle, whatever the scale */
    assert_true(d.mark[0].x == 50 && d.mark[0].y == 50);
    ki_drawing_release(&d);
    d = drawing_of(map, 4, NULL, 2.5);
    assert_true(d.radius == 2.5);
    ki_drawing_release(&d);
}

/* Colours far apart for neighbouring labels, the same for the same label, never too light to see on white. */
static void test_colours(void **state) {
    (void)state;
    enum { N = 60 };
    double map[2 * N];
    int64_t labels[N];
    for (int i = 0; i < N; i++) map[2 * i] = i, map[2 * i + 1] = i * i, labels[i] = i % 50;
    ki_drawing d = drawing_of(map, N, labels, 0);
    for (int i = 0; i < N; i++) {
        const uint8_t *a = d.mark[i].colour, *b = d.mark[(i + 1) % 50].colour;
        const int apart = abs(a[0] - b[0]) + abs(a[1] - b[1]) + abs(a[2] - b[2]);
        if (i < 49 && apart < 120)
            fail_msg("labels %d and %d: colours %d apart, wanted 120", i, i + 1, apart);
        if (i >= 50) assert_memory_equal(a, d.mark[i - 50].colour, 3);
        if (a[0] + a[1] + a[2] > 600) fail_msg("label %d: %d %d %d is nearly white", i, a[0], a[1], a[2]);
    }
    ki_drawing_release(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dots),
        cmocka_unit_test(test_thumbnails),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_colours),
    };
    return cmocka_run_group_tests_name("eval/drawing", tests, NULL, NULL);
}
