/* Dropout with the mask of device/dropout.h, which counts elements in plain order: on blocked maps the plain
 * index of each value is computed first. Forward and backward both multiply by the mask. */
#include "device/dropout.h"
#include "backend/cpu/cpu.h"

typedef struct dropout {
    ki_kernel base;
    ki_edge edge;
    bool drops;
    double p;
    uint64_t seed, step; /* the step forward ran with; backward uses the same, and … */
    int64_t first;       /* … the place of its first image in the whole batch */
    uint32_t node;
    ki_binding b;
} dropout;

static void dropout_free(ki_kernel *kernel) { ki_free(kernel); }

static kith_status dropout_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                                  ki_kernel **ret_kernel, kith_error *err) {
    dropout *k = NULL;
    KI_TRY(ki_kernel_new(backend, &cpu_dropout, sizeof *k, &k, err));
    k->edge = spec->dst;
    k->drops = spec->mode == KI_TRAIN;
    k->p = spec->attr->dropout.p;
    k->seed = spec->seed;
    k->node = spec->node;
    *ret_info = (ki_kernel_info){0};
    *ret_kernel = &k->base;
    return KITH_OK;
}

static kith_status dropout_bind(ki_kernel *kernel, const ki_binding *binding, kith_error *err) {
    (void)err;
    ((dropout *)kernel)->b = *binding;
    return KITH_OK;
}

static void apply(const dropout *k, const float *src, float *dst) {
    const ki_dropout mask = ki_dropout_at(k->seed, k->step, k->node, k->drops ? k->p : 0);
    const int64_t c = k->edge.shape.dim[1], n = ki_shape_count(&k->edge.shape);
    const bool is_native = k->edge.layout == KI_NATIVE;
    const int64_t hw = is_native ? k->edge.shape.dim[2] * k->edge.shape.dim[3] : 1, padded = cpu_padded(c);
    const float scale = (float)mask.scale;
    if (is_native && padded != c) {
        for (int64_t i = 0; i < cpu_count(&k->edge); i++) dst[i] = 0;
    }
    const int64_t before = k->first * (n / k->edge.shape.dim[0]);
    bool keep[4];
    int64_t block = -1;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = is_native ? cpu_native_at(i / (c * hw), i / hw % c, i % hw, padded, hw) : i;
        dst[at] = ki_dropout_keeps(&mask, before + i, keep, &block) ? src[at] * scale : 0;
    }
}

static kith_status dropout_forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    dropout *k = (dropout *)kernel;
    k->step = *k->b.step;
    k->first = k->b.first ? (int64_t)*k->b.first : 0;
    apply(k, k->b.src[0], k->b.dst);
    return KITH_OK;
}

static kith_status dropout_backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const dropout *k = (dropout *)kernel;
    apply(k, k->b.diff_dst[0], k->b.diff_src[0]);
    return KITH_OK;
}

const ki_kernel_type cpu_dropout = {.create = dropout_create,
                                    .bind = dropout_bind,
                                    .forward = dropout_forward,
                                    .backward = dropout_backward,
                                    .free = dropout_free};
