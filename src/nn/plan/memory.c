/* Places buffers in one block: the largest first, each at the lowest offset that is free throughout its span. */
#include "nn/plan/memory.h"

#include <stdlib.h>

#include "base/alloc.h"

static int larger_first(const void *a, const void *b) {
    const ki_plan_buffer *x = *(ki_plan_buffer *const *)a, *y = *(ki_plan_buffer *const *)b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x < y ? -1 : x > y;
}

static int lower_first(const void *a, const void *b) {
    const ki_plan_buffer *x = *(ki_plan_buffer *const *)a, *y = *(ki_plan_buffer *const *)b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

kith_status ki_memory_plan(ki_plan_buffer *buffer, int n, size_t *ret_bytes, kith_error *err) {
    ki_plan_buffer **order = NULL, **near = NULL;
    kith_status status = KITH_OK;
    size_t block = 0;
    KI_CHECK(ki_alloc_or(&order, (size_t)n, sizeof *order, "a memory plan", err));
    KI_CHECK(ki_alloc_or(&near, (size_t)n, sizeof *near, "a memory plan", err));
    for (int i = 0; i < n; i++) order[i] = &buffer[i];
    qsort(order, (size_t)n, sizeof *order, larger_first);
    for (int i = 0; i < n; i++) {
        ki_plan_buffer *b = order[i];
        const size_t bytes = ki_round_up(b->bytes, KI_ALIGN);
        int n_near = 0;
        for (int j = 0; j < i; j++) {
            if (order[j]->first <= b->last && b->first <= order[j]->last) near[n_near++] = order[j];
        }
        qsort(near, (size_t)n_near, sizeof *near, lower_first);
        size_t at = 0;
        for (int j = 0; j < n_near; j++) {
            if (near[j]->offset >= at + bytes) break;
            const size_t end = near[j]->offset + ki_round_up(near[j]->bytes, KI_ALIGN);
            if (end > at) at = end;
        }
        b->offset = at;
        if (at + bytes > block) block = at + bytes;
    }
    *ret_bytes = block;
done:
    ki_free(order);
    ki_free(near);
    return status;
}
