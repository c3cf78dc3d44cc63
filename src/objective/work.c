/* The stack that evaluations take their memory from. */
#include "objective/work.h"

#include <string.h>

#include "base/alloc.h"

struct ki_work_block {
    ki_work_block *older;
    size_t used, capacity;
    size_t older_bytes; /* bytes in use in the older blocks */
    char *data;
};

enum { LEAST_BLOCK = 1 << 16 };

static ki_work_block *block_new(size_t bytes) {
    ki_work_block *block = ki_zalloc(1, sizeof *block);
    if (!block) return NULL;
    block->capacity = bytes < LEAST_BLOCK ? LEAST_BLOCK : bytes;
    block->data = ki_alloc(block->capacity, 1);
    if (!block->data) {
        ki_free(block);
        return NULL;
    }
    return block;
}

static void block_free(ki_work_block *block) {
    ki_free(block->data);
    ki_free(block);
}

kith_status ki_work_take(ki_work *work, size_t n, size_t size, const char *what, void *ret_ptr,
                         kith_error *err) {
    size_t bytes = 0;
    if (!ki_mul_size(n, size, &bytes) || bytes > SIZE_MAX / 2) return ki_fail_memory(err, SIZE_MAX, what);
    bytes = ki_round_up(bytes, KI_ALIGN);
    ki_work_block *block = work->block;
    if (!block || block->capacity - block->used < bytes) {
        ki_work_block *newer = block_new(bytes);
        if (!newer) return ki_fail_memory(err, bytes, what);
        newer->older = block;
        newer->older_bytes = block ? block->older_bytes + block->used : 0;
        work->block = block = newer;
    }
    void *ptr = block->data + block->used;
    block->used += bytes;
    if (block->older_bytes + block->used > work->peak_bytes)
        work->peak_bytes = block->older_bytes + block->used;
    memcpy(ret_ptr, &ptr, sizeof ptr);
    return KITH_OK;
}

ki_work_mark ki_work_here(const ki_work *work) {
    return (ki_work_mark){work->block, work->block ? work->block->used : 0};
}

void ki_work_rewind(ki_work *work, ki_work_mark mark) {
    /* A block newer than the mark is kept if it is the first of all, because it will be used again. */
    while (work->block && work->block != mark.block) {
        if (!work->block->older) {
            work->block->used = 0;
            return;
        }
        ki_work_block *block = work->block;
        work->block = block->older;
        block_free(block);
    }
    if (work->block) work->block->used = mark.used;
}

void ki_work_reset(ki_work *work) {
    const size_t peak = work->peak_bytes;
    work->peak_bytes = 0;
    if (work->block && !work->block->older && work->block->capacity >= peak) {
        work->block->used = 0;
        return;
    }
    ki_work_release(work);
    /* If there is no memory for one block, the step will ask again, piece by piece, and report the error. */
    if (peak) work->block = block_new(peak);
}

void ki_work_release(ki_work *work) {
    while (work->block) {
        ki_work_block *block = work->block;
        work->block = block->older;
        block_free(block);
    }
    work->peak_bytes = 0;
}
