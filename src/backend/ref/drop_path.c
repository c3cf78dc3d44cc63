/* drop_path: dropout.h's mask with a row as the element. The workspace keeps the step and the first row that forward saw, from
 * which backward draws the mask again. In inference dst is src. */
#include "device/dropout.h"

#include <string.h>

#include "backend/ref/ref.h"
#include "base/parallel.h"

typedef struct drop {
    ki_dropout mask;
    int64_t first, each; /* the element that the first row is; numbers of a row */
    const ki_real *src;
    ki_real *dst;
} drop;

/* Items: rows. */
static void mask_rows(void *context, int64_t begin, int64_t end) {
    const drop *d = context;
    bool keep[4];
    int64_t block = -1;
    for (int64_t r = begin; r < end; r++) {
        const bool kept = ki_dropout_keeps(&d->mask, d->first + r, keep, &block);
        for (int64_t i = r * d->each; i < (r + 1) * d->each; i++)
            d->dst[i] = kept ? (ki_real)((double)d->src[i] * d->mask.scale) : 0;
    }
}

/* d.src to d.dst through the mask of a step. */
static void mask_apply(const ki_ref_kernel *k, const uint64_t *saved, drop d) {
    const ki_shape *shape = &k->spec.dst.shape;
    d.mask = ki_dropout_at(k->spec.seed, saved[0], k->spec.node, k->attr.drop_path.p);
    d.first = (int64_t)saved[1];
    d.each = ki_shape_count(shape) / shape->dim[0];
    ki_parallel_for(shape->dim[0], ki_ref_grain(d.each), mask_rows, &d);
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_ref_kernel_new(&ki_ref_drop_path, backend, spec, ret_kernel, err));
    *ret_info = (ki_kernel_info){.workspace_bytes = spec->mode == KI_TRAIN ? 2 * sizeof(uint64_t) : 0};
    return KITH_OK;
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const ki_ref_kernel *k = ki_ref_of(kernel);
    if (k->spec.mode == KI_INFER) {
        memcpy(k->binding.dst, k->binding.src[0], k->spec.dst.bytes);
        return KITH_OK;
    }
    const uint64_t saved[2] = {*k->binding.step, k->binding.first ? *k->binding.first : 0};
    memcpy(k->binding.workspace, saved, sizeof saved);
    mask_apply(k, saved, (drop){.src = k->binding.src[0], .dst = k->binding.dst});
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const ki_ref_kernel *k = ki_ref_of(kernel);
    uint64_t saved[2];
    memcpy(saved, k->binding.workspace, sizeof saved);
    if (k->binding.diff_src[0])
        mask_apply(k, saved, (drop){.src = k->binding.diff_dst[0], .dst = k->binding.diff_src[0]});
    return KITH_OK;
}

const ki_kernel_type ki_ref_drop_path = {
    .create = create, .bind = ki_ref_bind, .forward = forward, .backward = backward, .free = ki_ref_free};
