/* The hits of a search as the caller wants them: pages, limits, one list behind the other. */
#ifndef KI_SEARCH_HIT_LIST_H
#define KI_SEARCH_HIT_LIST_H

#include "base/error.h"
#include "kith/index.h"

/* Zero-initialise. */
typedef struct ki_hit_list {
    const kith_search_options *o;
    bool is_distance; /* lower scores are nearer */
    int64_t most;     /* neighbours of a query that can be wanted, those of earlier pages too */
    kith_hits hits;
    size_t n, capacity;
} ki_hit_list;

/* n_allowed: items that may be found. The options live as long as the list. */
kith_status ki_hit_list_init(ki_hit_list *list, const kith_search_options *options, kith_metric metric,
                             int64_t n_queries, int64_t n_allowed, kith_error *err);
void ki_hit_list_release(ki_hit_list *list);

/* Can there be any hits at all? */
static inline bool ki_hit_list_wants(const ki_hit_list *list) { return list->most > list->o->offset; }
/* How many neighbours to look for first; with a limit a few, because few may be within it. */
int64_t ki_hit_list_first_k(const ki_hit_list *list);
/* Are the k nearest of one query (fewer: the rest has index -1) too few, because all are within the limit? */
bool ki_hit_list_is_cut(const ki_hit_list *list, const kith_neighbor *nearest, int64_t k);
/* How many to look for then. */
int64_t ki_hit_list_next_k(const ki_hit_list *list, int64_t k);

/* The neighbours [k] of a query, nearest first; queries come in order. Their ids are ids[index]; ids NULL: the indexes themselves. */
kith_status ki_hit_list_add(ki_hit_list *list, int64_t query, const kith_neighbor *nearest, int64_t k,
                            const int64_t *ids, kith_error *err);
/* Hands out the hits. */
void ki_hit_list_take(ki_hit_list *list, bool is_exact, kith_hits *ret_hits);

#endif
