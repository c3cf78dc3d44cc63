/* grid: tokens as a map. token: one of them. probe: learned ones, the same for each row. */
#include <string.h>

#include "backend/ref/ref.h"

static kith_status grid_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                               ki_kernel **ret_kernel, kith_error *err) {
    *ret_info = (ki_kernel_info){0};
    return ki_ref_kernel_new(&ki_ref_grid, backend, spec, ret_kernel, err);
}

/* From tokens [mb, t, c] to the map [mb, c, pixels], or back; the tokens left out are 0 then. */
static void move_grid(const ki_ref_kernel *k, ki_real *tokens, ki_real *map, bool is_back) {
    const ki_shape *s = &k->spec.src[0].shape;
    const int64_t t = s->dim[1], c = s->dim[2], skip = k->attr.grid.skip, pixels = t - skip;
    for (int64_t i = 0; i < s->dim[0] * t * c; i++) {
        const int64_t n = i / (t * c), pixel = i / c % t - skip, channel = i % c;
        const int64_t at = (n * c + channel) * pixels + pixel;
        if (is_back)
            tokens[i] = pixel >= 0 ? map[at] : 0;
        else if (pixel >= 0)
            map[at] = tokens[i];
    }
}

static void *writable(const void *ptr) { return (void *)(uintptr_t)ptr; }

static kith_status grid_forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const ki_ref_kernel *k = ki_ref_of(kernel);
    move_grid(k, writable(k->binding.src[0]), k->binding.dst, false); /* the source is only read */
    return KITH_OK;
}

static kith_status grid_backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const ki_ref_kernel *k = ki_ref_of(kernel);
    if (k->binding.diff_src[0]) move_grid(k, k->binding.diff_src[0], writable(k->binding.diff_dst[0]), true);
    return KITH_OK;
}

const ki_kernel_type ki_ref_grid = {.create = grid_create,
                                    .bind = ki_ref_bind,
                                    .forward = grid_forward,
                                    .backward = grid_backward,
                                    .free = ki_ref_free};

static kith_status token_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                                ki_kernel **ret_kernel, kith_error *err) {
    *ret_info = (ki_kernel_info){0};
    return ki_ref_kernel_new(&ki_ref_token, backend, spec, ret_kernel, err);
}

static kith_status token_forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const ki_ref_kernel *k = ki_ref_of(kernel);
    const ki_shape *s = &k->spec.src[0].shape;
    const ki_real *src = k->binding.src[0];
    ki_real *dst = k->binding.dst;
    for (int64_t i = 0; i < s->dim[0] * s->dim[2]; i++)
        dst[i] = src[(i / s->dim[2] * s->dim[1] + k->attr.token.at) * s->dim[2] + i % s->dim[2]];
    return KITH_OK;
}

static kith_status token_backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const ki_ref_kernel *k = ki_ref_of(kernel);
    const ki_shape *s = &k->spec.src[0].shape;
    const ki_real *diff_dst = k->binding.diff_dst[0];
    ki_real *diff_src = k->binding.diff_src[0];
    for (int64_t i = 0; diff_src && i < ki_shape_count(s); i++) {
        const int64_t row = i / s->dim[2];
        diff_src[i] =
            row % s->dim[1] == k->attr.token.at ? diff_dst[row / s->dim[1] * s->dim[2] + i % s->dim[2]] : 0;
    }
    return KITH_OK;
}

const ki_kernel_type ki_ref_token = {.create = token_create,
                                     .bind = ki_ref_bind,
                                     .forward = token_forward,
                                     .backward = token_backward,
                                     .free = ki_ref_free};

static kith_status probe_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                                ki_kernel **ret_kernel, kith_error *err) {
    *ret_info = (ki_kernel_info){0};
    return ki_ref_kernel_new(&ki_ref_probe, backend, spec, ret_kernel, err);
}

static kith_status probe_forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const ki_ref_kernel *k = ki_ref_of(kernel);
    const ki_shape *d = &k->spec.dst.shape;
    const int64_t each = d->dim[1] * d->dim[2];
    ki_real *dst = k->binding.dst;
    for (int64_t i = 0; i < d->dim[0] * each; i++) dst[i] = k->binding.param[KI_W].value[i % each];
    return KITH_OK;
}

static kith_status probe_backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const ki_ref_kernel *k = ki_ref_of(kernel);
    const ki_shape *d = &k->spec.dst.shape;
    const int64_t each = d->dim[1] * d->dim[2];
    const ki_real *diff_dst = k->binding.diff_dst[0];
    ki_real *diff = ki_ref_diff(k, KI_W);
    for (int64_t i = 0; diff && i < each; i++) {
        double sum = 0;
        for (int64_t n = 0; n < d->dim[0]; n++) sum += (double)diff_dst[n * each + i];
        diff[i] += (ki_real)sum;
    }
    if (k->binding.diff_src[0])
        memset(k->binding.diff_src[0], 0, (size_t)ki_shape_count(&k->spec.src[0].shape) * sizeof(ki_real));
    return KITH_OK;
}

const ki_kernel_type ki_ref_probe = {.create = probe_create,
                                     .bind = ki_ref_bind,
                                     .forward = probe_forward,
                                     .backward = probe_backward,
                                     .free = ki_ref_free};
