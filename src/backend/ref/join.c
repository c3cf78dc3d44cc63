/* join: the sum of the gradient parts of a tensor, masked by a ReLU's output. */
#include "backend/ref/ref.h"
#include "base/parallel.h"

typedef struct join {
    int n_parts;
    const void *const *parts;
    const ki_real *mask;
    ki_real *dst;
} join;

static void join_items(void *context, int64_t begin, int64_t end) {
    const join *j = context;
    for (int64_t i = begin; i < end; i++) {
        ki_real sum = 0;
        for (int p = 0; p < j->n_parts; p++) sum += ((const ki_real *)j->parts[p])[i];
        j->dst[i] = !j->mask || j->mask[i] > 0 ? sum : 0;
    }
}

kith_status ki_ref_join(ki_backend *backend, const ki_edge *edge, int n_parts, const void *const *parts,
                        const void *mask, void *dst, kith_error *err) {
    (void)backend, (void)err;
    join j = {.n_parts = n_parts, .parts = parts, .mask = mask, .dst = dst};
    ki_parallel_for(ki_shape_count(&edge->shape), ki_ref_grain(n_parts), join_items, &j);
    return KITH_OK;
}
