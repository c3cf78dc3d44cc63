/* Looking for files that were removed by hand. */
#include "collection/sync_out.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static int by_path(const void *a, const void *b) {
    return strcmp(((const ki_file_record *)a)->path, ((const ki_file_record *)b)->path);
}

/* Records are sorted by their paths; `context` has them. */
static int by_contents(const void *a, const void *b, void *context) {
    const ki_file_record *all = context, *x = &all[*(const int64_t *)a], *y = &all[*(const int64_t *)b];
    const int order = strcmp(x->hash, y->hash);
    return order ? order : (x->id > y->id) - (x->id < y->id);
}

kith_status ki_sync_out_init(ki_sync_out *out, const kith_index *index, kith_error *err) {
    KI_TRY(ki_index_excluded(index, &out->files, err));
    const int64_t n = out->files.n;
    if (n == 0) return KITH_OK;
    ki_file_record *record = out->files.record;
    qsort(record, (size_t)n, sizeof *record, by_path);
    KI_TRY(ki_alloc_or(&out->file, (size_t)n, sizeof *out->file, "files", err));
    KI_TRY(ki_alloc_or(&out->by_contents, (size_t)n, sizeof *out->by_contents, "files", err));
    KI_TRY(ki_zalloc_or(&out->is_followed, (size_t)n, sizeof *out->is_followed, "files", err));
    for (int64_t i = 0; i < n; i++) {
        out->file[i] = -1;
        if (record[i].hash) out->by_contents[out->n_contents++] = i;
    }
    qsort_r(out->by_contents, (size_t)out->n_contents, sizeof *out->by_contents, by_contents, record);
    return KITH_OK;
}

void ki_sync_out_release(ki_sync_out *out) {
    ki_records_release(&out->files);
    ki_free(out->file);
    ki_free(out->by_contents);
    ki_free(out->is_followed);
    *out = (ki_sync_out){0};
}

/* -1: there is none. */
static int64_t find(const ki_sync_out *out, const char *path) {
    const ki_file_record wanted = {.path = path}, *all = out->files.record;
    const ki_file_record *found =
        out->files.n ? bsearch(&wanted, all, (size_t)out->files.n, sizeof wanted, by_path) : NULL;
    return found ? found - all : -1;
}

bool ki_sync_out_meets(ki_sync_out *out, const char *path, int64_t file) {
    const int64_t i = find(out, path);
    if (i >= 0) out->file[i] = file;
    return i >= 0;
}

bool ki_sync_out_gives_way(ki_sync_out *out, const char *path, const char *hash) {
    const int64_t i = find(out, path);
    const char *removed = i < 0 ? NULL : out->files.record[i].hash;
    if (!removed || strcmp(removed, hash) == 0) return false;
    out->file[i] = -1;
    return true;
}

int64_t ki_sync_out_first(const ki_sync_out *out, const char *hash) {
    int64_t low = 0, high = *hash ? out->n_contents : 0;
    const int64_t end = high;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (strcmp(out->files.record[out->by_contents[middle]].hash, hash) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end ? low : out->n_contents;
}

bool ki_sync_out_has(const ki_sync_out *out, int64_t k, const char *hash) {
    return k < out->n_contents && strcmp(out->files.record[out->by_contents[k]].hash, hash) == 0;
}

kith_status ki_sync_out_follow(ki_sync_out *out, int64_t k, kith_index *index, const char *path,
                               kith_error *err) {
    const int64_t i = out->by_contents[k];
    const ki_file_record *was = &out->files.record[i];
    out->is_followed[i] = true;
    out->file[i] = -1;
    return ki_index_exclude_file(index, &(ki_file_record){was->id, path, NULL, was->hash}, err);
}
