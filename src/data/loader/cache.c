/* The cache of prepared images: an entry per item, within a byte budget. */
#include "data/loader/cache.h"

#include <stdatomic.h>
#include <string.h>

#include "core/alloc.h"

struct ki_cache {
    int64_t n_items;
    size_t budget;
    atomic_size_t used;
    atomic_int_least64_t n_kept;
    _Atomic(ki_image *) *entry; /* NULL when the budget is too small for any */
};

kith_status ki_cache_new(int64_t n_items, size_t budget_bytes, ki_cache **ret_cache, kith_error *err) {
    kith_status status = KITH_OK;
    ki_cache *cache = NULL;
    size_t index_bytes = 0;
    KI_TRY(ki_zalloc_or(&cache, 1, sizeof *cache, "an image cache", err));
    cache->n_items = n_items;
    cache->budget = budget_bytes;
    if (ki_mul_size((size_t)n_items, sizeof *cache->entry, &index_bytes) && index_bytes < budget_bytes) {
        KI_CHECK(ki_alloc_or(&cache->entry, (size_t)n_items, sizeof *cache->entry, "an image cache", err));
        for (int64_t i = 0; i < n_items; i++) atomic_init(&cache->entry[i], NULL);
        atomic_init(&cache->used, index_bytes);
    }
    *ret_cache = cache;
    cache = NULL;
done:
    ki_cache_free(cache);
    return status;
}

void ki_cache_free(ki_cache *cache) {
    if (!cache) return;
    for (int64_t i = 0; cache->entry && i < cache->n_items; i++) ki_free(atomic_load(&cache->entry[i]));
    ki_free(cache->entry);
    ki_free(cache);
}

const ki_image *ki_cache_get(const ki_cache *cache, int64_t item) {
    return cache->entry ? atomic_load_explicit(&cache->entry[item], memory_order_acquire) : NULL;
}

/* Take bytes from the budget; false when not enough are left. */
static bool reserve(ki_cache *cache, size_t bytes) {
    size_t used = atomic_load(&cache->used);
    do {
        if (bytes > cache->budget - used) return false;
    } while (!atomic_compare_exchange_weak(&cache->used, &used, used + bytes));
    return true;
}

void ki_cache_put(ki_cache *cache, int64_t item, const ki_image *image) {
    if (!cache->entry || atomic_load(&cache->entry[item])) return;
    const size_t pixel_bytes = (size_t)image->w * (size_t)image->h * (size_t)image->channels;
    const size_t head = ki_round_up(sizeof *image, KI_ALIGN), bytes = head + pixel_bytes + KI_IMAGE_SLACK;
    if (!reserve(cache, bytes)) return;
    uint8_t *block = ki_alloc(bytes, 1);
    if (!block) { /* the loader works without the cache, too */
        atomic_fetch_sub(&cache->used, bytes);
        return;
    }
    ki_image *kept = (ki_image *)(void *)block;
    *kept = (ki_image){.w = image->w, .h = image->h, .channels = image->channels, .data = block + head};
    memcpy(kept->data, image->data, pixel_bytes);
    memset(kept->data + pixel_bytes, 0, KI_IMAGE_SLACK);
    ki_image *expected = NULL;
    if (atomic_compare_exchange_strong(&cache->entry[item], &expected, kept)) {
        atomic_fetch_add(&cache->n_kept, 1);
    } else { /* another thread was faster */
        atomic_fetch_sub(&cache->used, bytes);
        ki_free(block);
    }
}

size_t ki_cache_bytes(const ki_cache *cache) { return atomic_load(&cache->used); }
int64_t ki_cache_count(const ki_cache *cache) { return atomic_load(&cache->n_kept); }
