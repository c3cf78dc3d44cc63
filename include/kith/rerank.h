/* Better lists of neighbours from the lists themselves, without labels: query expansion and k-reciprocal re-ranking.
 *
 * Both take lists as kith_gallery_search and kith_gallery_self give them (kith/knn.h), by cosine. The same input gives the same
 * bits for any number of threads, and memory is linear in the number of rows times the length of a list. */
#ifndef KITH_RERANK_H
#define KITH_RERANK_H

#include <stddef.h>
#include <stdint.h>

#include "kith/array.h"
#include "kith/index.h"
#include "kith/knn.h"
#include "kith/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- query expansion ---- */

/* A query moves towards its nearest neighbours and searches again (Chum et al. 2007; weighted by similarity: Radenović, Tolias
 * and Chum 2018): q' = q + sum over the k nearest g of max(cos(q, g), 0)^alpha g, with rows of length 1, and q' is scaled
 * to length 1 too. */
typedef struct kith_expansion_options {
    size_t size;  /* of the struct: set by kith_expansion_options_init */
    int64_t k;    /* neighbours that are added, 5 */
    double alpha; /* 3; 0: all alike, which is average query expansion */
} kith_expansion_options;

/* The numbers above. */
KITH_API void kith_expansion_options_init(kith_expansion_options *options, size_t size);

/* query [n, dim], gallery [m, dim]; lists [n, list_size] of the queries in the gallery, of which the first k count; entries
 * with index -1 are passed over. ret_query, float32 [n, dim], is a new array. KITH_EINVAL for an index that is no row of the
 * gallery, or k above list_size. */
KITH_API kith_status kith_query_expand(const kith_array *query, const kith_array *gallery,
                                       const kith_neighbor *lists, int64_t list_size,
                                       const kith_expansion_options *options, kith_array *ret_query,
                                       kith_error *err);

/* ---- k-reciprocal re-ranking ---- */

/* Zhong, Zheng, Cao and Li 2017: two rows belong together when each is among the nearest of the other. Every row has a set of
 * k1-reciprocal neighbours, weighted by exp(-distance) and averaged over its k2 nearest; the Jaccard similarity J of two sets
 * re-ranks a list: lambda cos + (1 - lambda) J. The distance is 1 - cos (in the paper, the Euclidean one over its largest
 * value, for which all pairs would be needed). */
typedef struct kith_reciprocal_options {
    size_t size;   /* of the struct: set by kith_reciprocal_options_init */
    int64_t k1;    /* 20 */
    int64_t k2;    /* 6; 1: sets are not averaged */
    double lambda; /* 0.3, from 0 to 1: how much the cosine itself counts */
    /* kith_index_search_reciprocal: so many of the nearest are put into a new order, and the rest follow in theirs. 0: twice k,
     * at least 100. It does not depend on the offset, so that pages of one list fit together. */
    int64_t n_candidates;
} kith_reciprocal_options;

/* The numbers above. */
KITH_API void kith_reciprocal_options_init(kith_reciprocal_options *options, size_t size);

/* The sets of all rows of a gallery. Re-ranking does not change it: several threads may use one. */
typedef struct kith_reciprocal kith_reciprocal;

/* gallery [n, dim] must outlive the object; lists [n, list_size] of its rows among each other (kith_gallery_self), of which the
 * first k1 count: list_size of at least k1 and k2 - 1 is needed, or as many as there are other rows. */
KITH_API kith_status kith_reciprocal_new(const kith_array *gallery, const kith_neighbor *lists,
                                         int64_t list_size, const kith_reciprocal_options *options,
                                         kith_reciprocal **ret_reciprocal, kith_error *err);
KITH_API void kith_reciprocal_free(kith_reciprocal *reciprocal); /* NULL is fine */

/* Puts the lists [n, list_size] of queries in the gallery into their new order, in place: best first, equal ones by lower
 * index. Scores become lambda cos + (1 - lambda) J. Entries with index -1 stay behind. Only what is in a list can move up:
 * make lists longer than what is shown. `self` (may be NULL) gives for every query the row of the gallery that it is, or -1. A
 * query that is not in the gallery is compared as if it alone had been added, without a place of its own in the sets; its list
 * must have at least k1 and k2 - 1 entries. */
KITH_API kith_status kith_reciprocal_rerank(const kith_reciprocal *reciprocal, const kith_array *query,
                                            const int64_t *self, kith_neighbor *lists, int64_t list_size,
                                            kith_error *err);

/* ---- of an index ---- */

/* kith_index_search, with lists in a better order: expansion asks twice, k-reciprocal re-ranking orders the nearest
 * candidates (n_candidates) by the neighbours they share with the query. Scores stay cosines with the query that was asked, so lists
 * are no longer in their order, and limits and false-match rates mean what they meant. Options NULL: the defaults. KITH_EUNSUPPORTED
 * for an index that compares by anything but cosine. */
KITH_API kith_status kith_index_search_expanded(const kith_index *index, const kith_array *query,
                                                const kith_search_options *options,
                                                const kith_expansion_options *expansion_options,
                                                kith_hits *ret_hits, kith_error *err);
KITH_API kith_status kith_index_search_reciprocal(const kith_index *index, const kith_array *query,
                                                  const kith_search_options *options,
                                                  const kith_reciprocal_options *reciprocal_options,
                                                  kith_hits *ret_hits, kith_error *err);

#ifdef __cplusplus
}
#endif
#endif
