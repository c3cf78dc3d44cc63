/* Writing blocks. */
#include <string.h>

#include "base/alloc.h"
#include "base/checksum.h"
#include "search/files/blocks.h"

int64_t ki_blocks_file_bytes(int64_t bytes) {
    return bytes + (bytes + KI_BLOCK_BYTES - 1) / KI_BLOCK_BYTES * (int64_t)sizeof(uint64_t);
}

kith_status ki_blocks_create(ki_blocks_writer *w, const char *path, kith_error *err) {
    return ki_atomic_open(&w->file, path, err);
}

static kith_status sum_up(ki_blocks_writer *w, const uint8_t *block, size_t n, kith_error *err) {
    KI_TRY(ki_grow(&w->table, &w->capacity, w->n_table + 1, sizeof *w->table, "checksums", err));
    w->table[w->n_table++] = ki_checksum(block, n, 0);
    return KITH_OK;
}

static kith_status flush(ki_blocks_writer *w, kith_error *err) {
    KI_TRY(sum_up(w, w->block, w->n_block, err));
    KI_TRY(ki_atomic_write(&w->file, w->block, w->n_block, err));
    w->n_block = 0;
    return KITH_OK;
}

kith_status ki_blocks_write(ki_blocks_writer *w, const void *bytes, size_t n, kith_error *err) {
    const uint8_t *from = bytes;
    if (n == 0) return KITH_OK; /* bytes may be NULL */
    w->bytes += (int64_t)n;
    if (w->n_block > 0) {
        const size_t room = KI_BLOCK_BYTES - w->n_block, take = n < room ? n : room;
        memcpy(w->block + w->n_block, from, take);
        w->n_block += take;
        from += take;
        n -= take;
        if (w->n_block == KI_BLOCK_BYTES) KI_TRY(flush(w, err));
    }
    /* Whole blocks are written from where they are. */
    const size_t whole = n / KI_BLOCK_BYTES * KI_BLOCK_BYTES;
    for (size_t i = 0; i < whole; i += KI_BLOCK_BYTES) KI_TRY(sum_up(w, from + i, KI_BLOCK_BYTES, err));
    if (whole > 0) KI_TRY(ki_atomic_write(&w->file, from, whole, err));
    if (n > whole) memcpy(w->block, from + whole, n - whole);
    if (n > whole) w->n_block = n - whole;
    return KITH_OK;
}

kith_status ki_blocks_pad(ki_blocks_writer *w, int64_t to, kith_error *err) {
    static const uint8_t zeros[KI_BLOCK_BYTES];
    return ki_blocks_write(w, zeros, (size_t)((to - w->bytes % to) % to), err);
}

kith_status ki_blocks_finish(ki_blocks_writer *w, ki_blocks_seal *ret_seal, kith_error *err) {
    if (w->n_block > 0) KI_TRY(flush(w, err));
    const size_t table_bytes = w->n_table * sizeof *w->table;
    KI_TRY(ki_atomic_write(&w->file, w->table, table_bytes, err));
    KI_TRY(ki_atomic_commit(&w->file, err));
    *ret_seal = (ki_blocks_seal){w->bytes, ki_checksum(w->table, table_bytes, (uint64_t)w->bytes)};
    return KITH_OK;
}

void ki_blocks_discard(ki_blocks_writer *w) {
    ki_atomic_discard(&w->file);
    ki_free(w->table);
    *w = (ki_blocks_writer){0};
}
