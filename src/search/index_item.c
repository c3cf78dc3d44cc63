/* Items by id: what is known of them, and their vectors. */
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "search/index_handle.h"

/* Where the item's file lies now. */
static kith_status find_file(const kith_index *index, kith_value *path, kith_error *err) {
    ki_path buf;
    if (!index->place || path->type != KITH_VALUE_TEXT) return KITH_OK;
    const char *now = ki_index_place_now(index->place, path->text, &buf);
    if (now == path->text) return KITH_OK;
    char *copy = ki_strdup(now);
    if (!copy) return ki_fail_memory(err, strlen(now), "a path");
    ki_free((char *)path->text);
    path->text = copy;
    return KITH_OK;
}

static size_t text_bytes(const kith_value *value) {
    return value->type == KITH_VALUE_TEXT ? strlen(value->text) + 1 : 0;
}

/* All of an item is one block that begins with its values, so that one pointer gives it back. */
static kith_status pack(const kith_value *cells, int64_t n_columns, kith_index_item *ret_item,
                        kith_error *err) {
    const size_t n = (size_t)(n_columns - KI_COLUMN_FIRST);
    size_t bytes = (n + 1) * sizeof(kith_value);
    for (int64_t i = 0; i < n_columns; i++) bytes += text_bytes(&cells[i]);
    kith_value *values = NULL;
    KI_TRY(ki_zalloc_or(&values, bytes, 1, "an item", err));
    char *texts = (char *)(values + n + 1);
    const char *text[KI_COLUMN_FIRST] = {NULL};
    for (int64_t i = 0; i < n_columns; i++) {
        if (i >= KI_COLUMN_FIRST) values[i - KI_COLUMN_FIRST] = cells[i];
        const size_t m = text_bytes(&cells[i]);
        if (m == 0) continue;
        memcpy(texts, cells[i].text, m);
        if (i >= KI_COLUMN_FIRST)
            values[i - KI_COLUMN_FIRST].text = texts;
        else
            text[i] = texts;
        texts += m;
    }
    *ret_item = (kith_index_item){.id = cells[KI_COLUMN_ID].integer,
                                  .path = text[KI_COLUMN_PATH],
                                  .label = text[KI_COLUMN_LABEL],
                                  .hash = text[KI_COLUMN_HASH],
                                  .bytes = cells[KI_COLUMN_BYTES].integer,
                                  .mtime_ns = cells[KI_COLUMN_MTIME].integer,
                                  .values = values};
    return KITH_OK;
}

kith_status kith_index_item_get(const kith_index *index, int64_t id, kith_index_item *ret_item,
                                kith_error *err) {
    KI_NEED(err, index, ret_item);
    if (id < 0) return ki_fail(err, KITH_EINVAL, "id is %lld; wanted 0 or more", (long long)id);
    kith_status status = KITH_OK;
    const int64_t n = KI_COLUMN_FIRST + ki_index_committed(index)->n_columns;
    kith_value *cells = NULL;
    KI_TRY(ki_zalloc_or(&cells, (size_t)n, sizeof *cells, "an item", err));
    KI_CHECK(index->store->type->item(index->store, id, cells, err));
    KI_CHECK(find_file(index, &cells[KI_COLUMN_PATH], err));
    KI_CHECK(pack(cells, n, ret_item, err));
done:
    for (int64_t i = 0; i < n; i++) {
        if (cells[i].type == KITH_VALUE_TEXT) ki_free((char *)cells[i].text);
    }
    ki_free(cells);
    return status;
}

void kith_index_item_release(kith_index_item *item) {
    if (!item) return;
    ki_free((kith_value *)item->values);
    *item = (kith_index_item){0};
}

kith_status kith_index_vectors(const kith_index *index, const int64_t *ids, int64_t n, float *ret_rows,
                               kith_error *err) {
    KI_NEED(err, index, ids, ret_rows);
    KI_NEED_COUNT(err, n);
    return index->store->type->vectors(index->store, ids, n, ret_rows, err);
}

kith_status ki_index_labels(const kith_index *index, const int64_t *ids, int64_t n, ki_arena *arena,
                            const char **ret_labels, kith_error *err) {
    return index->store->type->labels(index->store, ids, n, arena, ret_labels, err);
}
