/* The public interface as one thing: what the headers declare is what the library exports, under the version that
 * cmake/kith.map gives it, and every header compiles alone in the languages that are promised. */
#include <stdio.h>
#include <string.h>

#include "kith/kith.h"
#include "support/testing.h"

static char output[262144];

#define run(...) testing_run(output, sizeof output, __VA_ARGS__)

/* Names on one side only, as diff shows them. */
static void assert_same_names(const char *ours, const char *theirs) {
    const int status =
        run("cd %s && export LC_ALL=C && { %s; } | sort > %s/a && { %s; } | sort > %s/b && diff %s/a %s/b",
            testing_source(), ours, testing_folder(), theirs, testing_folder(), testing_folder(),
            testing_folder());
    if (status != 0) fail_msg("'%s' and '%s' differ:\n%s", ours, theirs, output);
    assert_int_equal(run("wc -l < %s/a", testing_folder()), 0);
    int n = 0;
    assert_int_equal(sscanf(output, "%d", &n), 1);
    assert_in_range(n, 100, 10000); /* the lists are not both empty */
}

/* Every function of a header is exported, and nothing else is. */
static void test_the_library_exports_what_headers_declare(void **state) {
    (void)state;
    char library[4096];
    snprintf(library, sizeof library,
             "nm -D --defined-only --with-symbol-versions \"$(dirname %s)\"/src/libkith.so | "
             "awk '$2 != \"A\" { sub(/@@/, \" \", $3); print $3 }'",
             testing_program());
    assert_same_names(
        "scripts/list-api.sh | awk -F'\\t' '{ print $3, $1 ~ /experimental/ ? \"KITH_EXPERIMENTAL\" : "
        "\"KITH_0.2\" }'",
        library);
}

/* A comment above, or above the functions it stands together with. Read as doxygen reads it. */
static void test_every_function_is_documented(void **state) {
    (void)state;
    assert_int_equal(
        run("cd %s && for h in include/kith/*.h include/kith/experimental/*.h; do "
            "awk -f scripts/docs-filter.awk $h | awk -v h=$h '/^KITH_API/ && before !~ /\\*\\/ *$/ && "
            "$0 !~ /\\/\\*\\*</ { print h \": \" $0 } { before = $0 }'; done",
            testing_source()),
        0);
    assert_string_equal(output, "");
}

static void test_the_reference_has_no_warnings(void **state) {
    (void)state;
    if (run("command -v doxygen") != 0) skip();
    const int status = run("%s/scripts/docs.sh %s/docs", testing_source(), testing_folder());
    if (status != 0) fail_msg("%s", output);
    assert_int_equal(run("test -s %s/docs/html/model_8h.html && test -s %s/docs/html/page_training_md.html",
                         testing_folder(), testing_folder()),
                     0);
}

/* One header for everything that lies in include/kith. */
static void test_kith_h_includes_every_header(void **state) {
    (void)state;
    assert_int_equal(
        run("cd %s/include && for h in kith/*.h kith/experimental/*.h; do "
            "[ $h = kith/kith.h ] || grep -q \"#include \\\"$h\\\"\" kith/kith.h || echo $h; done",
            testing_source()),
        0);
    assert_string_equal(output, "");
}

static void test_headers_compile_alone(void **state) {
    (void)state;
    static const char *const languages[] = {"c -std=c99", "c -std=c11", "c++ -std=c++17", "c++ -std=c++20"};
    static const char *const compilers[] = {"gcc", "clang"};
    for (size_t c = 0; c < N_ROWS(compilers); c++) {
        if (run("command -v %s", compilers[c]) != 0) continue; /* gcc is there: kith was built */
        for (size_t i = 0; i < N_ROWS(languages); i++) {
            const int status =
                run("cd %s/include && for h in kith/*.h kith/experimental/*.h; do "
                    "echo \"#include \\\"$h\\\"\" | %s -x %s -Wall -Wextra -Wpedantic -Werror "
                    "-DKITH_EXPERIMENTAL "
                    "-I. -fsyntax-only - || exit 1; done",
                    testing_source(), compilers[c], languages[i]);
            if (status != 0) fail_msg("%s -x %s: %s", compilers[c], languages[i], output);
        }
    }
}

