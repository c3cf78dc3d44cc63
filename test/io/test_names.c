/* Names in a folder: those wanted, in their order. */
#include "io/names.h"

#include <stdio.h>
#include <string.h>

#include "support/testing.h"

static bool begins_with(const void *user, const char *name) { return strncmp(name, user, strlen(user)) == 0; }

static void test_wanted_and_sorted(void **state) {
    (void)state;
    char path[1200];
    static const char *const files[] = {"b2", "a", "b10", "b1"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", testing_folder(), files[i]);
        testing_write(path, "");
    }
    kith_error err;
    ki_names found = {0};
    assert_ok(ki_names_read(testing_folder(), begins_with, "b", &found, &err), &err);
    assert_int_equal(found.n, 3);
    assert_string_equal(found.item[0], "b1");
    assert_string_equal(found.item[1], "b10");
    assert_string_equal(found.item[2], "b2");
    ki_names_release(&found);
    assert_int_equal(found.n, 0);
}

/* No folder has no names; what is there and cannot be listed is an error. */
static void test_no_folder(void **state) {
    (void)state;
    char path[1200];
    kith_error err;
    ki_names found = {0};
    snprintf(path, sizeof path, "%s/nowhere", testing_folder());
    assert_ok(ki_names_read(path, begins_with, "", &found, &err), &err);
    assert_int_equal(found.n, 0);
    snprintf(path, sizeof path, "%s/file", testing_folder());
    testing_write(path, "");
    assert_int_equal(ki_names_read(path, begins_with, "", &found, &err), KITH_EIO);
    assert_non_null(strstr(err.message, "cannot read folder "));
    ki_names_release(&found);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_wanted_and_sorted),
                                       cmocka_unit_test(test_no_folder)};
    return cmocka_run_group_tests_name("io/names", tests, NULL, testing_tear_down);
}
