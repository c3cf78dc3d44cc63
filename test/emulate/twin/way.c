/* The passes of convolutions on the host: windows laid out as rows (im2col), then one product per image. Maps
 * and weights are read and written in their type; sums are float. There is one way and nothing to choose, but
 * gradients of weights come in all the kinds the device has: added to the masters' (1x1), packed in bf16, packed
 * in float. Convolutions in groups run in the device's own kernels. */
#include <cblas.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/conv/group.h"
#include "backend/cuda/cuda.h"
#include "emulate/emulated.h"

struct ki_conv_way {
    ki_backend *backend;
    ki_conv_problem problem;
    ki_conv_io io;
};

static float get(ki_number type, const void *data, int64_t at) {
    return type == KI_NUMBER_BF16 ? ki_bf16_to_float(((const uint16_t *)data)[at])
                                  : ((const float *)data)[at];
}

static void put(ki_number type, void *data, int64_t at, float value) {
    if (type == KI_NUMBER_BF16)
        ((uint16_t *)data)[at] = ki_float_to_bf16(value);
    else
        ((float *)data)[at] = value;
}

static float *floats(int64_t n) {
    float *values = calloc((size_t)n + 1, sizeof *values);
    if (!values) abort();
    return values;
}

/* Between an image of the source and its windows [oh * ow, kh * kw * ic]: read them, or add them up. */
static void windows(const ki_conv_problem *p, int64_t image, const void *src, float *rows, float *sum) {
    for (int64_t i = 0; i < p->oh * p->ow * p->kh * p->kw; i++) {
        const int64_t kx = i % p->kw, ky = i / p->kw % p->kh, x = i / p->kw / p->kh % p->ow,
                      y = i / p->kw / p->kh / p->ow;
        const int64_t sx = x * p->sw - p->pw + kx, sy = y * p->sh - p->ph + ky;
        const bool is_inside = sx >= 0 && sx < p->iw && sy >= 0 && sy < p->ih;
        for (int64_t c = 0; c < p->ic; c++) {
            float *cell = &rows[i * p->ic + c];
            if (sum && is_inside) sum[(sy * p->iw + sx) * p->ic + c] += *cell;
            if (sum) continue;
            *cell = is_inside
                        ? get(p->type, src, image * p->src.image + sy * p->src.row + sx * p->src.pixel + c)
                        : 0;
        }
    }
}

static int64_t dst_at(const ki_conv_problem *p, int64_t image, int64_t pixel) {
    return image * p->dst.image + pixel / p->ow * p->dst.row + pixel % p->ow * p->dst.pixel;
}

static void forward_run(void *args) {
    const ki_conv_way *a = *(ki_conv_way *const *)args;
    const ki_conv_problem *p = &a->problem;
    const int64_t pixels = p->oh * p->ow, width = p->kh * p->kw * p->ic;
    float *w = floats(p->oc * width), *rows = floats(pixels * width), *out = floats(pixels * p->oc);
    for (int64_t i = 0; i < p->oc * width; i++) w[i] = get(p->type, a->io.weights, i);
    for (int64_t n = 0; n < p->mb; n++) {
        windows(p, n, a->io.src, rows, NULL);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)pixels, (int)p->oc, (int)width, 1, rows,
                    (int)width, w, (int)width, 0, out, (int)p->oc);
        for (int64_t i = 0; i < pixels * p->oc; i++) {
            const int64_t o = i % p->oc;
            const int64_t at = dst_at(p, n, i / p->oc) + o;
            const float value =
                out[i] + (p->has_bias ? a->io.bias[o] : 0) + (p->adds ? get(p->type, a->io.added, at) : 0);
            put(p->type, a->io.dst, at, p->has_relu && !(value > 0) ? 0 : value);
        }
    }
    free(w);
    free(rows);
    free(out);
}

static float *read_diff_dst(const ki_conv_way *a, int64_t image, float *diff) {
    const ki_conv_problem *p = &a->problem;
    for (int64_t i = 0; i < p->oh * p->ow * p->oc; i++)
        diff[i] = get(p->type, a->io.diff_dst, dst_at(p, image, i / p->oc) + i % p->oc);
    return diff;
}

static void diff_src_run(void *args) {
    const ki_conv_way *a = *(ki_conv_way *const *)args;
    const ki_conv_problem *p = &a->problem;
    const int64_t pixels = p->oh * p->ow, width = p->kh * p->kw * p->ic, n_src = p->ih * p->iw * p->ic;
    float *w = floats(p->oc * width), *rows = floats(pixels * width), *diff = floats(pixels * p->oc),
          *sum = floats(n_src);
    for (int64_t i = 0; i < p->oc * width; i++) w[i] = get(p->type, a->io.weights, i);
    for (int64_t n = 0; n < p->mb; n++) {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)pixels, (int)width, (int)p->oc, 1,
                    read_diff_dst(a, n, diff), (int)p->oc, w, (int)width, 0, rows, (int)width);
        memset(sum, 0, (size_t)n_src * sizeof *sum);
        windows(p, n, NULL, rows, sum);
        for (int64_t i = 0; i < n_src; i++) {
            const int64_t pixel = i / p->ic, at = n * p->src.image + pixel / p->iw * p->src.row +
                                                  pixel % p->iw * p->src.pixel + i % p->ic;
            put(p->type, a->io.diff_src, at, sum[i] + (p->adds ? get(p->type, a->io.diff_src, at) : 0));
        }
    }
    free(w);
    free(rows);
    free(diff);
    free(sum);
}

