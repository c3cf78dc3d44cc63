/* A file that is written once, from front to back, with a checksum for every 4 KiB of it.
 *
 *   data     the bytes of the caller
 *   table    uint64 [blocks]: ki_checksum of each 4 KiB block of the data; the last may be shorter
 *
 * How many bytes the data has and the checksum of the table (the seal) are kept elsewhere, in the manifest. A reader compares a
 * block with its checksum when it reads from it for the first time: a changed bit is an error where it is met, a large
 * file is opened at once, and rows that are read again and again cost one pread. */
#ifndef KI_SEARCH_BLOCKS_H
#define KI_SEARCH_BLOCKS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/error.h"

enum { KI_BLOCK_BYTES = 4096 };

/* What is kept elsewhere. */
typedef struct ki_blocks_seal {
    int64_t bytes; /* of the data */
    uint64_t sum;
} ki_blocks_seal;

/* Bytes of the file: data and table. */
int64_t ki_blocks_file_bytes(int64_t bytes);

/* ---- writing ---- */

/* Zero-initialise. */
typedef struct ki_blocks_writer {
    ki_atomic_file file;
    uint8_t block[KI_BLOCK_BYTES];
    size_t n_block; /* bytes in it */
    int64_t bytes;
    uint64_t *table;
    size_t n_table, capacity;
} ki_blocks_writer;

kith_status ki_blocks_create(ki_blocks_writer *writer, const char *path, kith_error *err);
kith_status ki_blocks_write(ki_blocks_writer *writer, const void *bytes, size_t n, kith_error *err);
/* Zeros, up to a multiple of `to` bytes. */
kith_status ki_blocks_pad(ki_blocks_writer *writer, int64_t to, kith_error *err);
/* On disk and under its name afterwards. */
kith_status ki_blocks_finish(ki_blocks_writer *writer, ki_blocks_seal *ret_seal, kith_error *err);
/* Removes what was not finished. Always called; fine on a zeroed struct. */
void ki_blocks_discard(ki_blocks_writer *writer);

/* ---- reading ---- */

/* Blocks that stay in memory once they have been read, of several files: how many bytes there is room for yet. */
typedef struct ki_keep {
    atomic_int_least64_t left;
} ki_keep;

/* Zero-initialise. Any number of threads may read. */
typedef struct ki_blocks {
    int fd;
    bool is_open;
    char *path;
    int64_t bytes;
    uint64_t *table;
    atomic_uint_least64_t *is_checked; /* a bit per block */
    ki_keep *keep;                     /* NULL: nothing is kept */
    _Atomic(uint8_t *) *kept;          /* [blocks]: NULL: not in memory */
} ki_blocks;

/* KITH_EFORMAT for a file of another size, or whose table has another checksum. ki_blocks_close always follows. */
kith_status ki_blocks_open(ki_blocks *blocks, const char *path, ki_blocks_seal seal, kith_error *err);
void ki_blocks_close(ki_blocks *blocks);

/* n bytes from offset; KITH_EFORMAT beyond the end and for a block that has changed. */
kith_status ki_blocks_read(const ki_blocks *blocks, int64_t offset, size_t n, void *dst, kith_error *err);
/* Reads of ki_blocks_read_kept keep what they read from now on, while `keep` has room. Before other threads read. */
kith_status ki_blocks_keep(ki_blocks *blocks, ki_keep *keep, kith_error *err);
/* The same as ki_blocks_read, for pieces that are likely to be read again. A pread takes as long as comparing thousands of codes. */
kith_status ki_blocks_read_kept(const ki_blocks *blocks, int64_t offset, size_t n, void *dst,
                                kith_error *err);
/* Where these bytes are in memory, if one kept block has them all; else NULL. They stay until the file is closed. */
const uint8_t *ki_blocks_kept_at(const ki_blocks *blocks, int64_t offset, size_t n);
/* All of the data, given back with ki_free. */
kith_status ki_blocks_load(const ki_blocks *blocks, uint8_t **ret_bytes, kith_error *err);
/* Compare all blocks with the table, also those that were compared before. */
kith_status ki_blocks_check(const ki_blocks *blocks, kith_progress_fn progress, void *user, int64_t done,
                            int64_t all, kith_error *err);

#endif
