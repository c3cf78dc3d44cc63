/* The cache of prepared images: an entry per item, within a byte budget.
 *
 * An entry says where the image is: an address on the heap or, in memory that several ranks share, its distance from the
 * beginning, because each rank has that memory at another address. */
#include "data/loader/cache.h"

#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cores.h"
#include "data/loader/shared.h"

/* All zero at the beginning. */
typedef struct counts {
    atomic_size_t used; /* by images */
    atomic_int_least64_t n_kept;
} counts;

/* Before an image's pixels. */
typedef struct head {
    int32_t w, h, channels;
} head;

struct ki_cache {
    int64_t n_items;
    size_t budget;             /* of images */
    size_t index_bytes;        /* counts and entries */
    ki_shared shared;          /* no memory: images are on the heap */
    counts own, *counts;       /* the cache's own, or those in the shared memory */
    _Atomic(uintptr_t) *entry; /* 0: not there; NULL when the budget is too small for any */
};

enum { HEAD_BYTES = KI_ALIGN, MEMORY_PARTS = 2 };
_Static_assert(sizeof(head) <= HEAD_BYTES, "an image's head");

/* The counts and the entries at the beginning of shared memory. */
static size_t entries_at(void) { return ki_round_up(sizeof(counts), KI_ALIGN); }

static kith_status make_entries(ki_cache *cache, size_t budget, ki_comm *comm, kith_error *err) {
    ki_shared *shared = &cache->shared;
    const size_t index_pages = ki_shared_pages(cache->index_bytes);
    KI_TRY(ki_shared_take(comm, budget, index_pages, shared, err));
    if (shared->memory) cache->index_bytes = index_pages;
    budget = budget / (size_t)shared->n_here * (size_t)shared->n_sharing;
    if (cache->index_bytes >= budget) return KITH_OK;
    cache->budget = budget - cache->index_bytes;
    if (shared->memory) {
        cache->counts = (void *)shared->memory;
        cache->entry = (void *)(shared->memory + entries_at());
        return KITH_OK;
    }
    KI_TRY(ki_alloc_or(&cache->entry, (size_t)cache->n_items, sizeof *cache->entry, "an image cache", err));
    for (int64_t i = 0; i < cache->n_items; i++) atomic_init(&cache->entry[i], 0);
    return KITH_OK;
}

/* What a container's limit does not hold ends the process. Ranks must have the same budget, and their limits may differ: the least
 * counts. */
static kith_status fit_memory(ki_comm *comm, size_t *budget, kith_error *err) {
    int64_t each[KI_MOST_RANKS];
    const int64_t wanted = *budget < INT64_MAX ? (int64_t)*budget : INT64_MAX;
    int64_t least = ki_memory_part(wanted, MEMORY_PARTS);
    if (!ki_comm_is_alone(comm)) {
        KI_TRY(ki_comm_gather_counts(comm, least, each, err));
        for (int r = 0; r < comm->size; r++) least = each[r] < least ? each[r] : least;
    }
    *budget = (size_t)least;
    return KITH_OK;
}

kith_status ki_cache_new(int64_t n_items, size_t budget_bytes, ki_comm *comm, ki_cache **ret_cache,
                         kith_error *err) {
    kith_status status = KITH_OK;
    ki_cache *cache = NULL;
    size_t bytes = 0;
    KI_TRY(fit_memory(comm, &budget_bytes, err));
    status = ki_zalloc_or(&cache, 1, sizeof *cache, "an image cache", err);
    KI_CHECK(ki_comm_agree(comm, status, err));
    cache->n_items = n_items;
    cache->counts = &cache->own;
    if (ki_mul_size((size_t)n_items, sizeof *cache->entry, &bytes) &&
        ki_add_size(bytes, entries_at() + KI_ALIGN, &bytes) && bytes < budget_bytes) {
        cache->index_bytes = ki_round_up(bytes, KI_ALIGN);
        KI_CHECK(ki_comm_agree(comm, make_entries(cache, budget_bytes, comm, err), err));
    }
    *ret_cache = cache;
    cache = NULL;
done:
    ki_cache_free(cache);
    return status;
}

