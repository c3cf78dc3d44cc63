/* Commands of the program in the folder of a test, what they printed, and what is wanted of it: for the test of one command. */
#ifndef AS_TYPED_H
#define AS_TYPED_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "support/testing.h"

static char output[65536];

static int kith(const char *fmt, ...) KITH_PRINTF(1, 2);
static int kith(const char *fmt, ...) {
    char command[4096];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(command, sizeof command, fmt, ap);
    va_end(ap);
    return testing_run(output, sizeof output, "cd %s && " TESTING_K " && %s", testing_folder(),
                       testing_program(), command);
}

static void assert_said(const char *text) {
    if (!strstr(output, text)) fail_msg("no '%s' in: %s", text, output);
}

static void assert_done(int status, const char *text) {
    if (status != 0) fail_msg("exit status %d: %s", status, output);
    assert_said(text);
}

/* One line, that text in it, that exit status. */
static void assert_refused(int found, int wanted, const char *text) {
    if (found != wanted) fail_msg("exit status %d, wanted %d: %s", found, wanted, output);
    assert_said(text);
    assert_one_line_of(output);
}

#endif
