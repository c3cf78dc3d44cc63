/* A cache of prepared images (decoded, boxed, resized) with a byte budget.
 *
 * Every epoch visits every image once, so evicting the least recently used image would evict exactly the one
 * that comes next. So images are kept in the order they come until the budget is used up, and are never
 * evicted. Any number of threads may look up and add at once. */
#ifndef KI_CACHE_H
#define KI_CACHE_H

#include "data/image/image.h"

typedef struct ki_cache ki_cache;

/* For items 0 … n_items - 1. All memory of the cache, its index included, stays within budget_bytes; a
 * budget too small for the index gives a cache that keeps nothing. */
kith_status ki_cache_new(int64_t n_items, size_t budget_bytes, ki_cache **ret_cache, kith_error *err);
void ki_cache_free(ki_cache *cache); /* NULL is fine */
/* The image, or NULL. It stays valid and unchanged as long as the cache. */
const ki_image *ki_cache_get(const ki_cache *cache, int64_t item);
/* Keep a copy if there is room and it is not there yet. */
void ki_cache_put(ki_cache *cache, int64_t item, const ki_image *image);
size_t ki_cache_bytes(const ki_cache *cache);
int64_t ki_cache_count(const ki_cache *cache);

#endif
