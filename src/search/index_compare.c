/* Files compared with items: what is new, changed, gone. */
#include <string.h>

#include "core/alloc.h"
#include "core/arena.h"
#include "core/argument.h"
#include "core/checksum.h"
#include "search/index_handle.h"

/* The items, by number: the rows of a snapshot, or a list that a server sent. */
typedef struct known {
    ki_view *view;          /* NULL: a list */
    const ki_cells **cells; /* [segments]: their paths */
    struct entry {
        int64_t id, bytes, mtime_ns;
        const char *path;
    } * list;
    size_t n_list, capacity;
    ki_arena texts; /* of the list */
    kith_status status;
    int64_t n; /* items, with those that are gone */
} known;

/* A hash table of the paths of items, and which of them were met. */
typedef struct paths {
    known known;
    uint32_t *slot; /* [n_slots]: numbers of items plus 1 */
    size_t n_slots;
    uint64_t *is_met; /* a bit per item */
} paths;

/* ---- the items ---- */

static void take_stamp(void *user, int64_t id, const char *path, int64_t bytes, int64_t mtime_ns) {
    known *k = user;
    if (k->status != KITH_OK) return;
    k->status = ki_grow(&k->list, &k->capacity, k->n_list + 1, sizeof *k->list, "items", NULL);
    const char *copy = path && k->status == KITH_OK ? ki_arena_strdup(&k->texts, path) : NULL;
    if (path && !copy) k->status = KITH_ENOMEM;
    if (k->status == KITH_OK) k->list[k->n_list++] = (struct entry){id, bytes, mtime_ns, copy};
}

static kith_status know(const kith_index *index, known *k, kith_error *err) {
    if (index->remote) {
        KI_TRY(ki_remote_stamps(index->remote, take_stamp, k, err));
        k->n = (int64_t)k->n_list;
        return k->status == KITH_OK ? KITH_OK : ki_fail_memory(err, sizeof *k->list, "items");
    }
    k->view = index->view;
    const ki_snapshot *s = k->view->snapshot;
    k->n = s->n_rows;
    KI_TRY(ki_zalloc_or(&k->cells, (size_t)s->manifest.n_segments, sizeof *k->cells, "paths", err));
    for (int64_t i = 0; i < s->manifest.n_segments; i++)
        KI_TRY(ki_columns_get(&k->view->columns, i, KI_COLUMN_PATH, &k->cells[i], err));
    return KITH_OK;
}

static void known_release(known *k) {
    ki_free(k->cells);
    ki_free(k->list);
    ki_arena_release(&k->texts);
}

static bool is_there(const known *k, int64_t i) { return !k->view || ki_bit(k->view->snapshot->alive, i); }
static int64_t id_of(const known *k, int64_t i) {
    return k->view ? k->view->snapshot->ids[i] : k->list[i].id;
}

static const char *path_of(const known *k, int64_t row) {
    if (!k->view) return k->list[row].path;
    const ki_snapshot *s = k->view->snapshot;
    const int64_t i = ki_snapshot_segment(s, row);
    const kith_value value = ki_cells_get(k->cells[i], row - s->first[i]);
    return value.type == KITH_VALUE_TEXT ? value.text : NULL;
}

static kith_status stamp_of(const known *k, int64_t row, int64_t *ret_bytes, int64_t *ret_mtime_ns,
                            kith_error *err) {
    if (!k->view) {
        *ret_bytes = k->list[row].bytes;
        *ret_mtime_ns = k->list[row].mtime_ns;
        return KITH_OK;
    }
    kith_value bytes, mtime;
    KI_TRY(ki_snapshot_cell(k->view->snapshot, KI_COLUMN_BYTES, row, &bytes, err));
    KI_TRY(ki_snapshot_cell(k->view->snapshot, KI_COLUMN_MTIME, row, &mtime, err));
    *ret_bytes = bytes.integer;
    *ret_mtime_ns = mtime.integer;
    return KITH_OK;
}

/* ---- their paths ---- */

static size_t slot_of(const paths *p, const char *path) {
    size_t at = (size_t)ki_checksum(path, strlen(path), 0) & (p->n_slots - 1);
    for (; p->slot[at] && strcmp(path_of(&p->known, p->slot[at] - 1), path) != 0;)
        at = (at + 1) & (p->n_slots - 1);
    return at;
}

static kith_status build(paths *p, kith_error *err) {
    const known *k = &p->known;
    int64_t n_there = 0;
    for (int64_t i = 0; i < k->n; i++) n_there += is_there(k, i);
    p->n_slots = 64;
    while (p->n_slots < (size_t)n_there * 2) p->n_slots *= 2;
    KI_TRY(ki_zalloc_or(&p->slot, p->n_slots, sizeof *p->slot, "paths", err));
    KI_TRY(ki_zalloc_or(&p->is_met, (size_t)ki_bit_words(k->n), sizeof *p->is_met, "paths", err));
    for (int64_t i = 0; i < k->n; i++) {
        const char *path = is_there(k, i) ? path_of(k, i) : NULL;
        if (path) p->slot[slot_of(p, path)] = (uint32_t)i + 1; /* of two with one path the last counts */
    }
    return KITH_OK;
}

static kith_status compare_file(paths *p, const ki_index_place *place, const kith_file_stamp *file,
                                kith_file_state *ret_state, int64_t *ret_id, kith_error *err) {
    ki_path buf;
    const int64_t i = (int64_t)p->slot[slot_of(p, ki_index_place_was(place, file->path, &buf))] - 1;
    int64_t bytes = 0, mtime_ns = 0;
    *ret_state = KITH_FILE_NEW;
    *ret_id = -1;
    if (i < 0) return KITH_OK;
    KI_TRY(stamp_of(&p->known, i, &bytes, &mtime_ns, err));
    const bool is_same = bytes == file->bytes && mtime_ns == file->mtime_ns;
    *ret_state = is_same ? KITH_FILE_SAME : KITH_FILE_CHANGED;
    *ret_id = id_of(&p->known, i);
    p->is_met[i / 64] |= UINT64_C(1) << i % 64;
    return KITH_OK;
}

static kith_status list_gone(const paths *p, int64_t **ret_gone, int64_t *ret_n_gone, kith_error *err) {
    const known *k = &p->known;
    int64_t *gone = NULL, n = 0;
    KI_TRY(ki_alloc_or(&gone, (size_t)k->n, sizeof *gone, "ids", err));
    for (int64_t i = 0; i < k->n; i++) {
        if (is_there(k, i) && !ki_bit(p->is_met, i) && path_of(k, i)) gone[n++] = id_of(k, i);
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
    KI_CHECK(know(index, &p.known, err));
    KI_CHECK(build(&p, err));
    for (int64_t i = 0; i < n; i++)
        KI_CHECK(compare_file(&p, index->place, &files[i], &ret_states[i], &ret_ids[i], err));
    KI_CHECK(list_gone(&p, ret_gone, ret_n_gone, err));
done:
    known_release(&p.known);
    ki_free(p.slot);
    ki_free(p.is_met);
    return status;
}
