/* grid: tokens as a blocked map. token: one of them as a vector. probe: learned ones, the same for each row. */
#include <string.h>

#include "backend/cpu/cpu.h"

typedef struct grid {
    ki_kernel base;
    int64_t mb, t, c; /* of the tokens */
    int64_t skip;     /* grid: how many are left out */
    int64_t at;       /* token */
    int64_t n;        /* probe: learned tokens */
    bool trains;
    ki_binding b;
} grid;

enum { LEAST_NUMBERS = 16384 }; /* for a thread */

static int64_t grain(int64_t numbers_each) { return LEAST_NUMBERS / numbers_each + 1; }

static void grid_free(ki_kernel *kernel) { ki_free(kernel); }

static kith_status grid_bind(ki_kernel *kernel, const ki_binding *binding, kith_error *err) {
    (void)err;
    ((grid *)kernel)->b = *binding;
    return KITH_OK;
}

static kith_status new_kernel(ki_backend *backend, const ki_kernel_type *type, const ki_kernel_spec *spec,
                              ki_kernel_info *ret_info, ki_kernel **ret_kernel, kith_error *err) {
    grid *k = NULL;
    const ki_shape *s = &spec->src[0].shape;
    KI_TRY(ki_kernel_new(backend, type, sizeof *k, &k, err));
    k->mb = s->dim[0], k->t = s->dim[1], k->c = s->dim[2];
    k->trains = spec->wants_diff_params;
    if (spec->kind == KI_OP_GRID) k->skip = spec->attr->grid.skip;
    if (spec->kind == KI_OP_TOKEN) k->at = spec->attr->token.at;
    if (spec->kind == KI_OP_PROBE) k->n = spec->attr->probe.n;
    *ret_info = (ki_kernel_info){0};
    *ret_kernel = &k->base;
    return KITH_OK;
}

static kith_status grid_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                               ki_kernel **ret_kernel, kith_error *err) {
    return new_kernel(backend, &cpu_grid, spec, ret_info, ret_kernel, err);
}

/* Items: the tokens of all rows, here and below. Channels of a block that are only padding become 0. */
static void grid_forward_rows(void *context, int64_t begin, int64_t end) {
    const grid *k = context;
    const int64_t block = cpu_block(), padded = cpu_padded(k->c), pixels = k->t - k->skip;
    for (int64_t row = begin; row < end; row++) {
        const int64_t pixel = row % k->t - k->skip;
        if (pixel < 0) continue;
        const float *src = (const float *)k->b.src[0] + row * k->c;
        float *dst = (float *)k->b.dst + cpu_native_at(row / k->t, 0, pixel, padded, pixels);
        for (int64_t first = 0; first < k->c; first += block, dst += block * pixels) {
            const int64_t n = k->c - first < block ? k->c - first : block;
            memcpy(dst, src + first, (size_t)n * sizeof *dst);
            memset(dst + n, 0, (size_t)(block - n) * sizeof *dst);
        }
    }
}

static kith_status grid_forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const grid *k = (grid *)kernel;
    ki_parallel_for(k->mb * k->t, grain(k->c), grid_forward_rows, kernel);
    return KITH_OK;
}

static void grid_backward_rows(void *context, int64_t begin, int64_t end) {
    const grid *k = context;
    const int64_t block = cpu_block(), padded = cpu_padded(k->c), pixels = k->t - k->skip;
    for (int64_t row = begin; row < end; row++) {
        const int64_t pixel = row % k->t - k->skip;
        float *diff_src = (float *)k->b.diff_src[0] + row * k->c;
        if (pixel < 0) {
            memset(diff_src, 0, (size_t)k->c * sizeof *diff_src);
            continue;
        }
        const float *diff_dst =
            (const float *)k->b.diff_dst[0] + cpu_native_at(row / k->t, 0, pixel, padded, pixels);
        for (int64_t first = 0; first < k->c; first += block, diff_dst += block * pixels) {
            const int64_t n = k->c - first < block ? k->c - first : block;
            memcpy(diff_src + first, diff_dst, (size_t)n * sizeof *diff_src);
        }
    }
}

static kith_status grid_backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const grid *k = (grid *)kernel;
    if (k->b.diff_src[0]) ki_parallel_for(k->mb * k->t, grain(k->c), grid_backward_rows, kernel);
    return KITH_OK;
}

const ki_kernel_type cpu_grid = {.create = grid_create,
                                 .bind = grid_bind,
                                 .forward = grid_forward,
                                 .backward = grid_backward,
                                 .free = grid_free};

static kith_status token_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                                ki_kernel **ret_kernel, kith_error *err) {
    return new_kernel(backend, &cpu_token, spec, ret_info, ret_kernel, err);
}

static kith_status token_forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const grid *k = (grid *)kernel;
    const float *src = (const float *)k->b.src[0] + k->at * k->c;
    for (int64_t n = 0; n < k->mb; n++)
        memcpy((float *)k->b.dst + n * k->c, src + n * k->t * k->c, (size_t)k->c * sizeof(float));
    return KITH_OK;
}

static void token_backward_rows(void *context, int64_t begin, int64_t end) {
    const grid *k = context;
    const size_t bytes = (size_t)k->c * sizeof(float);
    for (int64_t row = begin; row < end; row++) {
        float *to = (float *)k->b.diff_src[0] + row * k->c;
        if (row % k->t == k->at)
            memcpy(to, (const float *)k->b.diff_dst[0] + row / k->t * k->c, bytes);
        else
            memset(to, 0, bytes);
    }
}

static kith_status token_backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const grid *k = (grid *)kernel;
    if (k->b.diff_src[0]) ki_parallel_for(k->mb * k->t, grain(k->c), token_backward_rows, kernel);
    return KITH_OK;
}

const ki_kernel_type cpu_token = {.create = token_create,
                                  .bind = grid_bind,
                                  .forward = token_forward,
                                  .backward = token_backward,
                                  .free = grid_free};

static kith_status probe_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                                ki_kernel **ret_kernel, kith_error *err) {
    return new_kernel(backend, &cpu_probe, spec, ret_info, ret_kernel, err);
}

static kith_status probe_forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const grid *k = (grid *)kernel;
    const int64_t each = k->n * k->c;
    for (int64_t n = 0; n < k->mb; n++)
        memcpy((float *)k->b.dst + n * each, k->b.param[KI_W].value, (size_t)each * sizeof(float));
    return KITH_OK;
}

static kith_status probe_backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const grid *k = (grid *)kernel;
    const int64_t each = k->n * k->c;
    float *diff = k->trains ? k->b.param[KI_W].diff : NULL;
    for (int64_t n = 0; diff && n < k->mb; n++)
        cpu_accumulate(diff, (const float *)k->b.diff_dst[0] + n * each, each);
    if (k->b.diff_src[0]) memset(k->b.diff_src[0], 0, (size_t)(k->mb * k->t * k->c) * sizeof(float));
    return KITH_OK;
}

const ki_kernel_type cpu_probe = {.create = probe_create,
                                  .bind = grid_bind,
                                  .forward = probe_forward,
                                  .backward = probe_backward,
                                  .free = grid_free};
