/* Places for buffers. Each buffer has a size and a span of time steps in which its contents matter. Buffers
 * whose spans overlap get disjoint bytes of one block. */
#ifndef KI_MEMORY_H
#define KI_MEMORY_H

#include "base/error.h"

#include <stdint.h>

typedef struct ki_plan_buffer {
    size_t bytes;
    int first, last; /* time steps, both included */
    size_t offset;   /* the answer: 64-byte aligned */
} ki_plan_buffer;

/* Give every buffer its offset; returns the block's size in ret_bytes. Largest first, each at the lowest
 * offset that is free throughout its span. */
kith_status ki_memory_plan(ki_plan_buffer *buffer, int n, size_t *ret_bytes, kith_error *err);

#endif
