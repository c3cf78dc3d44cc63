/* Groups of the same picture: found once for each commit of the index, when somebody first asks.
 *
 * Finding them reads every picture again: a moment for a thousand, minutes for a hundred thousand. A request that wants them
 * waits for a few seconds and is then told to come back. */
#ifndef KI_SERVE_GROUPS_H
#define KI_SERVE_GROUPS_H

#include "kith/duplicates.h"
#include "serve/http/pool.h"
#include "serve/search/catalog.h"

/* The groups of one commit. */
typedef struct ki_duplicate_groups {
    int64_t generation;
    kith_duplicates found;
    kith_status status; /* of finding them */
    kith_error err;
    int64_t n_users;
} ki_duplicate_groups;

typedef struct ki_finder ki_finder;

kith_status ki_finder_new(ki_catalogs *catalogs, ki_pool *pool, ki_finder **ret, kith_error *err);
/* Whoever waits is answered with 503, and what is being found is dropped. Requests that come later are answered so, too. */
void ki_finder_end(ki_finder *finder);
void ki_finder_free(ki_finder *finder); /* NULL is fine; nobody waits and nobody asks any more */

/* The groups of the request's catalog, or NULL: the request then waits, and request->then is run in the pool when they are there,
 * or has its answer (503). */
ki_duplicate_groups *ki_finder_ask(ki_finder *finder, ki_request *request);
void ki_finder_give_back(ki_finder *finder, ki_duplicate_groups *groups); /* NULL is fine */

/* Called now and then: whoever has waited for long is told to come back. */
void ki_finder_tick(ki_finder *finder, double now);

#endif
