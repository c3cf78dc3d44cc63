/* Reading blocks. */
#include "search/files/blocks.h"

#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/checksum.h"
#include "io/file.h"

enum { GROUP = 16 }; /* blocks that are read and checked at a time */

static int64_t n_blocks(const ki_blocks *b) { return (b->bytes + KI_BLOCK_BYTES - 1) / KI_BLOCK_BYTES; }

static kith_status fail_damaged(const ki_blocks *b, int64_t offset, kith_error *err) {
    ki_fail(err, KITH_EFORMAT, "%s is damaged: bytes %lld to %lld are not what was written", b->path,
            (long long)offset,
            (long long)(offset + KI_BLOCK_BYTES < b->bytes ? offset + KI_BLOCK_BYTES : b->bytes) - 1);
    return ki_hint(err, KITH_EFORMAT, "copy the index back from a backup, or make it again");
}

kith_status ki_blocks_open(ki_blocks *ret_blocks, const char *path, ki_blocks_seal seal, kith_error *err) {
    kith_status status = KITH_OK;
    ki_blocks b = {.fd = -1, .bytes = seal.bytes};
    long long found = 0;
    KI_CHECK(ki_file_open(path, KI_FILE_ONLY, &b.fd, &found, err));
    b.is_open = true;
    if (!(b.path = ki_strdup(path))) {
        status = ki_fail_memory(err, strlen(path), "a file name");
        goto done;
    }
    /* 2^56 bytes: sums of sizes below cannot overflow. */
    if (seal.bytes < 0 || seal.bytes > INT64_C(1) << 56 || found != ki_blocks_file_bytes(seal.bytes)) {
        status = ki_fail(err, KITH_EFORMAT, "%s has %lld bytes; wanted %lld", path, found,
                         (long long)(seal.bytes < 0 ? 0 : ki_blocks_file_bytes(seal.bytes)));
        ki_hint(err, status, "copy the index back from a backup, or make it again");
        goto done;
    }
    const size_t n = (size_t)n_blocks(&b);
    KI_CHECK(ki_alloc_or(&b.table, n, sizeof *b.table, "checksums", err));
    KI_CHECK(ki_zalloc_or(&b.is_checked, (n + 63) / 64, sizeof *b.is_checked, "checksums", err));
    KI_CHECK(ki_file_read_at(b.fd, path, b.table, n * sizeof *b.table, b.bytes, err));
    if (ki_checksum(b.table, n * sizeof *b.table, (uint64_t)b.bytes) != seal.sum) {
        status = ki_fail(err, KITH_EFORMAT, "%s is damaged: its checksums are not what was written", path);
        ki_hint(err, status, "copy the index back from a backup, or make it again");
        goto done;
    }
    *ret_blocks = b;
    return KITH_OK;
done:
    ki_blocks_close(&b);
    return status;
}

void ki_blocks_close(ki_blocks *b) {
    if (b->is_open) close(b->fd);
    for (int64_t i = 0; b->kept && i < n_blocks(b); i++) ki_free(b->kept[i]);
    ki_free(b->kept);
    ki_free(b->path);
    ki_free(b->table);
    ki_free(b->is_checked);
    *b = (ki_blocks){.fd = -1};
}

static bool is_checked(const ki_blocks *b, int64_t block) {
    return atomic_load_explicit(b->is_checked + block / 64, memory_order_relaxed) >> block % 64 & 1;
}

/* Read blocks first … first + n - 1 (at most GROUP) and compare them. */
static kith_status read_group(const ki_blocks *b, int64_t first, int64_t n, uint8_t *dst, size_t *ret_n,
                              kith_error *err) {
    const int64_t begin = first * KI_BLOCK_BYTES, most = b->bytes - begin;
    const int64_t wanted = n * KI_BLOCK_BYTES < most ? n * KI_BLOCK_BYTES : most;
    KI_TRY(ki_file_read_at(b->fd, b->path, dst, (size_t)wanted, begin, err));
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = i * KI_BLOCK_BYTES,
                      bytes = wanted - at < KI_BLOCK_BYTES ? wanted - at : KI_BLOCK_BYTES;
        if (ki_checksum(dst + at, (size_t)bytes, 0) != b->table[first + i])
            return fail_damaged(b, begin + at, err);
        atomic_fetch_or_explicit(b->is_checked + (first + i) / 64, UINT64_C(1) << (first + i) % 64,
                                 memory_order_relaxed);
    }
    *ret_n = (size_t)wanted;
    return KITH_OK;
}

