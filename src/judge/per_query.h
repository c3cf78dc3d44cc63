/* What every query came to, small enough for a result card, so that two results can be compared query by query.
 *
 *     "per_query": {"sha256": …, "k": [1, 2, 4, 8], "first_hit": "abZa…", "map_at_r": "zzzAAB…"}
 *
 * A letter of first_hit for each query: which is the smallest K of the list that finds something relevant ('a': the first … 'z',
 * then 'A' … 'F'), 'Z': none does, 'Y': there is nothing to find (a lone query). Three letters of map_at_r for each: its
 * value in 140,607 steps from 0 ("AAA") to 1 ("zzz"). The hash is of which queries there are: the classes of queries and
 * gallery, numbered as they appear, and where each query lies in the gallery. */
#ifndef KI_PER_QUERY_H
#define KI_PER_QUERY_H

#include "judge/sides.h"
#include "kith/card.h"
#include "kith/experimental/json.h"

typedef struct ki_per_query {
    int64_t n, n_k;
    int64_t k[KITH_MOST_K];
    char sha256[65];
    const char *first_hit, *map_at_r; /* [n] and [3 n] letters */
    char *own;                        /* that they lie in; NULL: a card's */
} ki_per_query;

/* Which queries of which gallery, for kith_retrieval.queries_sha256. */
kith_status ki_queries_hash(const ki_sides *sides, char ret_hex[65], kith_error *err);

kith_status ki_per_query_pack(const kith_retrieval *retrieval, ki_per_query *ret_queries, kith_error *err);
void ki_per_query_release(ki_per_query *queries); /* fine on a zeroed struct */

/* Into the object that is open. */
void ki_per_query_put(kith_json *json, const ki_per_query *queries);
/* From the block of a card ("test." or ""); lives as long as the card. *ret_queries has n = 0 where the card has none.
 * KITH_EFORMAT names a card whose letters are not as above. */
kith_status ki_per_query_read(const kith_card *card, const char *block, ki_per_query *ret_queries,
                              kith_error *err);

/* card_queries.c: the same or, for the card in the folder of a run that does not say it, from the test embeddings in that
 * folder. Give them back with ki_per_query_release. */
kith_status ki_card_queries(const kith_card *card, const char *block, ki_per_query *ret_queries,
                            kith_error *err);

bool ki_per_query_is_lone(const ki_per_query *queries, int64_t i);
/* Is K in the list? */
bool ki_per_query_has(const ki_per_query *queries, int64_t k);
/* R@K of a query that is not lone, for a K of the list; K 0: its MAP@R. */
double ki_per_query_value(const ki_per_query *queries, int64_t i, int64_t k);

#endif
