/* The samples in README.md and docs/ are run: every "$ command" in a ```console block, with the
 * lines below it as the output to expect.
 *
 * The comparison is loose where a sample may not be exact: a run of digits (with its point) matches
 * any other, a run of blanks any other, "…" within a line anything, "…" alone any lines. */
#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/testing.h"

enum { LONGEST = 1024 };
static char output[262144];

/* Numbers to '#', blanks to one, none at the end; "…" to `any` and, for a pattern, what fnmatch
 * reads as special escaped. */
static void make_loose(const char *line, bool is_pattern, char *ret, size_t bytes) {
    size_t n = 0;
    while (*line && *line != '\n' && n + 3 < bytes) {
        if (isdigit((unsigned char)*line)) {
            while (isdigit((unsigned char)*line) || (*line == '.' && isdigit((unsigned char)line[1]))) line++;
            ret[n++] = '#';
        } else if (*line == ' ') {
            while (*line == ' ') line++;
            ret[n++] = ' ';
        } else if (is_pattern && strncmp(line, "…", strlen("…")) == 0) {
            line += strlen("…");
            ret[n++] = '*';
        } else {
            if (is_pattern && strchr("*?[]\\", *line)) ret[n++] = '\\';
            ret[n++] = *line++;
        }
    }
    while (n > 0 && ret[n - 1] == ' ') n--;
    ret[n] = '\0';
}

static bool lines_match(const char *pattern, const char *line) {
    char p[2 * LONGEST], l[2 * LONGEST];
    make_loose(pattern, true, p, sizeof p);
    make_loose(line, false, l, sizeof l);
    return fnmatch(p, l, 0) == 0;
}

static const char *next_line(const char *text) {
    const char *end = strchr(text, '\n');
    return end ? end + 1 : text + strlen(text);
}

static bool is_gap(const char *line) {
    char loose[2 * LONGEST];
    make_loose(line, true, loose, sizeof loose);
    return strcmp(loose, "*") == 0;
}

/* Does the text match the lines from `wanted` up to `end`? */
static bool texts_match(const char *wanted, const char *end, const char *text) {
    if (wanted >= end) return !*text;
    if (is_gap(wanted)) {
        const char *rest = next_line(wanted);
        for (const char *t = text;; t = next_line(t)) {
            if (texts_match(rest, end, t)) return true;
            if (!*t) return false;
        }
    }
    return *text && lines_match(wanted, text) && texts_match(next_line(wanted), end, next_line(text));
}

/* Run one command in a folder where build/ is the build under test. */
static void run_sample(const char *file, int line, const char *command, const char *wanted, const char *end) {
    char one[LONGEST];
    snprintf(one, sizeof one, "%.*s", (int)strcspn(command, "\n"), command);
    const int status =
        testing_run(output, sizeof output, "cd %s/sample && export XDG_CACHE_HOME=\"$PWD/../caches\" && %s",
                    testing_folder(), one);
    if (status != 0 && !strstr(one, "||"))
        fail_msg("%s:%d: '%s' gave %d: %s", file, line, one, status, output);
    if (!texts_match(wanted, end, output))
        fail_msg("%s:%d: '%s' is said to print\n%.*s\nand prints\n%s", file, line, one, (int)(end - wanted),
                 wanted, output);
}

static char *read_file(const char *name) {
    char path[LONGEST];
    snprintf(path, sizeof path, "%s/%s", KITH_SOURCE_DIR, name);
    return testing_read(path);
}

static int run_samples(const char *name) {
    char *text = read_file(name);
    int n_run = 0, number = 1;
    bool is_inside = false;
    for (const char *line = text; *line; line = next_line(line), number++) {
        if (strncmp(line, "```", 3) == 0) is_inside = !is_inside && strncmp(line, "```console", 10) == 0;
        if (!is_inside || strncmp(line, "$ ", 2) != 0) continue;
        const char *end = next_line(line);
        while (*end && strncmp(end, "$ ", 2) != 0 && strncmp(end, "```", 3) != 0) end = next_line(end);
        run_sample(name, number, line + 2, next_line(line), end);
        n_run++;
    }
    free(text);
    return n_run;
}

static int make_folder(void **state) {
    (void)state;
    return testing_run(
        output, sizeof output,
        "mkdir %s/sample && cd %s/sample && ln -s \"$(dirname %s)\" build && ln -s %s/recipes .",
        testing_folder(), testing_folder(), testing_program(), testing_source());
}

static void test_readme(void **state) {
    (void)state;
    assert_in_range(run_samples("README.md"), 1, 1000);
}

/* Every page of docs/, in the order of their names. */
static void test_docs(void **state) {
    (void)state;
    char list[16384];
    assert_int_equal(
        testing_run(list, sizeof list, "cd %s && find docs src -name '*.md' | sort", testing_source()), 0);
    for (char *name = strtok(list, "\n"); name; name = strtok(NULL, "\n")) run_samples(name);
}

/* A link to a page or a file of ours that is not there. */
static void test_links(void **state) {
    (void)state;
    assert_int_equal(
        testing_run(output, sizeof output,
                    "cd %s && for f in README.md CONTRIBUTING.md $(find docs -name '*.md'); do "
                    "grep -o '](\\([^)#:]*\\))' $f | sed 's/^](//; s/)$//' | while read -r link; do "
                    "[ -e \"$(dirname $f)/$link\" ] || echo \"$f: $link\"; done; done",
                    testing_source()),
        0);
    assert_string_equal(output, "");
}

/* The bar chart is what the results in docs/ give. */
static void test_the_picture_of_results(void **state) {
    (void)state;
    assert_int_equal(
        testing_run(output, sizeof output,
                    "cd %s && research/draw-chart.sh | diff - docs/pictures/results.svg", testing_source()),
        0);
    assert_string_equal(output, "");
}

static void test_the_comparison_itself(void **state) {
    (void)state;
    static const struct {
        const char *wanted, *text;
        bool matches;
    } rows[] = {
        {"kith 0.1.0\n", "kith 0.2.0\n", true},
        {"kith 0.1.0\n", "kitt 0.1.0\n", false},
        {"a  1.5 b\n", "a 27 b\n", true},
        {"a\nb\n", "a\n", false},
        {"a\n", "a\nb\n", false},
        {"a\n…\nd\n", "a\nb\nc\nd\n", true},
        {"a\n…\nd\n", "a\nd\n", true},
        {"a\n…\nd\n", "a\nb\n", false},
        {"a … [x]\n", "a b c [x]\n", true},
        {"a … [x]\n", "a b c x\n", false},
        {"", "", true},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        if (texts_match(rows[i].wanted, rows[i].wanted + strlen(rows[i].wanted), rows[i].text) !=
            rows[i].matches)
            fail_msg("'%s' and '%s'", rows[i].wanted, rows[i].text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_comparison_itself),
        cmocka_unit_test(test_readme),
        cmocka_unit_test(test_docs),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_the_picture_of_results),
    };
    return cmocka_run_group_tests(tests, make_folder, NULL);
}
