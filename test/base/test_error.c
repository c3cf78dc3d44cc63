/* Errors: names, texts, one line, a hint, prefixes. */
#include "base/error.h"

#include <string.h>

#include "support/testing.h"

static void test_names_and_texts(void **state) {
    (void)state;
    assert_string_equal(kith_status_name(KITH_OK), "KITH_OK");
    assert_string_equal(kith_status_name(KITH_EFORMAT), "KITH_EFORMAT");
    assert_string_equal(kith_status_text(KITH_ENOMEM), "out of memory");
    assert_string_equal(kith_status_name((kith_status)99), "KITH_?");
    assert_string_equal(kith_status_text((kith_status)99), "unknown status");
}

/* Values are part of the ABI: a renumbered one breaks programs linked to an older library. */
static void test_values_stay(void **state) {
    (void)state;
    assert_int_equal(KITH_OK, 0);
    assert_int_equal(KITH_EINVAL, 1);
    assert_int_equal(KITH_ENOTFOUND, 6);
    assert_int_equal(KITH_EINTERNAL, 11);
}

static void test_fail_fills_the_line_and_drops_the_hint(void **state) {
    (void)state;
    kith_error err = {0};
    ki_fail(&err, KITH_EINVAL, "first");
    assert_int_equal(ki_hint(&err, KITH_EINVAL, "do %s", "that"), KITH_EINVAL);
    assert_string_equal(err.hint, "do that");
    assert_int_equal(ki_fail(&err, KITH_ESHAPE, "found %d, wanted %d", 3, 4), KITH_ESHAPE);
    assert_int_equal(err.status, KITH_ESHAPE);
    assert_string_equal(err.message, "found 3, wanted 4");
    assert_string_equal(err.hint, "");
}

static void test_prefix(void **state) {
    (void)state;
    kith_error err = {0};
    ki_fail(&err, KITH_EFORMAT, "bad header");
    assert_int_equal(ki_prefix(&err, KITH_EFORMAT, "%s.npy", "x"), KITH_EFORMAT);
    assert_string_equal(err.message, "x.npy: bad header");
}

static void test_null_error_is_fine(void **state) {
    (void)state;
    assert_int_equal(ki_fail(NULL, KITH_EIO, "x"), KITH_EIO);
    assert_int_equal(ki_hint(NULL, KITH_EIO, "x"), KITH_EIO);
    assert_int_equal(ki_prefix(NULL, KITH_EIO, "x"), KITH_EIO);
    assert_int_equal(ki_fail_memory(NULL, 1, "x"), KITH_ENOMEM);
}

/* A file name may hold anything; the message stays one line that cannot move a terminal's cursor. */
static void test_messages_are_one_line(void **state) {
    (void)state;
    kith_error err = {0};
    ki_fail(&err, KITH_EIO, "%s", "a\nb\033[2Jc\td\x7f");
    assert_string_equal(err.message, "a?b?[2Jc?d?");
    ki_prefix(&err, KITH_EIO, "x\ny");
    assert_string_equal(err.message, "x?y: a?b?[2Jc?d?");
    ki_hint(&err, KITH_EIO, "a\rb");
    assert_string_equal(err.hint, "a?b");
}

static void test_too_long_is_cut(void **state) {
    (void)state;
    kith_error err = {0};
    char text[2000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    ki_fail(&err, KITH_EIO, "%s", text);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    ki_prefix(&err, KITH_EIO, "%s", "file");
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_memory_equal(err.message, "file: xxx", 9);
    ki_prefix(&err, KITH_EIO, "%s", text);
    assert_memory_equal(err.message, "file: xxx", 9);
    ki_hint(&err, KITH_EIO, "%s", text);
    assert_int_equal(strlen(err.hint), sizeof err.hint - 1);
}

static kith_status returns_early(kith_status inner, int *ret_steps) {
    *ret_steps = 1;
    KI_TRY(inner);
    *ret_steps = 2;
    return KITH_OK;
}

static kith_status jumps_to_done(kith_status inner, int *ret_steps) {
    kith_status status = KITH_OK;
    *ret_steps = 0;
    KI_CHECK(inner);
    *ret_steps += 1;
done:
    *ret_steps += 10;
    return status;
}

static void test_macros(void **state) {
    (void)state;
    int steps = 0;
    assert_int_equal(returns_early(KITH_EIO, &steps), KITH_EIO);
    assert_int_equal(steps, 1);
    assert_int_equal(returns_early(KITH_OK, &steps), KITH_OK);
    assert_int_equal(steps, 2);
    assert_int_equal(jumps_to_done(KITH_EIO, &steps), KITH_EIO);
    assert_int_equal(steps, 10);
    assert_int_equal(jumps_to_done(KITH_OK, &steps), KITH_OK);
    assert_int_equal(steps, 11);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_and_texts),
        cmocka_unit_test(test_values_stay),
        cmocka_unit_test(test_fail_fills_the_line_and_drops_the_hint),
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_null_error_is_fine),
        cmocka_unit_test(test_messages_are_one_line),
        cmocka_unit_test(test_too_long_is_cut),
        cmocka_unit_test(test_macros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