kith_status ki_blocks_read(const ki_blocks *b, int64_t offset, size_t n, void *dst, kith_error *err) {
    if (offset < 0 || offset > b->bytes || n > (uint64_t)(b->bytes - offset))
        return ki_fail(err, KITH_EFORMAT, "%s ends before byte %lld + %zu", b->path, (long long)offset, n);
    uint8_t group[GROUP * KI_BLOCK_BYTES];
    uint8_t *to = dst;
    while (n > 0) {
        const int64_t first = offset / KI_BLOCK_BYTES, skip = offset % KI_BLOCK_BYTES;
        int64_t n_group = ((int64_t)n + skip + KI_BLOCK_BYTES - 1) / KI_BLOCK_BYTES;
        if (n_group > GROUP) n_group = GROUP;
        bool all = true;
        for (int64_t i = 0; i < n_group && all; i++) all = is_checked(b, first + i);
        size_t take = (size_t)(n_group * KI_BLOCK_BYTES - skip);
        if (take > n) take = n;
        if (all) {
            KI_TRY(ki_file_read_at(b->fd, b->path, to, take, offset, err));
        } else {
            size_t got = 0;
            KI_TRY(read_group(b, first, n_group, group, &got, err));
            memcpy(to, group + skip, take);
        }
        to += take;
        offset += (int64_t)take;
        n -= take;
    }
    return KITH_OK;
}

kith_status ki_blocks_keep(ki_blocks *b, ki_keep *keep, kith_error *err) {
    KI_TRY(ki_zalloc_or(&b->kept, (size_t)n_blocks(b), sizeof *b->kept, "blocks in memory", err));
    b->keep = keep;
    return KITH_OK;
}

/* The block in memory; NULL when there is no room for it. Two threads may read it at the same time: one copy stays. */
static kith_status keep_block(const ki_blocks *b, int64_t block, const uint8_t **ret_bytes, kith_error *err) {
    uint8_t *here = atomic_load_explicit(&b->kept[block], memory_order_acquire), *added = NULL;
    *ret_bytes = here;
    if (here || atomic_load_explicit(&b->keep->left, memory_order_relaxed) <= 0) return KITH_OK;
    if (atomic_fetch_sub(&b->keep->left, KI_BLOCK_BYTES) >= KI_BLOCK_BYTES)
        added = ki_alloc(KI_BLOCK_BYTES, 1);
    size_t n = 0;
    const kith_status status = added ? read_group(b, block, 1, added, &n, err) : KITH_OK;
    if (status == KITH_OK && added &&
        atomic_compare_exchange_strong_explicit(&b->kept[block], &here, added, memory_order_acq_rel,
                                                memory_order_acquire)) {
        *ret_bytes = added;
        return KITH_OK;
    }
    atomic_fetch_add(&b->keep->left, KI_BLOCK_BYTES);
    ki_free(added);
    *ret_bytes = here;
    return status;
}

kith_status ki_blocks_read_kept(const ki_blocks *b, int64_t offset, size_t n, void *dst, kith_error *err) {
    if (!b->kept || offset < 0 || offset > b->bytes || n > (uint64_t)(b->bytes - offset))
        return ki_blocks_read(b, offset, n, dst, err);
    for (uint8_t *to = dst; n > 0;) {
        const int64_t block = offset / KI_BLOCK_BYTES, skip = offset % KI_BLOCK_BYTES;
        const size_t rest = (size_t)(KI_BLOCK_BYTES - skip), take = n < rest ? n : rest;
        const uint8_t *bytes = NULL;
        KI_TRY(keep_block(b, block, &bytes, err));
        if (bytes)
            memcpy(to, bytes + skip, take);
        else
            KI_TRY(ki_blocks_read(b, offset, take, to, err));
        to += take;
        offset += (int64_t)take;
        n -= take;
    }
    return KITH_OK;
}

const uint8_t *ki_blocks_kept_at(const ki_blocks *b, int64_t offset, size_t n) {
    if (!b->kept || offset < 0 || offset > b->bytes || n > (uint64_t)(b->bytes - offset)) return NULL;
    const int64_t skip = offset % KI_BLOCK_BYTES;
    if (n > (size_t)(KI_BLOCK_BYTES - skip)) return NULL;
    const uint8_t *here = atomic_load_explicit(&b->kept[offset / KI_BLOCK_BYTES], memory_order_acquire);
    return here ? here + skip : NULL;
}

kith_status ki_blocks_load(const ki_blocks *blocks, uint8_t **ret_bytes, kith_error *err) {
    uint8_t *bytes = NULL;
    KI_TRY(ki_alloc_or(&bytes, (size_t)blocks->bytes, 1, blocks->path, err));
    const kith_status status = ki_blocks_read(blocks, 0, (size_t)blocks->bytes, bytes, err);
    if (status == KITH_OK)
        *ret_bytes = bytes;
    else
        ki_free(bytes);
    return status;
}

kith_status ki_blocks_check(const ki_blocks *b, kith_progress_fn progress, void *user, int64_t done,
                            int64_t all, kith_error *err) {
    uint8_t group[GROUP * KI_BLOCK_BYTES];
    const int64_t n = n_blocks(b);
    for (int64_t first = 0; first < n; first += GROUP) {
        size_t got = 0;
        KI_TRY(read_group(b, first, n - first < GROUP ? n - first : GROUP, group, &got, err));
        done += (int64_t)got;
        if (progress && progress(user, done, all) != 0)
            return ki_fail(err, KITH_ECANCELED, "stopped after %lld of %lld bytes", (long long)done,
                           (long long)all);
    }
    return KITH_OK;
}
