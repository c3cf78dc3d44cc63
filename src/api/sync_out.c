/* Looking for files that were removed by hand. */
#include "api/sync_out.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

static int by_path(const void *a, const void *b) {
    return strcmp(((const ki_file_record *)a)->path, ((const ki_file_record *)b)->path);
}

static int by_contents(const void *a, const void *b) {
    const ki_file_record *x = a, *y = b;
    const int order = strcmp(x->hash, y->hash);
    return order ? order : (x->id > y->id) - (x->id < y->id);
}

kith_status ki_sync_out_init(ki_sync_out *out, const kith_index *index, kith_error *err) {
    KI_TRY(ki_index_excluded(index, &out->files, err));
    if (out->files.n == 0) return KITH_OK;
    qsort(out->files.record, (size_t)out->files.n, sizeof *out->files.record, by_path);
    return ki_zalloc_or(&out->is_met, (size_t)out->files.n, sizeof *out->is_met, "files", err);
}

void ki_sync_out_release(ki_sync_out *out) {
    ki_records_release(&out->files);
    ki_free(out->is_met);
    *out = (ki_sync_out){0};
}

static const ki_file_record *find(const ki_sync_out *out, const char *path) {
    const ki_file_record wanted = {.path = path};
    if (out->files.n == 0) return NULL;
    return bsearch(&wanted, out->files.record, (size_t)out->files.n, sizeof wanted, by_path);
}

bool ki_sync_out_meets(ki_sync_out *out, const char *path) {
    const ki_file_record *found = find(out, path);
    if (!found) return false;
    bool *is_met = &out->is_met[found - out->files.record];
    out->n_met += !*is_met;
    *is_met = true;
    return true;
}

bool ki_sync_out_gives_way(ki_sync_out *out, const char *path, const char *hash) {
    const ki_file_record *found = find(out, path);
    if (!found || !found->hash || strcmp(found->hash, hash) == 0) return false;
    bool *is_met = &out->is_met[found - out->files.record];
    out->n_met -= *is_met;
    *is_met = false;
    return true;
}

void ki_sync_out_turn(ki_sync_out *out) {
    int64_t n = 0;
    for (int64_t i = 0; i < out->files.n; i++) {
        if (!out->is_met[i] && out->files.record[i].hash) out->files.record[n++] = out->files.record[i];
    }
    out->files.n = n;
    out->n_met = 0;
    if (n == 0) return;
    memset(out->is_met, 0, (size_t)n * sizeof *out->is_met);
    qsort(out->files.record, (size_t)n, sizeof *out->files.record, by_contents);
}

kith_status ki_sync_out_follows(ki_sync_out *out, kith_index *index, const char *path, const char *hash,
                                bool *ret_is_out, kith_error *err) {
    const ki_file_record wanted = {.id = -1, .hash = hash}, *at = out->files.record;
    int64_t low = 0, high = *hash ? out->files.n : 0;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (by_contents(&at[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    while (low < out->files.n && out->is_met[low] && strcmp(at[low].hash, hash) == 0) low++;
    *ret_is_out = *hash && low < out->files.n && strcmp(at[low].hash, hash) == 0;
    if (!*ret_is_out) return KITH_OK;
    out->is_met[low] = true;
    out->n_met++;
    return ki_index_exclude_file(index, &(ki_file_record){at[low].id, path, NULL, hash}, err);
}
