/* Indexes on a PostgreSQL server of the test's own: where they are. */
#ifndef KITH_TEST_POSTGRES_INDEX_H
#define KITH_TEST_POSTGRES_INDEX_H

#include <unistd.h>

#include "support/postgres.h"
#include "twin_index.h"

static char server[32], base[POSTGRES_ADDRESS_BYTES];

/* The address of an index of that name. */
static inline const char *at(const char *name) {
    static _Thread_local char address[POSTGRES_ADDRESS_BYTES + 64];
    snprintf(address, sizeof address, "%s#%s", base, name);
    return address;
}

/* For cmocka: starts the server. */
static inline int start_server(void **state) {
    (void)state;
    kith_error err = {0};
    kith_index *index = NULL;
    snprintf(server, sizeof server, "t%d", (int)getpid());
    snprintf(base, sizeof base, "%.1000s", postgres_start(server, ""));
    if (kith_index_open(at("none"), KITH_INDEX_READ, &index, &err) == KITH_EUNSUPPORTED)
        postgres_skip(err.message); /* built without libpq */
    assert_non_null(strstr(err.message, "there is no index of kith"));
    return 0;
}

#endif
