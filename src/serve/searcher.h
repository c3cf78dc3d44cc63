/* The searcher: one thread that embeds and searches, for all queries that wait at that moment together.
 *
 * The network and the search use every core for one call, and are faster per query the more there are in it. So queries are not
 * run side by side: those that arrive while a batch is under way make the next one. The wait of a query is bounded by the number
 * of requests in work, which the server limits. Clients take turns (turns.h), and a batch has no more pictures than it may have queries, so
 * that queries of many pictures hold up their own client first. */
#ifndef KI_SERVE_SEARCHER_H
#define KI_SERVE_SEARCHER_H

#include "serve/catalog.h"
#include "serve/metrics.h"
#include "serve/pool.h"
#include "serve/turns.h"

/* A query, and what came of it. Owned by the request that asks, as are the pixels; ki_ask_release. */
typedef struct ki_ask ki_ask;
struct ki_ask {
    ki_request *request;               /* continues in the pool when there is a result */
    void (*task)(ki_request *request); /* instead of all below: something else to do with the model */
    /* Pictures, or items of the index, each with a weight: at least one in all. */
    kith_pixels *picture;
    int64_t *id; /* of an item; -1: the picture of the same place */
    double *weight;
    int64_t n;
    /* What to find. */
    char *where; /* NULL: anything */
    bool exact, has_limit;
    double limit;
    int64_t k, offset;
    /* The result. */
    kith_status status;
    kith_error err;
    float *row; /* the query's vector */
    kith_hit *hits;
    int64_t n_hits, n_allowed;
    bool is_exact;

    ki_turn turn; /* the searcher's */
};

void ki_ask_release(ki_ask *ask); /* fine on a zeroed struct */

typedef struct ki_searcher ki_searcher;

/* deadline: seconds after which a query is not worth an answer any more. */
kith_status ki_searcher_new(ki_pool *pool, ki_metrics *metrics, int64_t most_batch, double deadline,
                            ki_searcher **ret, kith_error *err);
/* Nobody asks any more. NULL is fine. */
void ki_searcher_free(ki_searcher *searcher);

/* Answer it with the catalog of its request, and give the request back to the pool. */
void ki_searcher_add(ki_searcher *searcher, ki_ask *ask);

#endif
