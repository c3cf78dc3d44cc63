/* drop_path: whole rows are scaled or cleared by the mask of device/dropout.h, with a row as its element. */
#include "backend/cpu/cpu.h"
#include "device/dropout.h"

typedef struct drop_path {
    ki_kernel base;
    int64_t n, rows; /* numbers, padding included, of so many rows */
    bool drops;
    double p;
    uint64_t seed, step; /* the step forward ran with; backward uses the same, and … */
    int64_t first;       /* … the place of its first row in the whole batch */
    uint32_t node;
    ki_binding b;
} drop_path;

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    drop_path *k = NULL;
    KI_TRY(ki_kernel_new(backend, &cpu_drop_path, sizeof *k, &k, err));
    k->n = cpu_count(&spec->dst);
    k->rows = spec->dst.shape.dim[0];
    k->drops = spec->mode == KI_TRAIN;
    k->p = spec->attr->drop_path.p;
    k->seed = spec->seed;
    k->node = spec->node;
    *ret_info = (ki_kernel_info){0};
    *ret_kernel = &k->base;
    return KITH_OK;
}

static kith_status bind(ki_kernel *kernel, const ki_binding *binding, kith_error *err) {
    (void)err;
    ((drop_path *)kernel)->b = *binding;
    return KITH_OK;
}

CPU_WIDE static void scale(const float *src, float factor, float *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) dst[i] = src[i] * factor;
}
CPU_WIDE static void clear(float *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) dst[i] = 0;
}

typedef struct dropping {
    const drop_path *k;
    ki_dropout mask;
    const float *src;
    float *dst;
} dropping;

static void drop_range(void *context, int64_t begin, int64_t end) {
    const dropping *d = context;
    const int64_t each = d->k->n / d->k->rows;
    bool keep[4];
    int64_t block = -1;
    for (int64_t at = begin; at < end;) {
        const int64_t row = at / each, to = (row + 1) * each < end ? (row + 1) * each : end;
        if (ki_dropout_keeps(&d->mask, d->k->first + row, keep, &block))
            scale(d->src + at, (float)d->mask.scale, d->dst + at, to - at);
        else
            clear(d->dst + at, to - at);
        at = to;
    }
}

static void apply(const drop_path *k, const float *src, float *dst) {
    dropping d = {k, ki_dropout_at(k->seed, k->step, k->node, k->drops ? k->p : 0), src, dst};
    ki_parallel_for(k->n, 4096, drop_range, &d);
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    drop_path *k = (drop_path *)kernel;
    (void)err;
    k->step = *k->b.step;
    k->first = k->b.first ? (int64_t)*k->b.first : 0;
    apply(k, k->b.src[0], k->b.dst);
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    const drop_path *k = (drop_path *)kernel;
    (void)err;
    if (k->b.diff_src[0]) apply(k, k->b.diff_dst[0], k->b.diff_src[0]);
    return KITH_OK;
}

static void release(ki_kernel *kernel) { ki_free(kernel); }

const ki_kernel_type cpu_drop_path = {
    .create = create, .bind = bind, .forward = forward, .backward = backward, .free = release};
