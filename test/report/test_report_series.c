/* The log as curves. */
#include <stdio.h>
#include <string.h>

#include "report/chart.h"
#include "report/series.h"
#include "support/testing.h"

static ki_log_file parse(const char *text) {
    ki_log_file log = {0};
    kith_error err = {0};
    assert_ok(ki_log_parse(text, strlen(text), &log, &err), &err);
    return log;
}

static void assert_curve(const ki_log_file *log, const char *name, const double *steps_and_values, size_t n) {
    const ki_series *s = ki_log_series(log, name);
    if (!s) fail_msg("no curve %s", name);
    if (s->n != n) fail_msg("%s has %zu points; wanted %zu", name, s->n, n);
    for (size_t i = 0; i < n; i++) {
        if (s->point[i].step != steps_and_values[2 * i] || s->point[i].value != steps_and_values[2 * i + 1])
            fail_msg("%s: point %zu is (%g, %g); wanted (%g, %g)", name, i, s->point[i].step,
                     s->point[i].value, steps_and_values[2 * i], steps_and_values[2 * i + 1]);
    }
}

static void test_names_are_places(void **state) {
    (void)state;
    ki_log_file log = parse(
        "{\"kind\":\"step\",\"step\":5,\"total\":2,\"terms\":{\"a\":1,\"b\":null}}\n"
        "{\"kind\":\"eval\",\"step\":5,\"split\":\"seen\",\"recall\":{\"1\":0.5}}\n"
        "{\"kind\":\"step\",\"step\":6,\"total\":3,\"terms\":{\"a\":4,\"b\":5}}");
    assert_curve(&log, "step/total", (double[]){5, 2, 6, 3}, 2);
    assert_curve(&log, "step/terms/a", (double[]){5, 1, 6, 4}, 2);
    assert_curve(&log, "step/terms/b", (double[]){6, 5}, 1);
    assert_int_equal(ki_log_series(&log, "step/terms/b")->n_not_finite, 1);
    assert_curve(&log, "eval/seen/recall/1", (double[]){5, 0.5}, 1);
    assert_int_equal(log.n_bad, 0);
    size_t at = 0;
    assert_string_equal(ki_log_next(&log, "step/terms/", &at)->name, "step/terms/a");
    assert_string_equal(ki_log_next(&log, "step/terms/", &at)->name, "step/terms/b");
    assert_null(ki_log_next(&log, "step/terms/", &at));
    ki_log_release(&log);
}

/* Earlier logs had orders by number, the embedding among them; they are curves of variants, as today's. */
static void test_orders_of_earlier_logs(void **state) {
    (void)state;
    ki_log_file log = parse(
        "{\"kind\":\"eval\",\"step\":5,\"split\":\"test\",\"recall\":{\"1\":0.5},"
        "\"order_recall_at_1\":{\"1\":0.5,\"2\":0.25}}\n"
        "{\"kind\":\"eval\",\"step\":6,\"split\":\"test\",\"recall\":{\"1\":0.75},"
        "\"variant_recall_at_1\":{\"order_2\":0.125}}\n");
    assert_curve(&log, "eval/test/variant_recall_at_1/order_2", (double[]){5, 0.25, 6, 0.125}, 2);
    assert_null(ki_log_series(&log, "eval/test/variant_recall_at_1/order_1"));
    assert_null(ki_log_series(&log, "eval/test/order_recall_at_1/2"));
    ki_log_release(&log);
}

/* Resumed from step 2: the lines of the second try replace those of the first. */
static void test_going_back_replaces(void **state) {
    (void)state;
    ki_log_file log = parse(
        "{\"kind\":\"step\",\"step\":1,\"total\":1}\n{\"kind\":\"step\",\"step\":2,\"total\":2}\n"
        "{\"kind\":\"step\",\"step\":3,\"total\":3}\n"
        "{\"kind\":\"eval\",\"step\":3,\"split\":\"validation\",\"map_at_r\":0.3}\n"
        "{\"kind\":\"step\",\"step\":4,\"total\":4}\n{\"kind\":\"st"
        "\n{\"kind\":\"step\",\"step\":2,\"total\":20}\n{\"kind\":\"step\",\"step\":3,\"total\":30}\n");
    assert_curve(&log, "step/total", (double[]){1, 1, 2, 20, 3, 30}, 3);
    assert_null(ki_log_series(&log, "eval/validation/map_at_r"));
    assert_int_equal(log.n_bad, 1);
    assert_int_equal(log.first_bad, 6);
    assert_true(log.last_step == 3);
    ki_log_release(&log);
}

static void test_many_curves_are_bounded(void **state) {
    (void)state;
    static char text[40000];
    size_t n = (size_t)snprintf(text, sizeof text, "{\"kind\":\"step\",\"step\":1,\"terms\":{");
    for (int i = 0; i < 1000; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s\"term_%d\":%d", i ? "," : "", i, i);
    snprintf(text + n, sizeof text - n, "}}\n");
    ki_log_file log = parse(text);
    assert_int_equal(log.n_series, KI_MOST_SERIES);
    assert_true(log.n_left_out > 700);
    ki_log_release(&log);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_are_places),
        cmocka_unit_test(test_orders_of_earlier_logs),
        cmocka_unit_test(test_going_back_replaces),
        cmocka_unit_test(test_many_curves_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
