/* The cuda backend's conv2d on the host: windows laid out as rows (im2col), then one product per image. Maps are
 * NHWC with a pitch, weights and maps are rounded to bf16 where the backend's precision says so. ReLU is fused
 * forward and left to `join` backward, as on the device. */
#include <cblas.h>
#include <math.h>
#include <stdlib.h>

#include "backend/cuda/cuda.h"
#include "emulate/emulated.h"

typedef struct conv {
    ki_kernel base;
    ki_conv_attr a;
    ki_cuda_map src, dst;
    bool has_relu, has_folded_bn, wants_diff_params;
    double bn_eps;
    ki_binding b;
} conv;

static float get(const ki_cuda_map *m, const void *data, int64_t pixel, int64_t c) {
    const int64_t at = pixel * m->pitch + c;
    return m->is_bf16 ? ki_bf16_to_float(((const uint16_t *)data)[at]) : ((const float *)data)[at];
}

static void put(const ki_cuda_map *m, void *data, int64_t pixel, int64_t c, float value) {
    const int64_t at = pixel * m->pitch + c;
    if (m->is_bf16)
        ((uint16_t *)data)[at] = ki_float_to_bf16(value);
    else
        ((float *)data)[at] = value;
}

static float *floats(int64_t n) {
    float *values = calloc((size_t)n + 1, sizeof *values);
    if (!values) abort();
    return values;
}

static float rounded(const conv *k, float x) {
    return k->src.is_bf16 ? ki_bf16_to_float(ki_float_to_bf16(x)) : x;
}

/* Weights as [oc, kh * kw * ic], with the batch norm's scale. */
static float *weights(const conv *k, const float *scale) {
    const int64_t ic = k->src.c, cells = k->a.kh * k->a.kw;
    const float *from = k->b.param[KI_W].value;
    float *to = floats(k->a.oc * cells * ic);
    for (int64_t o = 0; o < k->a.oc; o++) {
        for (int64_t i = 0; i < ic; i++) {
            for (int64_t p = 0; p < cells; p++)
                to[(o * cells + p) * ic + i] = rounded(k, from[(o * ic + i) * cells + p] * scale[o]);
        }
    }
    return to;
}

/* Calls `each` for every (row of the window matrix, its first column, source pixel) inside the source. */
typedef void (*cell_fn)(void *context, int64_t at, int64_t pixel);

static void cells(const conv *k, int64_t image, cell_fn each, void *context) {
    const ki_conv_attr *a = &k->a;
    for (int64_t oh = 0; oh < k->dst.h; oh++) {
        for (int64_t ow = 0; ow < k->dst.w; ow++) {
            for (int64_t y = 0; y < a->kh; y++) {
                for (int64_t x = 0; x < a->kw; x++) {
                    const int64_t h = oh * a->sh - a->ph + y, w = ow * a->sw - a->pw + x;
                    if (h < 0 || h >= k->src.h || w < 0 || w >= k->src.w) continue;
                    each(context, ((oh * k->dst.w + ow) * a->kh * a->kw + y * a->kw + x) * k->src.c,
                         (image * k->src.h + h) * k->src.w + w);
                }
            }
        }
    }
}

typedef struct cell_copy {
    const conv *k;
    float *rows, *sum; /* sum: gradients of source pixels, [mb * h * w, c] */
} cell_copy;

static void cell_read(void *context, int64_t at, int64_t pixel) {
    const cell_copy *c = context;
    for (int64_t i = 0; i < c->k->src.c; i++) c->rows[at + i] = get(&c->k->src, c->k->b.src[0], pixel, i);
}

static void cell_add(void *context, int64_t at, int64_t pixel) {
    const cell_copy *c = context;
    for (int64_t i = 0; i < c->k->src.c; i++) c->sum[pixel * c->k->src.c + i] += c->rows[at + i];
}

static void forward_run(void *args) {
    const conv *k = *(conv *const *)args;
    const int64_t pixels = k->dst.h * k->dst.w, width = k->a.kh * k->a.kw * k->src.c, oc = k->a.oc;
    float *scale = floats(oc), *shift = floats(oc);
    const ki_param_slot *p = k->b.param;
    for (int64_t o = 0; o < oc; o++) {
        scale[o] = 1;
        shift[o] = k->a.bias ? p[KI_B].value[o] : 0;
        if (!k->has_folded_bn) continue;
        scale[o] = (float)((double)p[KI_GAMMA].value[o] / sqrt((double)p[KI_VAR].value[o] + k->bn_eps));
        shift[o] = p[KI_BETA].value[o] + (shift[o] - p[KI_MEAN].value[o]) * scale[o];
    }
    float *w = weights(k, scale), *rows = floats(pixels * width), *out = floats(pixels * oc);
    for (int64_t n = 0; n < k->src.mb; n++) {
        cell_copy c = {k, rows, NULL};
        for (int64_t i = 0; i < pixels * width; i++) rows[i] = 0;
        cells(k, n, cell_read, &c);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)pixels, (int)oc, (int)width, 1, rows,
                    (int)width, w, (int)width, 0, out, (int)oc);
        for (int64_t i = 0; i < pixels; i++) {
            for (int64_t o = 0; o < oc; o++) {
                const float value = out[i * oc + o] + shift[o];
                put(&k->dst, k->b.dst, n * pixels + i, o, k->has_relu && !(value > 0) ? 0 : value);
            }
        }
    }
    free(scale);
    free(shift);
    free(w);
    free(rows);
    free(out);
}

