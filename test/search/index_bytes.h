/* Any bytes as a file of an index: for the fuzz target and for the corpus in test/corpus/index.
 *
 * The first byte says what the rest is: m a manifest without its checksum, s the data of a segment, c the data of a file of changes,
 * r that of a list of moved or removed items, u that of new values, w a filter. The checksums are put right, or hardly anything would come further than them. */
#ifndef KITH_TEST_INDEX_BYTES_H
#define KITH_TEST_INDEX_BYTES_H

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/checksum.h"
#include "search/files/changes.h"
#include "search/files/manifest.h"
#include "search/files/records.h"
#include "search/files/segment.h"
#include "search/files/updates.h"
#include "search/filter.h"

enum { INDEX_BYTES_DIM = 4, INDEX_BYTES_ROWS = 5 };

static const kith_column index_bytes_columns[] = {
    {"year", KITH_VALUE_INT}, {"weight", KITH_VALUE_REAL}, {"place", KITH_VALUE_TEXT}};
static const kith_value_type index_bytes_types[] = {KITH_VALUE_INT, KITH_VALUE_REAL, KITH_VALUE_TEXT};

/* A file in memory with these data and their table; its path while fd is open. */
static inline int index_bytes_file(const uint8_t *data, size_t n, char path[64], ki_blocks_seal *ret_seal) {
    const int fd = memfd_create("index", MFD_CLOEXEC);
    const size_t n_blocks = (n + KI_BLOCK_BYTES - 1) / KI_BLOCK_BYTES;
    uint64_t *table = ki_alloc(n_blocks, sizeof *table);
    if (fd < 0 || !table) return -1;
    for (size_t i = 0; i < n_blocks; i++) {
        const size_t at = i * KI_BLOCK_BYTES, left = n - at;
        table[i] = ki_checksum(data + at, left < KI_BLOCK_BYTES ? left : KI_BLOCK_BYTES, 0);
    }
    const size_t table_bytes = n_blocks * sizeof *table;
    const bool is_written =
        write(fd, data, n) == (ssize_t)n && write(fd, table, table_bytes) == (ssize_t)table_bytes;
    *ret_seal = (ki_blocks_seal){(int64_t)n, ki_checksum(table, table_bytes, n)};
    ki_free(table);
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    if (is_written) return fd;
    close(fd);
    return -1;
}

/* Everything that can be read of a segment. */
static inline kith_status index_bytes_segment(const uint8_t *data, size_t n, kith_error *err) {
    char path[64];
    ki_blocks_seal seal;
    ki_segment segment = {0};
    const int fd = index_bytes_file(data, n, path, &seal);
    if (fd < 0) return KITH_EIO;
    kith_status status = ki_segment_open(&segment, path, seal, INDEX_BYTES_DIM, index_bytes_types, 3, err);
    const int64_t rows = status == KITH_OK ? segment.n : 0;
    float row[INDEX_BYTES_DIM];
    for (int64_t i = 0; i < rows && i < 100 && status == KITH_OK; i++)
        status = ki_segment_rows(&segment, i, 1, false, row, err);
    for (int64_t c = 0; c < KI_COLUMN_FIRST + 3 && status == KITH_OK; c++) {
        ki_cells cells = {0};
        status = ki_segment_column(&segment, c, &cells, err);
        for (int64_t i = 0; i < rows && i < 100; i++) {
            kith_value one = {0};
            const kith_status got = ki_segment_cell(&segment, c, i, &one, err);
            if (got == KITH_OK && status == KITH_OK) {
                /* one by one and all at once: the same */
                const kith_value other = ki_cells_get(&cells, i);
                if (one.type != other.type ||
                    (one.type == KITH_VALUE_TEXT && strcmp(one.text, other.text) != 0))
                    __builtin_trap();
            }
            if (one.type == KITH_VALUE_TEXT) ki_free((char *)(uintptr_t)one.text);
        }
        ki_cells_release(&cells);
    }
    ki_segment_close(&segment);
    close(fd);
    return status;
}

