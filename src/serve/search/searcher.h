/* The searcher: one thread that embeds and searches, for all queries that wait at that moment together.
 *
 * The network and the search use every core for one call, and are faster per query the more there are in it. So queries are not
 * run side by side: those that arrive while a batch is under way make the next one. The wait of a query is bounded by the number
 * of requests in work, which the server limits. Clients take turns (turns.h), and a batch has no more pictures than it may have queries, so
 * that queries of many pictures hold up their own client first. */
#ifndef KI_SERVE_SEARCHER_H
#define KI_SERVE_SEARCHER_H

#include "kith/collection.h"
#include "serve/http/metrics.h"
#include "serve/http/pool.h"
#include "serve/http/turns.h"
#include "serve/search/catalog.h"

/* A query, and what came of it. Owned by the request that asks, as is all that `search` points at; ki_ask_release. */
typedef struct ki_ask ki_ask;
struct ki_ask {
    ki_request *request;               /* continues in the pool when there is a result */
    void (*task)(ki_request *request); /* instead of all below: something else to do with the model */
    kith_search_request search;
    int64_t n_pictures;                /* parts of it that are pixels */
    const kith_duplicates *duplicates; /* of its catalog; NULL: it does not hide them */
    kith_found found; /* hits are ids and scores: what is known of them is read by whoever answers */

    ki_turn turn; /* the searcher's */
};

void ki_ask_release(ki_ask *ask); /* fine on a zeroed struct */

typedef struct ki_searcher ki_searcher;

/* most_hits: looked at for a query, at most. deadline: seconds after which a query is not worth an answer any more. */
kith_status ki_searcher_new(ki_pool *pool, ki_metrics *metrics, int64_t most_batch, int64_t most_hits,
                            double deadline, ki_searcher **ret, kith_error *err);
/* Nobody asks any more. NULL is fine. */
void ki_searcher_free(ki_searcher *searcher);

/* Answer it with the catalog of its request, and give the request back to the pool. */
void ki_searcher_add(ki_searcher *searcher, ki_ask *ask);

#endif
