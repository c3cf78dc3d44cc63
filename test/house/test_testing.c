/* What tests share says of the output of commands: lines of progress are no message, everything else is. */
#include "support/testing.h"

static void test_one_line(void **state) {
    (void)state;
    assert_true(testing_is_one_line("kith: no such file: 12/3\n"));
    assert_true(testing_is_one_line("embedding 0/1\nkith: no such file\n"));
    assert_true(testing_is_one_line("judging test 9024/13180, 0:24 left\nkith: no such file\n"));
    assert_true(testing_is_one_line("3 photos\n"));
}

static void test_other_output(void **state) {
    (void)state;
    assert_false(testing_is_one_line(""));
    assert_false(testing_is_one_line("kith: no end of the line"));
    assert_false(testing_is_one_line("embedding 0/1\n"));
    assert_false(testing_is_one_line("kith: one\nkith: two\n"));
    assert_false(testing_is_one_line("kith: of 2/3\nkith: two\n"));
    assert_false(testing_is_one_line("wrote 3 files\nkith: two\n"));
    assert_false(testing_is_one_line("wrote 3/4 files\nkith: two\n"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_line), cmocka_unit_test(test_other_output)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