/* A copy of the headers as an old release: changed by a sed command, may programs compiled with it still run? */
static void test_the_abi_is_compared(void **state) {
    (void)state;
    static const struct {
        const char *what, *change;
        bool is_fine;
    } rows[] = {
        {"the same", "true", true},
        {"an option was added at the end", "sed -i '/int64_t views;/d' include/kith/model.h", true},
        {"an option was added in the middle", "sed -i '/const char .pool;/d' include/kith/model.h", false},
        {"a result grew", "sed -i '/^    double kmeans_objective;/d' include/kith/eval.h", false},
        {"a function went",
         "sed -i 's/^KITH_API const char .kith_commit(void);/&\\nKITH_API int kith_gone(void);/' "
         "include/kith/version.h && sed -i 's/kith_commit;/& kith_gone;/' cmake/kith.map",
         false},
        {"a function came", "sed -i '/kith_commit(void)/d' include/kith/version.h", true},
        {"another minor version",
         "sed -i 's/_VERSION \"0.2.0\"/_VERSION \"0.1.0\"/; /kith_commit/d' include/kith/version.h", true},
    };
    if (run("command -v abidiff") != 0) skip();
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        const int made =
            run("cd %s && rm -rf old && mkdir -p old/cmake && cp -r %s/include old && cp %s/cmake/kith.map "
                "old/cmake && cd old && %s",
                testing_folder(), testing_source(), testing_source(), rows[i].change);
        if (made != 0) fail_msg("%s: %s", rows[i].change, output);
        if (i > 0 && run("diff -r %s/include %s/old/include", testing_source(), testing_folder()) == 0)
            fail_msg("'%s' changes nothing", rows[i].change);
        const int status = run("%s/scripts/check-abi.sh %s/old", testing_source(), testing_folder());
        if ((status == 0) != rows[i].is_fine) fail_msg("%s: status %d\n%s", rows[i].what, status, output);
    }
}

static void test_the_version_is_one(void **state) {
    (void)state;
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", KITH_VERSION_MAJOR, KITH_VERSION_MINOR, KITH_VERSION_PATCH);
    assert_string_equal(text, KITH_VERSION);
    assert_string_equal(kith_version(), KITH_VERSION);
    assert_int_equal(kith_version_number(), KITH_VERSION_NUMBER);
}

static void test_a_program_of_another_version_is_told(void **state) {
    (void)state;
    kith_error err;
    const int ours = KITH_VERSION_NUMBER;
    assert_ok(kith_version_check(ours, &err), &err);
    assert_ok(kith_version_check(ours / 100 * 100, &err), &err);               /* an earlier patch of it */
    assert_int_equal(kith_version_check(ours + 1, &err), KITH_EUNSUPPORTED);   /* a later patch */
    assert_int_equal(kith_version_check(ours + 100, &err), KITH_EUNSUPPORTED); /* the next minor version */
    assert_int_equal(kith_version_check(100, &err), KITH_EUNSUPPORTED);
    assert_string_equal(err.message,
                        "the program was compiled with kith 0.1.0, and the library is " KITH_VERSION);
    assert_int_equal(kith_version_check(-1, &err), KITH_EINVAL);
}

/* What the list in the library knows is what the headers have: bindings go by it. */
static void test_struct_sizes(void **state) {
    (void)state;
    char name[64];
    int n = 0, length = 0;
    assert_int_equal(kith_struct_bytes("kith_array"), sizeof(kith_array));
    assert_int_equal(kith_struct_bytes("kith_judgement"), sizeof(kith_judgement));
    assert_int_equal(kith_struct_bytes("kith_index"), 0); /* a handle has no body */
    assert_int_equal(kith_struct_bytes(NULL), 0);
    assert_int_equal(run("cd %s && awk '/^} kith_[a-z_]*;/ { sub(/;.*/, \"\", $2); print $2 }' "
                         "$(grep -L '^typedef enum' include/kith/*.h)",
                         testing_source()),
                     0);
    for (const char *at = output; sscanf(at, "%63s%n", name, &length) == 1; at += length, n++) {
        if (!kith_struct_bytes(name)) fail_msg("%s is not known", name);
    }
    assert_in_range(n, 10, 1000);
}

static void test_threads(void **state) {
    (void)state;
    kith_error err;
    const int64_t before = kith_threads();
    assert_in_range(before, 1, 256);
    assert_ok(kith_threads_set(1, &err), &err);
    assert_int_equal(kith_threads(), 1);
    assert_int_equal(kith_threads_set(-1, &err), KITH_EINVAL);
    assert_int_equal(kith_threads_set(257, &err), KITH_EINVAL);
    assert_int_equal(kith_threads(), 1);
    assert_ok(kith_threads_set(before, &err), &err);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_library_exports_what_headers_declare),
        cmocka_unit_test(test_every_function_is_documented),
        cmocka_unit_test(test_the_reference_has_no_warnings),
        cmocka_unit_test(test_kith_h_includes_every_header),
        cmocka_unit_test(test_headers_compile_alone),
        cmocka_unit_test(test_the_abi_is_compared),
        cmocka_unit_test(test_the_version_is_one),
        cmocka_unit_test(test_a_program_of_another_version_is_told),
        cmocka_unit_test(test_struct_sizes),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
