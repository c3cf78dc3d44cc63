/* A connection to PostgreSQL, and statements on it. */
#ifndef KI_SEARCH_POSTGRES_LINK_H
#define KI_SEARCH_POSTGRES_LINK_H

#include <libpq-fe.h>

#include "base/buffer.h"
#include "search/remote/remote.h"

#define KI_PG_ASK_OWNER "ask whoever owns the database for it (docs/postgresql.md has the GRANTs)"
enum { KI_PG_MOST_NAME = 63 }; /* bytes of an identifier */

struct ki_link {
    PGconn *conn;
    char *address;  /* for libpq, without the name of the index and the password */
    char *password; /* NULL: the address has none */
    char schema[KI_PG_MOST_NAME + 1];
    char name[512]; /* "host:5432/db#schema", for errors */
    bool writes;
    bool in_change;   /* a transaction that changes is open */
    bool in_snapshot; /* a reader's transaction is open */
    int effort;       /* hnsw.ef_search as it is set; 0: not yet */
    PGresult *window; /* of a snapshot: items that were read together, by id; NULL: none */
    int64_t last_id;  /* the item that was asked for last */
};

/* Values for $1, $2, … of a statement. All memory is in the arena. Zero-initialise. */
typedef struct ki_pg_values {
    ki_arena arena;
    int n;
    size_t capacity;
    const char **value; /* NULL: null */
    int *bytes, *is_binary;
    size_t capacities[2]; /* of bytes and is_binary */
    kith_status status;   /* KITH_ENOMEM: a value is missing */
} ki_pg_values;

/* The number of the new value, from 1. */
int ki_pg_text(ki_pg_values *values, const char *text);
int ki_pg_int(ki_pg_values *values, int64_t value);
/* {1,2,3} */
int ki_pg_ints(ki_pg_values *values, const int64_t *value, int64_t n);
/* A float32 [dim] in the binary form of the type vector. */
int ki_pg_vector(ki_pg_values *values, const float *row, int64_t dim);
void ki_pg_values_release(ki_pg_values *values);

kith_status ki_pg_open(const char *address, bool writes, ki_link **ret_link, kith_error *err);
void ki_pg_close(ki_link *link);
const char *ki_pg_name(const ki_link *link);

/* One writes at a time: a second one is told, with KITH_EINVAL. The lock ends with the connection. */
kith_status ki_pg_lock(ki_link *link, kith_error *err);
/* From now on names are looked up in the index's own schema and in that of the extension, whatever the role's search_path is. */
kith_status ki_pg_session(ki_link *link, kith_error *err);

/* Run one statement; values may be NULL. A lost connection is made anew when nothing is pending on it. The result is the
 * caller's: PQclear. ret_result may be NULL. */
kith_status ki_pg_run(ki_link *link, const char *sql, const ki_pg_values *values, bool is_binary,
                      PGresult **ret_result, kith_error *err);
/* The same, asking `tally` (may be NULL) several times a second whether to stop. */
kith_status ki_pg_run_long(ki_link *link, const char *sql, ki_tally *tally, kith_error *err);

/* A reader's transaction, in which it sees one commit; a writer's, which the next commit ends. Fine when one is open. */
kith_status ki_pg_snapshot(ki_link *link, kith_error *err);
kith_status ki_pg_change(ki_link *link, kith_error *err);
/* End the reader's transaction. */
void ki_pg_snapshot_end(ki_link *link);

/* What the server, or the connection (result NULL), complains of. */
kith_status ki_pg_fail(ki_link *link, const PGresult *result, kith_error *err);

/* Numbers as they are on the wire. */
uint32_t ki_pg_get32(const char *from);
uint64_t ki_pg_get64(const char *from);
void ki_pg_put_vector(char *to, const float *row, int64_t dim); /* ki_pg_vector_bytes(dim) bytes */
/* KITH_EFORMAT unless it is a vector of dim numbers. */
kith_status ki_pg_get_vector(const ki_link *link, const PGresult *result, int row, int column, int64_t dim,
                             float *ret_row, kith_error *err);
static inline size_t ki_pg_vector_bytes(int64_t dim) { return 4 + 4 * (size_t)dim; }

#endif
