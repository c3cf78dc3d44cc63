/* What the linker made: nothing is loaded from a folder that the user happens to stand in, and the program and
 * the library carry the hardening that cmake/kith_flags.cmake asks for. */
#include <stdio.h>
#include <string.h>

#include "base/sanitizer.h"
#include "house/elf.h"

static char output[65536];

#define run(...) testing_run(output, sizeof output, __VA_ARGS__)

static void assert_runs(int status) {
    if (status != 0) fail_msg("exit status %d: %s", status, output);
}

/* The program under test, or the shared library built beside it; for the shell. */
static void path_of(bool library, char *ret_path, size_t ret_bytes) {
    if (library)
        snprintf(ret_path, ret_bytes, "\"$(dirname %s)\"/src/libkith.so", testing_program());
    else
        snprintf(ret_path, ret_bytes, "%s", testing_program());
}

static void test_libraries_come_from_named_folders(void **state) {
    (void)state;
    char find[1024];
    snprintf(find, sizeof find,
             "cd \"$(dirname %s)\" && find \"$PWD\"/kith \"$PWD\"/src \"$PWD\"/lib/kith \"$PWD\"/test "
             "\"$PWD\"/examples \"$PWD\"/bench "
             "-maxdepth 1 -type f "
             "'(' -perm -u+x -o -name '*.so*' ')' 2>/dev/null",
             testing_program());
    assert_runs(run("%s | wc -l", find));
    int n_files = 0;
    assert_int_equal(sscanf(output, "%d", &n_files), 1);
    assert_true(n_files >= 3); /* the program, the library and this test at least */
    assert_runs(elf_bad_paths(output, sizeof output, find, ""));
    assert_string_equal(output, "");
}

/* The check must see an empty entry, a relative one and one into a folder that is not allowed. */
static void test_bad_folders_are_seen(void **state) {
    (void)state;
    assert_runs(
        run("cd %s && echo 'int main(void) { return 0; }' > m.c && "
            "cc m.c -o m '-Wl,-rpath,/usr/lib:' && cc m.c -o r '-Wl,-rpath,lib' && "
            "cc m.c -o b '-Wl,-rpath,/opt/build/src' && cc m.c -o good '-Wl,-rpath,/usr/lib'",
            testing_folder()));
    char find[512], wanted[1024];
    const char *folder = testing_folder();
    snprintf(find, sizeof find, "printf '%%s\\n' %s/m %s/r %s/b %s/good", folder, folder, folder, folder);
    snprintf(wanted, sizeof wanted, "%s/m: []\n%s/r: [lib]\n%s/b: [/opt/build/src]\n", folder, folder,
             folder);
    assert_runs(elf_bad_paths(output, sizeof output, find, "/opt/build"));
    assert_string_equal(output, wanted);
}

static void test_loaded_parts_cannot_be_rewritten(void **state) {
    (void)state;
    for (int i_file = 0; i_file < 2; i_file++) {
        char file[512];
        path_of(i_file == 1, file, sizeof file);
        assert_runs(run("readelf -dW %s", file));
        if (!strstr(output, "NOW")) fail_msg("%s is bound lazily:\n%s", file, output);
        assert_runs(run("readelf -lW %s", file));
        if (!strstr(output, "GNU_RELRO")) fail_msg("%s has no RELRO:\n%s", file, output);
        const char *stack = strstr(output, "GNU_STACK");
        if (!stack) fail_msg("%s does not say what its stack is for:\n%s", file, output);
        char flags[4] = "";
        sscanf(stack, "GNU_STACK %*s %*s %*s %*s %*s %3[RWE ]", flags);
        if (strcmp(flags, "RW ") != 0)
            fail_msg("%s has a stack with the rights '%s'; wanted 'RW '", file, flags);
    }
}

static void test_the_program_has_no_fixed_place(void **state) {
    (void)state;
    assert_runs(run("readelf -hW %s", testing_program()));
    if (!strstr(output, "DYN (")) fail_msg("not position-independent:\n%s", output);
}

static void test_copies_and_stacks_are_checked(void **state) {
    (void)state;
    if (KI_ASAN || KI_TSAN) skip(); /* the sanitizers check the same, and more */
    static const char *const calls[] = {"__stack_chk_fail", "__vsnprintf_chk"};
    for (int i_file = 0; i_file < 2; i_file++) {
        for (size_t i = 0; i < N_ROWS(calls); i++) {
            char file[512];
            path_of(i_file == 1, file, sizeof file);
            assert_runs(run("nm -D --undefined-only %s", file));
            if (!strstr(output, calls[i])) fail_msg("%s never calls %s:\n%s", file, calls[i], output);
        }
    }
}

/* Jumps land where they are meant to, on processors that check it: the start of a function that is called
 * through a pointer. (The file's own mark is not set: assembler code of the C compiler's start files lacks it.) */
static void test_calls_through_pointers_land_on_marks(void **state) {
    (void)state;
#if defined(__x86_64__)
    assert_runs(
        run("objdump -d --no-show-raw-insn --disassemble=main %s | grep -c endbr64", testing_program()));
#else
    skip();
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_libraries_come_from_named_folders),
        cmocka_unit_test(test_bad_folders_are_seen),
        cmocka_unit_test(test_loaded_parts_cannot_be_rewritten),
        cmocka_unit_test(test_the_program_has_no_fixed_place),
        cmocka_unit_test(test_copies_and_stacks_are_checked),
        cmocka_unit_test(test_calls_through_pointers_land_on_marks),
    };
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