static void diff_weights_run(void *args) {
    const ki_conv_way *a = *(ki_conv_way *const *)args;
    const ki_conv_problem *p = &a->problem;
    const int64_t pixels = p->oh * p->ow, width = p->kh * p->kw * p->ic;
    float *rows = floats(pixels * width), *diff = floats(pixels * p->oc), *sum = floats(p->oc * width);
    for (int64_t n = 0; n < p->mb; n++) {
        windows(p, n, a->io.src, rows, NULL);
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)p->oc, (int)width, (int)pixels, 1,
                    read_diff_dst(a, n, diff), (int)p->oc, rows, (int)width, 1, sum, (int)width);
    }
    for (int64_t i = 0; i < p->oc * width; i++) {
        if (ki_conv_way_accumulates(a))
            a->io.diff_master[i] += sum[i];
        else
            put(ki_conv_way_diff_type(a), a->io.diff_weights, i, sum[i]);
    }
    free(rows);
    free(diff);
    free(sum);
}

kith_status ki_conv_tune(ki_backend *backend, const ki_conv_problem *problem, ki_conv_way **ret_way,
                         ki_conv_tuning *ret_tuning, kith_error *err) {
    ki_conv_way *a = NULL;
    KI_TRY(ki_zalloc_or(&a, 1, sizeof *a, "a way", err));
    *a = (ki_conv_way){.backend = backend, .problem = *problem};
    if (ret_tuning) *ret_tuning = (ki_conv_tuning){0};
    *ret_way = a;
    return KITH_OK;
}

void ki_conv_way_free(ki_conv_way *way) { ki_free(way); }
size_t ki_conv_way_workspace_bytes(const ki_conv_way *a) {
    return ki_cuda_conv_is_depthwise(&a->problem) ? ki_cuda_conv_depthwise_workspace(&a->problem) : 0;
}
ki_number ki_conv_way_diff_type(const ki_conv_way *a) {
    return a->problem.kw == 3 && a->problem.groups <= 1 ? a->problem.type : KI_NUMBER_FLOAT;
}
bool ki_conv_way_accumulates(const ki_conv_way *a) { return a->problem.plain_weights; }
bool ki_conv_way_takes_part(const ki_conv_way *a) { return ki_cuda_conv_is_depthwise(&a->problem); }
bool ki_conv_way_is_plain(const ki_conv_way *a) { return (void)a, false; }
const char *ki_conv_way_text(const ki_conv_way *a) { return (void)a, "emulated"; }
double ki_conv_way_seconds(const ki_conv_way *a) { return (void)a, 0; }

kith_status ki_conv_way_bind(ki_conv_way *way, const ki_conv_io *io, kith_error *err) {
    (void)err;
    way->io = *io;
    return KITH_OK;
}

kith_status ki_conv_way_run(ki_conv_way *a, cudaStream_t stream, kith_error *err) {
    if (ki_cuda_conv_is_depthwise(&a->problem)) {
        KI_CUDA(ki_cuda_conv_depthwise(&a->problem, &a->io, stream));
        return KITH_OK;
    }
    if (a->problem.groups > 1) {
        KI_CUDA(ki_cuda_conv_plain(&a->problem, &a->io, stream));
        return KITH_OK;
    }
    static void (*const runs[KI_N_CONV_PASSES])(void *) = {forward_run, diff_src_run, diff_weights_run};
    KI_CUDA(ki_emulate_run(stream, runs[a->problem.pass], &a, sizeof(void *)));
    return KITH_OK;
}

void ki_conv_tune_end(ki_backend *backend) { (void)backend; }

static void libraries_close(cuda_backend *cuda) {
    ki_conv_queue *queue = cuda->libraries;
    if (queue) ki_free(queue->item);
    ki_free(queue);
    cuda->libraries = NULL;
}

kith_status ki_conv_queue_of(ki_backend *backend, ki_conv_queue **ret_queue, kith_error *err) {
    cuda_backend *cuda = ki_cuda_of(backend);
    if (!cuda->libraries) {
        ki_conv_queue *queue = NULL;
        KI_TRY(ki_zalloc_or(&queue, 1, sizeof *queue, "a queue", err));
        cuda->libraries = queue;
        cuda->libraries_close = libraries_close;
    }
    *ret_queue = cuda->libraries;
    return KITH_OK;
}
