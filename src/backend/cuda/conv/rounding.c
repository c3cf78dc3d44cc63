/* The error of a weight gradient in bf16 whose exact value is known. */
#include "backend/cuda/conv/rounding.h"

#include <math.h>
#include <string.h>

#include "backend/cuda/conv/kernels.h"
#include "backend/cuda/cuda.h"

enum { CONSTANT_BYTE = 0x3f }; /* 0x3f3f is 0.746 in bf16 */

static double middle_error(const ki_conv_problem *p, const uint16_t *diff, const float *sums, int n_runs) {
    const double constant = (double)ki_bf16_to_float(0x3f3f);
    const int64_t ic = ki_conv_group_ic(p);
    double error = 0, total = 0;
    for (int64_t o = 0; o < p->oc; o++) {
        double sum = 0;
        for (int run = 0; run < n_runs; run++) sum += (double)sums[run * p->oc + o];
        for (int64_t c = 0; c < ic; c++) {
            const double off =
                (double)ki_bf16_to_float(diff[((o * p->kh + p->ph) * p->kw + p->pw) * ic + c]) -
                constant * sum;
            error += off * off;
            total += constant * sum * constant * sum;
        }
    }
    return sqrt(error / total);
}

static kith_status queue_known(ki_backend *backend, const ki_conv_problem *p, const ki_conv_io *io,
                               int n_runs, float *device_sums, kith_error *err) {
    const ki_diff_rows rows = {.n_rows = p->mb * p->oh * p->ow,
                               .c = p->oc,
                               .pitch = p->dst.pixel,
                               .n_parts = 1,
                               .n_runs = n_runs,
                               .part = {io->diff_dst},
                               .sums = device_sums};
    cudaStream_t stream = ki_cuda_of(backend)->stream;
    void *src = NULL;
    memcpy(&src, &io->src, sizeof src); /* only read by others */
    KI_CUDA(cudaMemsetAsync(src, CONSTANT_BYTE, (size_t)(p->mb * p->src.image) * sizeof(uint16_t), stream));
    KI_CUDA(ki_cuda_diff_rows(p->type, &rows, stream));
    return KITH_OK;
}

kith_status ki_conv_rounding(ki_backend *backend, const ki_conv_problem *p, ki_conv_way *way,
                             const ki_conv_io *io, double *ret_off, kith_error *err) {
    const size_t n = (size_t)(p->oc * p->kh * p->kw * ki_conv_group_ic(p));
    const int n_runs = ki_cuda_diff_runs(p->mb * p->oh * p->ow, p->oc);
    const size_t n_sums = (size_t)n_runs * (size_t)p->oc;
    uint16_t *diff = NULL;
    float *sums = NULL;
    void *device_sums = NULL;
    kith_status status = KITH_OK;
    KI_CHECK(ki_alloc_or(&diff, n, sizeof *diff, "a gradient", err));
    KI_CHECK(ki_alloc_or(&sums, n_sums, sizeof *sums, "column sums", err));
    KI_CHECK(ki_cuda_alloc(backend, n_sums * sizeof *sums, &device_sums, err));
    KI_CHECK(queue_known(backend, p, io, n_runs, device_sums, err));
    KI_CHECK(ki_conv_way_run(way, ki_cuda_of(backend)->stream, err));
    KI_CHECK(backend->type->memory.download(backend, io->diff_weights, diff, n * sizeof *diff, err));
    KI_CHECK(backend->type->memory.download(backend, device_sums, sums, n_sums * sizeof *sums, err));
    KI_CHECK(backend->type->memory.sync(backend, err));
    *ret_off = middle_error(p, diff, sums, n_runs);
done:
    ki_free(diff);
    ki_free(sums);
    ki_cuda_free(backend, device_sums);
    return status;
}
