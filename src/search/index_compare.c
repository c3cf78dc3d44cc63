/* Files compared with items: what is new, changed, gone. */
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/argument.h"
#include "base/checksum.h"
#include "search/index_handle.h"

/* The items, a hash table of their paths, and which of them were met. */
typedef struct paths {
    ki_item_stamp *item; /* [n] */
    int64_t n;
    ki_arena texts;
    uint32_t *slot; /* [n_slots]: numbers of items plus 1 */
    size_t n_slots;
    uint64_t *is_met; /* a bit per item */
} paths;

static bool is_met(const paths *p, int64_t i) { return p->is_met[i / 64] >> i % 64 & 1; }

static size_t slot_of(const paths *p, const char *path) {
    size_t at = (size_t)ki_checksum(path, strlen(path), 0) & (p->n_slots - 1);
    for (; p->slot[at] && strcmp(p->item[p->slot[at] - 1].path, path) != 0;) at = (at + 1) & (p->n_slots - 1);
    return at;
}

static kith_status build(paths *p, kith_error *err) {
    p->n_slots = 64;
    while (p->n_slots < (size_t)p->n * 2) p->n_slots *= 2;
    KI_TRY(ki_zalloc_or(&p->slot, p->n_slots, sizeof *p->slot, "paths", err));
    KI_TRY(ki_zalloc_or(&p->is_met, (size_t)(p->n + 63) / 64, sizeof *p->is_met, "paths", err));
    for (int64_t i = 0; i < p->n; i++) {
        const char *path = p->item[i].path;
        if (path) p->slot[slot_of(p, path)] = (uint32_t)i + 1; /* of two with one path the last counts */
    }
    return KITH_OK;
}

static void compare_file(paths *p, const ki_index_place *place, const kith_file_stamp *file,
                         kith_file_state *ret_state, int64_t *ret_id) {
    ki_path buf;
    const int64_t i = (int64_t)p->slot[slot_of(p, ki_index_place_was(place, file->path, &buf))] - 1;
    *ret_state = KITH_FILE_NEW;
    *ret_id = -1;
    if (i < 0) return;
    const ki_item_stamp *item = &p->item[i];
    const bool is_same = item->bytes == file->bytes && item->mtime_ns == file->mtime_ns;
    *ret_state = is_same ? KITH_FILE_SAME : KITH_FILE_CHANGED;
    *ret_id = item->id;
    p->is_met[i / 64] |= UINT64_C(1) << i % 64;
}

static kith_status list_gone(const paths *p, int64_t **ret_gone, int64_t *ret_n_gone, kith_error *err) {
    int64_t *gone = NULL, n = 0;
    KI_TRY(ki_alloc_or(&gone, (size_t)p->n, sizeof *gone, "ids", err));
    for (int64_t i = 0; i < p->n; i++) {
        if (p->item[i].path && !is_met(p, i)) gone[n++] = p->item[i].id;
    }
    *ret_gone = gone;
    *ret_n_gone = n;
    return KITH_OK;
}

kith_status kith_index_compare(const kith_index *index, const kith_file_stamp *files, int64_t n,
                               kith_file_state *ret_states, int64_t *ret_ids, int64_t **ret_gone,
                               int64_t *ret_n_gone, kith_error *err) {
    KI_NEED(err, index, files, ret_states, ret_ids, ret_gone, ret_n_gone);
    KI_NEED_COUNT(err, n);
    kith_status status = KITH_OK;
    paths p = {0};
    for (int64_t i = 0; i < n; i++) {
        if (!files[i].path) return ki_fail(err, KITH_EINVAL, "file %lld has no path", (long long)i);
    }
    KI_CHECK(index->store->type->stamps(index->store, &p.texts, &p.item, &p.n, err));
    KI_CHECK(build(&p, err));
    for (int64_t i = 0; i < n; i++) compare_file(&p, index->place, &files[i], &ret_states[i], &ret_ids[i]);
    KI_CHECK(list_gone(&p, ret_gone, ret_n_gone, err));
done:
    ki_free(p.item);
    ki_arena_release(&p.texts);
    ki_free(p.slot);
    ki_free(p.is_met);
    return status;
}
