/* Log lines reach the callback, from the level on. */
#include "base/log.h"

#include <stdio.h>
#include <string.h>

#include "support/testing.h"

typedef struct heard {
    int n_lines;
    kith_log_level level;
    char line[2048];
} heard;

static void hear(void *user, kith_log_level level, const char *line) {
    heard *h = user;
    h->n_lines++;
    h->level = level;
    snprintf(h->line, sizeof h->line, "%s", line);
}

static void test_lines_reach_the_callback_from_the_level_on(void **state) {
    (void)state;
    heard h = {0};
    kith_log_set(hear, &h, KITH_LOG_INFO);
    ki_log(KITH_LOG_DEBUG, "too fine");
    assert_int_equal(h.n_lines, 0);
    ki_log(KITH_LOG_WARNING, "skipped %d images", 3);
    assert_int_equal(h.n_lines, 1);
    assert_int_equal(h.level, KITH_LOG_WARNING);
    assert_string_equal(h.line, "skipped 3 images");
    kith_log_set(NULL, NULL, KITH_LOG_DEBUG);
    ki_log(KITH_LOG_WARNING, "dropped");
    assert_int_equal(h.n_lines, 1);
}

static void test_long_lines_are_cut(void **state) {
    (void)state;
    heard h = {0};
    kith_log_set(hear, &h, KITH_LOG_DEBUG);
    ki_log(KITH_LOG_INFO, "%04000d", 1);
    kith_log_set(NULL, NULL, KITH_LOG_DEBUG);
    assert_in_range(strlen(h.line), 100, 1023);
}

/* Names of files and words of hostile ones are in lines, too. */
static void test_a_line_is_one_line(void **state) {
    (void)state;
    heard h = {0};
    kith_log_set(hear, &h, KITH_LOG_DEBUG);
    ki_log(KITH_LOG_INFO, "%s", "a\nb\x1b[31mc\x7f\xc3\xa9");
    kith_log_set(NULL, NULL, KITH_LOG_DEBUG);
    assert_string_equal(h.line, "a?b?[31mc?\xc3\xa9");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_reach_the_callback_from_the_level_on),
        cmocka_unit_test(test_long_lines_are_cut),
        cmocka_unit_test(test_a_line_is_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