void ki_cache_free(ki_cache *cache) {
    if (!cache) return;
    if (cache->shared.memory) {
        ki_shared_give(&cache->shared);
    } else {
        for (int64_t i = 0; cache->entry && i < cache->n_items; i++)
            ki_free((void *)atomic_load(&cache->entry[i]));
        ki_free(cache->entry);
    }
    ki_free(cache);
}

static char *block_at(const ki_cache *cache, uintptr_t place) {
    return cache->shared.memory ? cache->shared.memory + place : (char *)place;
}

bool ki_cache_get(const ki_cache *cache, int64_t item, ki_image *ret) {
    const uintptr_t place =
        cache->entry ? atomic_load_explicit(&cache->entry[item], memory_order_acquire) : 0;
    if (!place) return false;
    char *block = block_at(cache, place);
    const head *h = (const head *)(void *)block;
    *ret = (ki_image){.w = h->w, .h = h->h, .channels = h->channels, .data = (uint8_t *)block + HEAD_BYTES};
    return true;
}

/* Shared memory is filled by page. An image has pages of its own: a rank that gets only some of those it asks for gives them
 * back, and must not give back another's. */
static size_t round_up(const ki_cache *cache, size_t bytes) {
    return cache->shared.memory ? ki_shared_pages(bytes) : ki_round_up(bytes, KI_ALIGN);
}

/* Take bytes from the budget, those behind *ret_before; false when not enough are left. */
static bool reserve(ki_cache *cache, size_t bytes, size_t *ret_before) {
    size_t used = atomic_load(&cache->counts->used);
    do {
        if (bytes > cache->budget - used) return false;
    } while (!atomic_compare_exchange_weak(&cache->counts->used, &used, used + bytes));
    *ret_before = used;
    return true;
}

/* Room that is not used. In shared memory, room that is no longer the last stays empty. */
static void give(ki_cache *cache, uintptr_t place, size_t bytes) {
    if (cache->shared.memory) {
        size_t after = place - cache->index_bytes + bytes;
        atomic_compare_exchange_strong(&cache->counts->used, &after, after - bytes);
        return;
    }
    atomic_fetch_sub(&cache->counts->used, bytes);
    ki_free((void *)place);
}

/* Room for an image; 0: there is none. Where memory has run out, the loader works without the cache. */
static uintptr_t take(ki_cache *cache, size_t bytes) {
    size_t before = 0;
    if (!reserve(cache, bytes, &before)) return 0;
    if (cache->shared.memory) {
        const uintptr_t place = cache->index_bytes + before;
        if (ki_shared_fill(&cache->shared, place, bytes)) return place;
        give(cache, place, bytes);
        return 0;
    }
    void *block = ki_alloc(bytes, 1);
    if (!block) atomic_fetch_sub(&cache->counts->used, bytes);
    return (uintptr_t)block;
}

void ki_cache_put(ki_cache *cache, int64_t item, const ki_image *image) {
    if (!cache->entry || atomic_load(&cache->entry[item])) return;
    const size_t pixel_bytes = (size_t)image->w * (size_t)image->h * (size_t)image->channels;
    const size_t bytes = round_up(cache, HEAD_BYTES + pixel_bytes + KI_IMAGE_SLACK);
    const uintptr_t place = take(cache, bytes);
    if (!place) return;
    char *block = block_at(cache, place), *pixels = block + HEAD_BYTES;
    *(head *)(void *)block = (head){.w = image->w, .h = image->h, .channels = image->channels};
    memcpy(pixels, image->data, pixel_bytes);
    memset(pixels + pixel_bytes, 0, KI_IMAGE_SLACK);
    uintptr_t expected = 0;
    if (atomic_compare_exchange_strong(&cache->entry[item], &expected, place))
        atomic_fetch_add(&cache->counts->n_kept, 1);
    else
        give(cache, place, bytes);
}

size_t ki_cache_bytes(const ki_cache *cache) {
    return cache->entry ? cache->index_bytes + atomic_load(&cache->counts->used) : 0;
}
int64_t ki_cache_count(const ki_cache *cache) { return atomic_load(&cache->counts->n_kept); }
bool ki_cache_is_shared(const ki_cache *cache) { return cache->shared.memory != NULL; }
