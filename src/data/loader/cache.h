/* A cache of prepared images (decoded, boxed, resized) with a byte budget.
 *
 * Every epoch visits every image once, so evicting the least recently used image would evict exactly the one
 * that comes next. So images are kept in the order they come until the budget is used up, and are never
 * evicted. Any number of threads may look up and add at once.
 *
 * The ranks of one machine have one cache together: what one has decoded, all find (docs/adr/0103). It is memory without a
 * name, so that nothing is left behind, however its ranks end. A rank that is killed while it adds an image leaves a gap that
 * nobody reads. */
#ifndef KI_CACHE_H
#define KI_CACHE_H

#include "comm/comm.h"
#include "data/image/image.h"

typedef struct ki_cache ki_cache;

/* For items 0 … n_items - 1. All memory of the cache, its index included, stays within budget_bytes; a
 * budget too small for the index gives a cache that keeps nothing. Over ranks (comm, or NULL) every rank calls this, with the
 * same numbers; the budget is one machine's. Where ranks cannot share memory, each has a cache of its own and its part of
 * the budget. */
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

/* ---- between the files of this folder ---- */

/* shared.c: `bytes` bytes of zeros that the ranks of this machine have together. Every rank calls this. *ret_memory is NULL
 * where it is not possible, or no other rank is here; *ret_n_here: how many ranks share them. */
kith_status ki_shared_take(ki_comm *comm, size_t bytes, void **ret_memory, int *ret_n_here, kith_error *err);
void ki_shared_give(void *memory, size_t bytes); /* NULL is fine */

#endif
