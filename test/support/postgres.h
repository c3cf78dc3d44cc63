/* A PostgreSQL server for a test (scripts/postgres.sh): a test that can have none here skips. */
#ifndef KITH_TEST_POSTGRES_H
#define KITH_TEST_POSTGRES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/testing.h"

enum { POSTGRES_ADDRESS_BYTES = 1024, POSTGRES_OUTPUT_BYTES = 8192 };

/* Say why, and skip the whole program. */
static inline void postgres_skip(const char *why) {
    fprintf(stderr, "skipped: %s\n", why);
    exit(77);
}

static inline void postgres_stop(const char *name) {
    char output[POSTGRES_OUTPUT_BYTES];
    testing_run(output, sizeof output, "%s/scripts/postgres.sh stop %s", testing_source(), name);
}

/* Servers that were started: none outlives the test, however it ends. */
static char postgres_started[4][64];
static inline void postgres_stop_all(void) {
    for (int i = 0; i < 4; i++) {
        if (*postgres_started[i]) postgres_stop(postgres_started[i]);
    }
}

/* Start one with an empty cluster; `settings` are variables of the script. Returns its address. Nothing is fetched where kith has no
 * plugin to talk to it with. */
static inline const char *postgres_start(const char *name, const char *settings) {
    static char output[POSTGRES_OUTPUT_BYTES];
    if (testing_run(output, sizeof output,
                    "ls \"$(dirname %s)\"/lib*/kith/libkith-postgres.so "
                    "\"$(dirname %s)\"/lib/*/kith/libkith-postgres.so 2>/dev/null | grep .",
                    testing_program(), testing_program()) != 0)
        postgres_skip("the PostgreSQL plugin was not built (libpq-dev)");
    const int status = testing_run(output, sizeof output, "%s %s/scripts/postgres.sh start %s 2>&1", settings,
                                   testing_source(), name);
    if (status == 77) postgres_skip(output);
    if (status != 0) fail_msg("postgres.sh start: %s", output);
    output[strcspn(output, "\n")] = '\0';
    for (int i = 0; i < 4; i++) {
        if (i == 0 && !*postgres_started[0]) atexit(postgres_stop_all);
        if (*postgres_started[i]) continue;
        snprintf(postgres_started[i], sizeof postgres_started[i], "%s", name);
        break;
    }
    return output;
}

/* Skip a test that wants more than PGlite has: several clients at a time, databases, roles, a restart. */
static inline void postgres_needs_server(const char *address) {
    if (!strstr(address, "application_name=pglite")) return;
    print_message("skipped: PGlite serves one client at a time\n");
    skip();
}

/* Run statements in a database; what they print is in *ret_output (may be NULL). */
static inline void postgres_sql(const char *name, const char *database, const char *sql, char *ret_output) {
    static char output[POSTGRES_OUTPUT_BYTES], path[4096];
    snprintf(path, sizeof path, "%s/statements.sql", testing_folder());
    testing_write(path, sql);
    const int status = testing_run(output, sizeof output, "%s/scripts/postgres.sh sql %s %s <%s 2>&1",
                                   testing_source(), name, database, path);
    if (status == 77) {
        print_message("skipped: %s", output);
        skip();
    }
    if (status != 0) fail_msg("%s: %s", sql, output);
    if (ret_output) snprintf(ret_output, POSTGRES_OUTPUT_BYTES, "%s", output);
}

#endif
