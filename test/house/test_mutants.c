/* The tool that breaks code to try the tests (tools/mutants.c): what it changes, and what it must leave alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/testing.h"

static char output[65536];

#define run(...) testing_run(output, sizeof output, __VA_ARGS__)

/* The tool lies beside the tests. */
static const char *mutants(void) { return "./mutants"; }

static const char *sample(const char *text) {
    static char path[600];
    snprintf(path, sizeof path, "%s/sample.c", testing_folder());
    testing_write(path, text);
    return path;
}

/* The lines of `mutants list`, without the path. */
static void assert_mutants(const char *text, const char *wanted) {
    const char *path = sample(text);
    const int status = run("%s list %s | cut -f 3-", mutants(), path);
    if (status != 0) fail_msg("exit status %d: %s", status, output);
    if (strcmp(output, wanted) != 0) fail_msg("of %s\nfound\n%swanted\n%s", text, output, wanted);
}

static void test_what_is_changed(void **state) {
    (void)state;
    static const struct {
        const char *code, *wanted;
    } rows[] = {
        {"int f(int a) { return a + 7; }", "1\tsum\t+ -> -\n1\tconstant\t7 -> 8\n1\tconstant\t7 -> 6\n"},
        {"int f(int a) { return a * a - a / a % a; }",
         "1\tproduct\t* -> /\n1\tsum\t- -> +\n1\tproduct\t/ -> *\n1\tremainder\t% -> /\n"},
        {"int f(int a) { return a < a && a >= a || a == a; }",
         "1\tborder\t< -> <=\n1\tlogic\t&& -> ||\n1\tborder\t>= -> >\n1\tlogic\t|| -> &&\n1\tequal\t== -> "
         "!=\n"},
        {"int f(int a) { return !a; }", "1\tnot\t! -> \n"},
        {"int f(int a) { return -a; }", "1\tsign\t- -> \n"},
        {"double f(void) { return 0.5; }", "1\tconstant\t0.5 -> 1.5\n1\tconstant\t0.5 -> (-0.5)\n"},
        {"long f(void) { return 1l; }", "1\tconstant\t1l -> 2l\n1\tconstant\t1l -> 0l\n"},
        {"int f(int a) {\n    if (a) return a;\n    g(a,\n      a);\n    return a;\n}",
         "2\tcondition\t(a) -> (!(a))\n3\tstatement\tg(a, a); removed\n"},
        {"void f(int *a) { *a = b; }", "1\tstatement\t*a = b; removed\n"},
        {"void f(int a) { for (;; a++) break; }", "1\tstep\t++ -> --\n1\tstatement\tbreak; removed\n"},
        {"bool f(void) { return true; }", "1\ttruth\ttrue -> false\n"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) assert_mutants(rows[i].code, rows[i].wanted);
}

static void test_what_is_left_alone(void **state) {
    (void)state;
    static const char *const rows[] = {
        "/* a + 1 */ // b * 2\n",
        "#include \"a+1.h\"\n#define TWICE(x) \\\n    ((x) * 2)\n",
        "static const int table[] = {1, 2, 3};\nenum { A = 1 + 1 };\n",
        "struct s { int a[3]; };\nint f(int a, const char *b);\n",
        "const char *f(void) { return \"a + 1 < 2\"; }",
        "char f(void) { return '1'; }",
        "void f(int *a) { int b[3]; const char *c; char *const *d; g: return; }",
        "int f(void) { return 0x10 | 010; }",
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        /* The bar between two hexadecimal words is an operator; the words are not. */
        assert_mutants(rows[i], strstr(rows[i], "0x10") ? "1\tbits\t| -> &\n" : "");
    }
}

static void test_a_ternary_is_no_label(void **state) {
    (void)state;
    assert_mutants("int f(int a) { return a ? a : g(a); }", "");
    assert_mutants("void f(int a) { switch (a) { case A: g(a); } }", "1\tstatement\tg(a); removed\n");
}

static void test_a_mutant_keeps_the_lines(void **state) {
    (void)state;
    const char *path = sample("void f(int a) {\n    g(a,\n      a);\n    h(a - a);\n}\n");
    assert_int_equal(run("%s apply %s 0", mutants(), path), 0);
    assert_string_equal(output, "void f(int a) {\n    \n;\n    h(a - a);\n}\n");
    assert_int_equal(run("%s apply %s 2", mutants(), path), 0);
    assert_string_equal(output, "void f(int a) {\n    g(a,\n      a);\n    h(a + a);\n}\n");
    assert_int_equal(run("%s apply %s 3", mutants(), path), 2);
}

static void test_the_seed_decides_the_order(void **state) {
    (void)state;
    char listed[sizeof output], first[sizeof output];
    const char *files = "'" KITH_SOURCE_DIR "'/src/objective/loss/contrastive.c";
    assert_int_equal(run("%s list %s | sort", mutants(), files), 0);
    strcpy(listed, output);
    assert_int_equal(run("%s shuffle 7 %s", mutants(), files), 0);
    strcpy(first, output);
    assert_int_equal(run("%s shuffle 7 %s", mutants(), files), 0);
    assert_string_equal(output, first);
    assert_int_equal(run("%s shuffle 8 %s", mutants(), files), 0);
    assert_string_not_equal(output, first);
    assert_int_equal(run("%s shuffle 8 %s | sort", mutants(), files), 0);
    assert_string_equal(output, listed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_changed),
        cmocka_unit_test(test_what_is_left_alone),
        cmocka_unit_test(test_a_ternary_is_no_label),
        cmocka_unit_test(test_a_mutant_keeps_the_lines),
        cmocka_unit_test(test_the_seed_decides_the_order),
    };
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
