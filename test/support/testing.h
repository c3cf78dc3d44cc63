/* What every test includes: CMocka, and the few things tests share. */
#ifndef KITH_TESTING_H
#define KITH_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kith/status.h"

/* Tests share a program (test/CMakeLists.txt), where the main of each is a function named by the build. It takes no arguments;
 * testing_argument has them. */
#ifdef TESTING_MAIN
#define main TESTING_MAIN
int main(void);
#endif

#define N_ROWS(array) (sizeof(array) / sizeof((array)[0]))

/* Fail with the error's line when status is not KITH_OK. */
#define assert_ok(status_, err_)                                                                        \
    do {                                                                                                \
        const kith_status assert_ok_ = (status_);                                                       \
        if (assert_ok_ != KITH_OK)                                                                      \
            fail_msg("%s: %s (hint: %s)", kith_status_name(assert_ok_), (err_)->message, (err_)->hint); \
    } while (0)

/* Relative L2 distance of a from b, |a - b| / |b|; of the differences alone when b is 0. */
double testing_relative_l2(const float *a, const float *b, int64_t n);

/* A file of the shared material beside the checkout (data, weights), or NULL when it is not there:
 * such a test calls skip(). The string lives until the next call. */
const char *testing_shared(const char *path);

/* A new empty folder for this process's files; removed by testing_clean_up. */
const char *testing_folder(void);
void testing_clean_up(void);
int testing_tear_down(void **state); /* the same, for a group of tests */

/* A text file as a string, to be freed, and the reverse; fail the test when that cannot be done. */
char *testing_read(const char *path);
void testing_write(const char *path, const char *text);

/* Run a shell command; returns its exit status, and its output (stdout and stderr together, cut at
 * ret_bytes - 1) in ret_output. */
int testing_run(char *ret_output, size_t ret_bytes, const char *fmt, ...) KITH_PRINTF(3, 4);

/* Is the output of a command one line? Lines of progress ("embedding 12/300, 0:04 left") do not count: on a busy machine there are some. */
bool testing_is_one_line(const char *output);
#define assert_one_line_of(output_)                                                 \
    do {                                                                            \
        if (!testing_is_one_line(output_)) fail_msg("not one line: %s", (output_)); \
    } while (0)

/* The library that makes file calls fail (support/fault_io.c) under a path without blanks, which LD_PRELOAD cannot name: a copy
 * in testing_folder(). */
const char *testing_fault_io(void);

/* The test's own program by its path, to be started again, and the n-th argument it was given (from 1), or NULL. */
const char *testing_self(void);
const char *testing_argument(int n);

/* A program of several tests: run the one it was called by, test_NAME, or that its first argument names. */
typedef struct {
    const char *name;
    int (*main)(void);
} testing_entry;
int testing_start(const testing_entry *entries, size_t n_entries, int argc, char **argv);

/* Does the text contain a @NAME@ that configuring should have replaced? */
bool testing_has_placeholder(const char *text);

/* The program under test, from KITH_PROGRAM, and the folder of the sources: for a shell command, quoted if the path has
 * a space or another character that means something to a shell. */
const char *testing_program(void);
const char *testing_source(void);
/* How a command line lets the shell find the program as $K, wherever it lies; takes testing_program(). */
#define TESTING_K "PATH=\"$(dirname %s)\":$PATH && K=kith"
/* The program as a plain path. */
const char *testing_program_path(void);

#endif
