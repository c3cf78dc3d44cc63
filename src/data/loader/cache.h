/* A cache of prepared images (decoded, boxed, resized) with a byte budget.
 *
 * Every epoch visits every image once, so evicting the least recently used image would evict exactly the one
 * that comes next. So images are kept in the order they come until the budget is used up, and are never
 * evicted. Any number of threads may look up and add at once.
 *
 * The ranks of one machine have one cache together: what one has decoded, all find (docs/adr/0103). It is memory without a
 * name, so that nothing is left behind, however its ranks end. A rank that is killed while it adds an image leaves a gap that
 * nobody reads. Where the system has no more memory, an image is not kept. */
#ifndef KI_CACHE_H
#define KI_CACHE_H

#include "comm/comm.h"
#include "data/image/image.h"

typedef struct ki_cache ki_cache;

/* For items 0 … n_items - 1. All memory of the cache, its index included, stays within budget_bytes, and within
 * half of the memory that the process may use; a
 * budget too small for the index gives a cache that keeps nothing. Over ranks (comm, or NULL) every rank calls this, with the
 * same numbers; the budget is one machine's. Where a rank of a machine cannot have the shared memory, each has a cache of its
 * own and its part of the budget. */
kith_status ki_cache_new(int64_t n_items, size_t budget_bytes, ki_comm *comm, ki_cache **ret_cache,
                         kith_error *err);
void ki_cache_free(ki_cache *cache); /* NULL is fine */
/* The image, as a view that stays valid and unchanged as long as the cache; false: it is not there. */
bool ki_cache_get(const ki_cache *cache, int64_t item, ki_image *ret_view);
/* Keep a copy if there is room and it is not there yet. */
void ki_cache_put(ki_cache *cache, int64_t item, const ki_image *image);
size_t ki_cache_bytes(const ki_cache *cache);
int64_t ki_cache_count(const ki_cache *cache);
bool ki_cache_is_shared(const ki_cache *cache);

#endif
