/* dropout. The mask (core/dropout.h) is drawn again in backward from the step that forward saw, which is all
 * that the workspace contains. In inference dst is src. */
#include "core/dropout.h"

#include <string.h>

#include "backend/ref/ref.h"
#include "core/parallel.h"

typedef struct drop {
    ki_dropout mask;
    int64_t n;
    const ki_real *src;
    ki_real *dst;
} drop;

/* Items: blocks of four values. */
static void mask_blocks(void *context, int64_t begin, int64_t end) {
    const drop *d = context;
    for (int64_t block = begin; block < end; block++) {
        bool keep[4];
        ki_dropout_block(&d->mask, block, keep);
        for (int64_t i = 4 * block; i < 4 * block + 4 && i < d->n; i++)
            d->dst[i] = keep[i % 4] ? (ki_real)((double)d->src[i] * d->mask.scale) : 0;
    }
}

/* d.src to d.dst through the mask of a step. */
static void mask_apply(const ki_ref_kernel *k, uint64_t step, drop d) {
    d.mask = ki_dropout_at(k->spec.seed, step, k->spec.node, k->attr.dropout.p);
    d.n = ki_shape_count(&k->spec.dst.shape);
    ki_parallel_for((d.n + 3) / 4, ki_ref_grain(4), mask_blocks, &d);
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_ref_kernel_new(&ki_ref_dropout, backend, spec, ret_kernel, err));
    *ret_info = (ki_kernel_info){.workspace_bytes = spec->mode == KI_TRAIN ? sizeof(uint64_t) : 0};
    return KITH_OK;
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const ki_ref_kernel *k = ki_ref_of(kernel);
    if (k->spec.mode == KI_INFER) {
        memcpy(k->binding.dst, k->binding.src[0], k->spec.dst.bytes);
        return KITH_OK;
    }
    const uint64_t step = *k->binding.step;
    memcpy(k->binding.workspace, &step, sizeof step);
    mask_apply(k, step, (drop){.src = k->binding.src[0], .dst = k->binding.dst});
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const ki_ref_kernel *k = ki_ref_of(kernel);
    uint64_t step = 0;
    memcpy(&step, k->binding.workspace, sizeof step);
    if (k->binding.diff_src[0])
        mask_apply(k, step, (drop){.src = k->binding.diff_dst[0], .dst = k->binding.diff_src[0]});
    return KITH_OK;
}

const ki_kernel_type ki_ref_dropout = {
    .create = create, .bind = ki_ref_bind, .forward = forward, .backward = backward, .free = ki_ref_free};