static void backward_run(void *args) {
    const conv *k = *(conv *const *)args;
    const int64_t pixels = k->dst.h * k->dst.w, kernel = k->a.kh * k->a.kw, width = kernel * k->src.c,
                  oc = k->a.oc, ic = k->src.c;
    float *ones = floats(oc);
    for (int64_t o = 0; o < oc; o++) ones[o] = 1;
    float *w = weights(k, ones), *rows = floats(pixels * width), *diff = floats(pixels * oc);
    float *diff_w = floats(oc * width), *sum = floats(k->src.n * ic);
    for (int64_t n = 0; n < k->src.mb; n++) {
        cell_copy c = {k, rows, sum};
        for (int64_t i = 0; i < pixels; i++) {
            for (int64_t o = 0; o < oc; o++)
                diff[i * oc + o] = get(&k->dst, k->b.diff_dst[0], n * pixels + i, o);
        }
        if (k->wants_diff_params) {
            for (int64_t i = 0; i < pixels * width; i++) rows[i] = 0;
            cells(k, n, cell_read, &c);
            cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)oc, (int)width, (int)pixels, 1, diff,
                        (int)oc, rows, (int)width, 1, diff_w, (int)width);
            for (int64_t i = 0; k->a.bias && i < pixels; i++) {
                for (int64_t o = 0; o < oc; o++) k->b.param[KI_B].diff[o] += diff[i * oc + o];
            }
        }
        if (k->b.diff_src[0]) {
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)pixels, (int)width, (int)oc, 1, diff,
                        (int)oc, w, (int)width, 0, rows, (int)width);
            cells(k, n, cell_add, &c);
        }
    }
    for (int64_t o = 0; k->wants_diff_params && o < oc; o++) {
        for (int64_t i = 0; i < ic; i++) {
            for (int64_t p = 0; p < kernel; p++)
                k->b.param[KI_W].diff[(o * ic + i) * kernel + p] += diff_w[(o * kernel + p) * ic + i];
        }
    }
    for (int64_t p = 0; k->b.diff_src[0] && p < k->src.n; p++) {
        for (int64_t i = 0; i < ic; i++) put(&k->src, k->b.diff_src[0], p, i, sum[p * ic + i]);
    }
    free(ones);
    free(w);
    free(rows);
    free(diff);
    free(diff_w);
    free(sum);
}

static kith_status conv_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                               ki_kernel **ret_kernel, kith_error *err) {
    conv *k = NULL;
    KI_TRY(ki_cuda_kernel_new(backend, &ki_cuda_conv2d, sizeof *k, &k, err));
    k->a = spec->attr->conv;
    k->src = ki_cuda_map_of(backend, &spec->src[0]);
    k->dst = ki_cuda_map_of(backend, &spec->dst);
    k->has_relu = spec->has_relu;
    k->has_folded_bn = spec->has_folded_bn;
    k->bn_eps = spec->bn_eps;
    k->wants_diff_params = spec->wants_diff_params;
    *ret_info = (ki_kernel_info){.backward_reads_src = true, .mask_in_join = spec->has_relu};
    *ret_kernel = &k->base;
    return KITH_OK;
}

static kith_status conv_bind(ki_kernel *kernel, const ki_binding *binding, kith_error *err) {
    (void)err;
    ((conv *)kernel)->b = *binding;
    return KITH_OK;
}

static kith_status conv_forward(ki_kernel *kernel, kith_error *err) {
    KI_CUDA(ki_emulate_run(ki_cuda_of(kernel->backend)->stream, forward_run, &kernel, sizeof kernel));
    return KITH_OK;
}

static kith_status conv_backward(ki_kernel *kernel, kith_error *err) {
    KI_CUDA(ki_emulate_run(ki_cuda_of(kernel->backend)->stream, backward_run, &kernel, sizeof kernel));
    return KITH_OK;
}

static void conv_free(ki_kernel *kernel) { ki_free(kernel); }

const ki_kernel_type ki_cuda_conv2d = {.create = conv_create,
                                       .bind = conv_bind,
                                       .forward = conv_forward,
                                       .backward = conv_backward,
                                       .free = conv_free};
