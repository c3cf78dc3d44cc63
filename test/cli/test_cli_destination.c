/* Where results go is looked at before the work: every command here also names inputs that are not there, and it is
 * the destination that is refused. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/testing.h"

static char output[65536];

/* One line that holds the text, and the exit status. */
static void expect(int status, const char *text, const char *arguments) {
    const int found = testing_run(output, sizeof output, "cd '%s' && %s %s", testing_folder(),
                                  testing_program(), arguments);
    const char *end = strchr(output, '\n');
    if (found != status || !strstr(output, text) || !end || end[1])
        fail_msg("kith %s: status %d, wanted %d with \"%s\"; printed: %s", arguments, found, status, text,
                 output);
}

static void test_endings(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"embed --backbone convnet4 gone -o x.txt", "--out is 'x.txt'; wanted a name that ends in .npy"},
        {"embed --backbone convnet4 gone -o npy", "--out is 'npy'; wanted a name that ends in .npy"},
        {"embed --backbone convnet4 gone -o x.npy --save m.pt",
         "--save is 'm.pt'; wanted a name that ends in .safetensors"},
        {"map gone.npy -o x.jpg", "--out is 'x.jpg'; wanted a name that ends in .svg or .png"},
        {"map gone.npy -o x.svg --save m.csv", "--save is 'm.csv'; wanted a name that ends in .npy"},
        {"eval gone.safetensors --data gone --save-labels y.txt", "--save-labels is 'y.txt'"},
        {"eval gone.safetensors --data gone --save-embedding e", "--save-embedding is 'e'"},
        {"objective gone.yaml --plot p.png", "--plot is 'p.png'; wanted a name that ends in .svg"},
        {"objective gone.yaml --labels gone.npy --descriptor d.txt", "--descriptor is 'd.txt'"},
        {"map gone.npy -o ''", "--out is empty"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) expect(2, rows[i][1], rows[i][0]);
}

static void test_folders(void **state) {
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s/file", testing_folder());
    testing_write(path, "");
    static const char *const rows[][2] = {
        {"embed --backbone convnet4 gone -o no/x.npy", "no: there is no such folder (make it first)"},
        {"map gone.npy -o no/such/x.svg", "no/such: there is no such folder"},
        {"map gone.npy -o file/x.svg", "file is not a folder"},
        {"map gone.npy -o .", ". is a folder; wanted the name of a file"},
        {"data gone -o no/split.csv", "no: there is no such folder"},
        {"report gone -o no/page.html", "no: there is no such folder"},
        {"objective gone.yaml --labels gone.npy -o no/such", "no: there is no such folder"},
        {"objective gone.yaml --labels gone.npy -o file", "file is not a folder"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) expect(1, rows[i][1], rows[i][0]);
}

/* Root may write anywhere, so that only others can be refused. */
static void test_a_folder_that_cannot_be_written_to(void **state) {
    (void)state;
    if (geteuid() == 0) skip();
    expect(1, "/: this folder cannot be written to", "map gone.npy -o /x.svg");
}

/* What can be written comes to the input. */
static void test_good_destinations(void **state) {
    (void)state;
    expect(1, "gone.npy", "map gone.npy -o x.SVG --save ./m.npy");
    expect(1, "gone.npy", "map gone.npy -o ../x.png");
    expect(1, "gone", "embed --backbone convnet4 gone -o /dev/null");
    expect(1, "gone", "objective gone.yaml --labels gone.npy -o new/");
    expect(1, "gone", "objective gone.yaml --labels gone.npy -o .");
    expect(1, "gone", "data gone -o split");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_endings),
        cmocka_unit_test(test_folders),
        cmocka_unit_test(test_a_folder_that_cannot_be_written_to),
        cmocka_unit_test(test_good_destinations),
    };
    return cmocka_run_group_tests_name("cli/destination", tests, NULL, testing_tear_down);
}
