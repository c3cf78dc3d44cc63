/* Which files there are: chosen items of a data set, without doubles, with what the disk says of each. */
#include "collection/sync_files.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "data/dataset/dataset.h"
#include "io/tar_file.h"

/* Members of tar files have their file's date; items inside another file have no size and no date of their own. */
static kith_file_stamp stamp_of(const char *path) {
    kith_file_stamp stamp = {path, -1, -1};
    ki_member_look(path, &stamp.bytes, &stamp.mtime_ns);
    return stamp;
}

typedef struct stamping {
    const kith_dataset *set;
    const int64_t *items;
    kith_file_stamp *to;
} stamping;

static void stamp_some(void *context, int64_t begin, int64_t end) {
    const stamping *s = context;
    for (int64_t i = begin; i < end; i++) s->to[i] = stamp_of(s->set->item[s->items[i]].path);
}

static kith_status choose(const ki_sync_task *o, int64_t **ret_items, int64_t *ret_n, kith_error *err) {
    if (!o->items) return ki_dataset_select(o->set, o->split, ret_items, ret_n, err);
    for (int64_t i = 0; i < o->n_items; i++) {
        if (o->items[i] < 0 || o->items[i] >= (int64_t)o->set->n_items)
            return ki_fail(err, KITH_EINVAL, "item %lld of a data set of %zu", (long long)o->items[i],
                           o->set->n_items);
    }
    KI_TRY(ki_alloc_or(ret_items, (size_t)o->n_items, sizeof **ret_items, "items", err));
    if (o->n_items > 0) memcpy(*ret_items, o->items, (size_t)o->n_items * sizeof **ret_items);
    *ret_n = o->n_items;
    return KITH_OK;
}

typedef struct named {
    const char *path;
    int64_t item;
} named;

static int by_path(const void *a, const void *b) {
    const named *x = a, *y = b;
    const int order = strcmp(x->path, y->path);
    return order ? order : (x->item > y->item) - (x->item < y->item);
}

/* A file that was named twice, alone and with its folder, counts once: the first time. */
static kith_status drop_doubles(const kith_dataset *set, int64_t *items, int64_t *n, kith_error *err) {
    named *list = NULL;
    bool *is_double = NULL;
    kith_status status;
    KI_CHECK(ki_alloc_or(&list, (size_t)*n, sizeof *list, "files", err));
    KI_CHECK(ki_zalloc_or(&is_double, set->n_items, sizeof *is_double, "files", err));
    for (int64_t i = 0; i < *n; i++) list[i] = (named){set->item[items[i]].path, items[i]};
    if (*n > 0) qsort(list, (size_t)*n, sizeof *list, by_path);
    for (int64_t i = 1; i < *n; i++) is_double[list[i].item] = strcmp(list[i].path, list[i - 1].path) == 0;
    int64_t n_kept = 0;
    for (int64_t i = 0; i < *n; i++) {
        if (!is_double[items[i]]) items[n_kept++] = items[i];
    }
    *n = n_kept;
done:
    ki_free(list);
    ki_free(is_double);
    return status;
}

kith_status ki_sync_files(const ki_sync_task *o, int64_t **ret_items, kith_file_stamp **ret_stamps,
                          int64_t *ret_n, kith_error *err) {
    KI_TRY(choose(o, ret_items, ret_n, err));
    KI_TRY(drop_doubles(o->set, *ret_items, ret_n, err));
    KI_TRY(ki_alloc_or(ret_stamps, (size_t)*ret_n, sizeof **ret_stamps, "files", err));
    stamping s = {o->set, *ret_items, *ret_stamps};
    ki_parallel_for(*ret_n, 256, stamp_some, &s);
    return KITH_OK;
}
