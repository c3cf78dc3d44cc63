/* The writer: one thread that carries out decisions about names, in the order in which they came.
 *
 * It opens the index for writing when something is to be decided, carries out all that waits, one commit for each, and closes it again, so that
 * `kith index --sync` of another process finds it free. While that process writes, decisions are refused after a short wait, and
 * their clients come back. When decisions were carried out, the index is opened anew for readers before they are answered, if that is quick: whoever has an
 * answer finds what was decided in the next one. A large index is opened by the thread that looks for commits of others, and an answer says which
 * commit to wait for. */
#ifndef KI_SERVE_NAMER_H
#define KI_SERVE_NAMER_H

#include "kith/names.h"
#include "serve/http/pool.h"
#include "serve/search/catalog.h"

/* How far it is, before or after a decision. */
typedef struct ki_naming_state {
    int64_t n_items, n_named, n_decided, n_checked, n_wrong;
    double rate, low, high;
} ki_naming_state;

/* Counts of names alone. */
ki_naming_state ki_naming_state_of(const kith_names *names);

/* A decision, and what came of it. Owned by the request, which comes back to the pool. */
typedef struct ki_name_job ki_name_job;
struct ki_name_job {
    ki_request *request;
    kith_name_request wanted; /* with all that it points at */
    kith_status status;       /* KITH_ECANCELED: another process writes the index */
    kith_error err;
    kith_name_result result;
    ki_naming_state before, after;
    int64_t generation; /* of the commit */
    ki_name_job *next;
};

typedef struct ki_namer ki_namer;

kith_status ki_namer_new(const char *index, ki_catalogs *catalogs, ki_pool *pool, ki_namer **ret,
                         kith_error *err);
/* What waits is carried out first. NULL is fine. */
void ki_namer_free(ki_namer *namer);

void ki_namer_add(ki_namer *namer, ki_name_job *job);

#endif
