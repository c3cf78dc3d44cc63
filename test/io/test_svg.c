/* SVG: what is written is escaped, and axes have round numbers at the right places. */
#include "io/svg.h"

#include <math.h>
#include <string.h>

#include "support/testing.h"

static void assert_written(ki_buffer *buffer, const char *wanted) {
    assert_int_equal(buffer->status, KITH_OK);
    ki_buffer_add(buffer, "", 1);
    assert_string_equal(buffer->data, wanted);
    ki_buffer_release(buffer);
}

static void test_elements(void **state) {
    (void)state;
    ki_buffer to = {0};
    ki_svg_open_file(&to, 30, 20, "font-size=\"12\"");
    ki_svg_element(&to, "circle", "cx=\"%.1f\" r=\"%d\"", 1.25, 3);
    ki_svg_text(&to, "a < b & \"c\"", "x=\"%d\"", 7);
    ki_svg_list_open(&to, "polyline", "points", "class=\"c%d\"", 2);
    ki_svg_point(&to, 1, 2.5);
    ki_svg_point(&to, -3, 0);
    ki_svg_list_close(&to);
    ki_svg_close(&to);
    assert_written(&to,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 30 20\" font-size=\"12\">\n"
                   "<circle cx=\"1.2\" r=\"3\"/><text x=\"7\">a &lt; b &amp; &quot;c&quot;</text>\n"
                   "<polyline class=\"c2\" points=\"1.0,2.5 -3.0,0.0 \"/>\n</svg>\n");
}

static void test_a_label_cannot_end_the_attribute(void **state) {
    (void)state;
    ki_buffer to = {0};
    ki_svg_open_in_page(&to, "chart", 4, 3, "\"><script>");
    assert_written(&to,
                   "<svg class=\"chart\" viewBox=\"0 0 4 3\" role=\"img\" "
                   "aria-label=\"&quot;&gt;&lt;script&gt;\">\n");
}

static void test_ticks(void **state) {
    (void)state;
    static const struct {
        double low, high;
        bool is_log;
        int wanted, n;
        double tick[KI_MOST_TICKS];
    } rows[] = {
        {0, 1, false, 5, 6, {0, 0.2, 0.4, 0.6, 0.8, 1}},
        {0.44, 0.585, false, 5, 8, {0.44, 0.46, 0.48, 0.5, 0.52, 0.54, 0.56, 0.58}},
        {-3, 7, false, 4, 5, {-2, 0, 2, 4, 6}},
        {-1, 0.5, true, 5, 5, {0.1, 0.2, 0.5, 1, 2}},
        {0, 12, true, 5, 7, {1, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12}},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        double tick[KI_MOST_TICKS];
        const int n = ki_axes_ticks(rows[i].low, rows[i].high, rows[i].is_log, rows[i].wanted, tick);
        if (n != rows[i].n) fail_msg("row %zu: %d ticks, wanted %d", i, n, rows[i].n);
        for (int k = 0; k < n; k++) {
            if (!(fabs(tick[k] - rows[i].tick[k]) <= 1e-9 * fmax(1, fabs(rows[i].tick[k]))))
                fail_msg("row %zu: tick %d is %.12g, wanted %.12g", i, k, tick[k], rows[i].tick[k]);
        }
    }
}

static void assert_place(double found, double wanted) {
    if (!(fabs(found - wanted) < 1e-12)) fail_msg("at %.15g, wanted %.15g", found, wanted);
}

static void test_places(void **state) {
    (void)state;
    const ki_axes a = {.w = 120,
                       .h = 90,
                       .left = 15,
                       .right = 5,
                       .top = 10,
                       .bottom = 30,
                       .x0 = 2,
                       .x1 = 4,
                       .y0 = -1,
                       .y1 = 2,
                       .is_log_y = true,
                       .scale_y = 1};
    assert_place(ki_axes_x(&a, 2), 15);
    assert_place(ki_axes_x(&a, 3), 65);
    assert_place(ki_axes_x(&a, 4), 115);
    assert_place(ki_axes_y(&a, 0.1), 60);
    assert_place(ki_axes_y(&a, 100), 10);
}

/* Percent: the number shown is the value times the scale, its place the value's. */
static void test_numbers_of_a_scaled_axis(void **state) {
    (void)state;
    const ki_axes a = {.w = 100, .h = 100, .x1 = 1, .y0 = 0.4, .y1 = 0.6, .scale_y = 100};
    ki_buffer to = {0};
    ki_axes_put(&to, &a);
    ki_buffer_add(&to, "", 1);
    assert_non_null(
        strstr(to.data, "<path d=\"M0 50.0H100\"/><text x=\"-6\" y=\"54.0\" text-anchor=\"end\">50</text>"));
    ki_buffer_release(&to);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elements),
        cmocka_unit_test(test_a_label_cannot_end_the_attribute),
        cmocka_unit_test(test_ticks),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_numbers_of_a_scaled_axis),
    };
    return cmocka_run_group_tests_name("io/svg", tests, NULL, NULL);
}
