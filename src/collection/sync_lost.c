/* A list of lost items, by their contents. */
#include "collection/sync_lost.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

void ki_sync_lost_release(ki_sync_lost *l) {
    ki_free(l->item);
    *l = (ki_sync_lost){0};
}

kith_status ki_sync_lost_add(ki_sync_lost *l, int64_t id, const char *hash, int64_t file, kith_error *err) {
    KI_TRY(ki_grow(&l->item, &l->capacity, (size_t)l->n + 1, sizeof *l->item, "items that are gone", err));
    ki_lost *item = &l->item[l->n++];
    *item = (ki_lost){.id = id, .file = file};
    if (hash && strlen(hash) == 64) memcpy(item->hash, hash, 65);
    return KITH_OK;
}

static int by_hash(const void *a, const void *b) {
    const ki_lost *x = a, *y = b;
    const int order = strcmp(x->hash, y->hash);
    return order ? order : (x->id > y->id) - (x->id < y->id);
}

void ki_sync_lost_order(ki_sync_lost *l) {
    if (l->n > 0) qsort(l->item, (size_t)l->n, sizeof *l->item, by_hash);
}

ki_lost *ki_sync_lost_find(const ki_sync_lost *l, const char *hash) {
    int64_t low = 0, high = *hash ? l->n : 0;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (strcmp(l->item[middle].hash, hash) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; *hash && low < l->n && strcmp(l->item[low].hash, hash) == 0; low++) {
        if (!l->item[low].is_found) return &l->item[low];
    }
    return NULL;
}