static inline kith_status index_bytes_changes(const uint8_t *data, size_t n, kith_error *err) {
    char path[64];
    ki_blocks_seal seal;
    ki_changes changes = {0};
    const int fd = index_bytes_file(data, n, path, &seal);
    if (fd < 0) return KITH_EIO;
    const kith_status status = ki_changes_read(path, seal, INDEX_BYTES_ROWS, &changes, err);
    ki_changes_release(&changes);
    close(fd);
    return status;
}

static inline kith_status index_bytes_records(const uint8_t *data, size_t n, kith_error *err) {
    char path[64];
    ki_blocks_seal seal;
    ki_records records = {0};
    const int fd = index_bytes_file(data, n, path, &seal);
    if (fd < 0) return KITH_EIO;
    const kith_status status = ki_records_read(path, seal, INDEX_BYTES_ROWS, &records, err);
    for (int64_t i = 0; i < records.n; i++) {
        if (ki_records_find(&records, records.record[i].id) != &records.record[i]) __builtin_trap();
    }
    ki_records_release(&records);
    close(fd);
    return status;
}

static inline kith_status index_bytes_updates(const uint8_t *data, size_t n, kith_error *err) {
    char path[64];
    ki_blocks_seal seal;
    ki_updates updates = {0};
    const int fd = index_bytes_file(data, n, path, &seal);
    if (fd < 0) return KITH_EIO;
    const kith_status status =
        ki_updates_read(path, seal, INDEX_BYTES_ROWS, index_bytes_types, 3, &updates, err);
    for (int64_t i = 0; i < updates.n; i++) {
        const ki_update *u = &updates.update[i];
        if (ki_updates_find(&updates, u->column, u->id) != u) __builtin_trap();
    }
    ki_updates_release(&updates);
    close(fd);
    return status;
}

/* What is read must be printed and read again as the same. */
static inline kith_status index_bytes_manifest(const uint8_t *data, size_t n, kith_error *err) {
    ki_buffer text = {0};
    ki_buffer_add(&text, data, n);
    ki_buffer_put(&text, ",\"checksum\":\"%016llx\"}\n",
                  (unsigned long long)ki_checksum(data, n, KI_INDEX_FORMAT_FIRST));
    ki_manifest manifest = {0}, again = {0};
    kith_status status = ki_manifest_parse(text.data, text.n, "manifest", &manifest, err);
    if (status == KITH_OK) {
        char *printed = NULL, *second = NULL;
        size_t n_printed = 0, n_second = 0;
        kith_error why;
        if (ki_manifest_print(&manifest, &printed, &n_printed, &why) != KITH_OK ||
            ki_manifest_parse(printed, n_printed, "manifest", &again, &why) != KITH_OK ||
            ki_manifest_print(&again, &second, &n_second, &why) != KITH_OK || n_printed != n_second ||
            memcmp(printed, second, n_second) != 0)
            __builtin_trap();
        ki_free(printed);
        ki_free(second);
    }
    ki_manifest_release(&manifest);
    ki_manifest_release(&again);
    ki_buffer_release(&text);
    return status;
}

static inline kith_status index_bytes_filter(const uint8_t *data, size_t n, kith_error *err) {
    char *text = ki_strndup((const char *)data, n);
    ki_where *where = NULL;
    if (!text) return KITH_ENOMEM;
    const kith_status status = ki_where_parse(text, index_bytes_columns, 3, &where, err);
    ki_like("2020/tern.jpg", text);
    ki_where_free(where);
    ki_free(text);
    return status;
}

static inline kith_status index_bytes(const uint8_t *data, size_t n, kith_error *err) {
    if (n == 0) return ki_fail(err, KITH_EFORMAT, "nothing");
    switch (data[0]) {
    case 'm': return index_bytes_manifest(data + 1, n - 1, err);
    case 's': return index_bytes_segment(data + 1, n - 1, err);
    case 'c': return index_bytes_changes(data + 1, n - 1, err);
    case 'r': return index_bytes_records(data + 1, n - 1, err);
    case 'u': return index_bytes_updates(data + 1, n - 1, err);
    case 'w': return index_bytes_filter(data + 1, n - 1, err);
    default: return ki_fail(err, KITH_EFORMAT, "not one of the files");
    }
}

#endif
