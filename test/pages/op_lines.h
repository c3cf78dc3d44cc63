/* The cases of one op in a case file of the pages. */
#ifndef KITH_TEST_OP_LINES_H
#define KITH_TEST_OP_LINES_H

#include <stdio.h>
#include <string.h>

#include "support/op_case.h"
#include "support/testing.h"

/* Calls run for each line of test/cases/FILE.txt, as the pages have it, that is of the op: there must be n. */
static inline void op_lines(const char *file, const char *op, int n,
                            void (*run)(const op_case *c, void *user), void *user) {
    char path[1024], line[200];
    int n_found = 0;
    snprintf(path, sizeof path, "%s/test/cases/%s.txt", KITH_PAGES_DIR, file);
    FILE *cases = fopen(path, "r");
    if (!cases) fail_msg("no case file %s", path);
    while (fgets(line, sizeof line, cases)) {
        const size_t length = strlen(op);
        if (strncmp(line, op, length) != 0 || line[length] != ' ') continue;
        line[strcspn(line, "\n")] = '\0';
        op_case c;
        op_case_parse(line, &c);
        run(&c, user);
        n_found++;
    }
    fclose(cases);
    assert_int_equal(n_found, n);
}

#endif
