/* The hand-written kernels of the ops, as C calls: queue and return what went wrong.
 *
 * Maps are n pixels of c channels, `pitch` elements apart, in float or (is_bf16) bf16; sums are made in float
 * in an order that depends on the shapes alone. A pointer that is not aligned to 16 bytes, a pitch or a channel
 * count that is not a multiple of 16 bytes costs speed, not correctness. */
#ifndef KI_CUDA_KERNELS_H
#define KI_CUDA_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { KI_CUDA_MAX_PARTS = 8 };

/* dst = sum of parts, then ReLU (has_relu), or kept where mask > 0 (mask not NULL). dst may be any of the parts
 * of the same pitch. */
cudaError_t ki_cuda_sum(cudaStream_t stream, bool is_bf16, int64_t n, int64_t c, int n_parts,
                        const void *const *part, const int64_t *pitch, const void *mask, int64_t mask_pitch,
                        bool has_relu, void *dst, int64_t dst_pitch);

/* Row-major [mb, c, h, w] float and a map with `row` pixels from row to row; channels from c to c_filled of the map are set to zero. */
cudaError_t ki_cuda_import_map(cudaStream_t stream, bool is_bf16, int64_t mb, int64_t c, int64_t h, int64_t w,
                               const float *plain, void *map, int64_t pitch, int64_t row, int64_t c_filled);
cudaError_t ki_cuda_export_map(cudaStream_t stream, bool is_bf16, int64_t mb, int64_t c, int64_t h, int64_t w,
                               const void *map, int64_t pitch, int64_t row, float *plain);

/* Zeros in device memory that kernels count blocks in; zero again when they are done. */
enum { KI_CUDA_COUNTERS = 4096, KI_CUDA_SUMS = 1 << 16 };

/* batch_norm over n pixels per channel, ReLU behind; parameters and statistics are float [c].
 *
 * With `other` (has_add) that map is added before ReLU. Backward then sums the parts of diff_dst where dst > 0 (or
 * everywhere without ReLU) into diff_other, which is other's gradient and must be there; without has_add there is
 * one part, and what ReLU let through is computed from src. */
typedef enum ki_cuda_bn_way {
    KI_CUDA_BN_CHOOSE,
    KI_CUDA_BN_TWICE, /* a launch for the sums, one for what needs them */
    KI_CUDA_BN_ONCE /* one launch that keeps what it can of the map on the chip; not where that cannot be done:
                         frozen, no diff_src wanted, too many channels for the device's processors */
} ki_cuda_bn_way;

typedef struct ki_cuda_bn_args {
    ki_cuda_bn_way way;
    bool is_bf16, has_relu;
    bool is_frozen; /* use mean and var, leave them */
    bool has_add;
    int n_processors, n_parts;
    int64_t n, c, src_pitch, dst_pitch, other_pitch; /* diffs lie as what they are of */
    float eps, momentum;
    const void *src, *other;
    void *dst;
    const void *diff_dst[KI_CUDA_MAX_PARTS];
    void *diff_src; /* NULL: not wanted */
    void *diff_other;
    const float *gamma, *beta;
    float *mean, *var;             /* running */
    float *diff_gamma, *diff_beta; /* added to; NULL: not wanted */
    float *saved;                  /* [2, c], from forward to backward; unused when frozen */
    float *scratch;                /* ki_cuda_bn_scratch bytes */
    unsigned *counters;
} ki_cuda_bn_args;

size_t ki_cuda_bn_scratch(int64_t n, int64_t c, int n_processors);
/* The part of the map, from 0 to 1, that one launch keeps on the chip. */
double ki_cuda_bn_kept(const ki_cuda_bn_args *bn, bool is_backward);
cudaError_t ki_cuda_bn_forward(cudaStream_t stream, const ki_cuda_bn_args *bn);
cudaError_t ki_cuda_bn_backward(cudaStream_t stream, const ki_cuda_bn_args *bn);

/* pool (core/op.h). `place` holds, per value of dst [pixels, c], where in its window a maximum came from: written by
 * forward unless NULL, read by backward. k is at most 15 for maxima. */
typedef struct ki_cuda_pool_args {
    bool is_bf16, average, count_pad;
    int64_t mb, c, src_pitch, dst_pitch;
    int ih, iw, oh, ow, k, s, p;
    const void *src;
    void *dst;
    const void *diff_dst;
    void *diff_src;
    uint8_t *place;
    const float *pad; /* [c]: averages: what lies in the padding; NULL: zeros */
} ki_cuda_pool_args;

cudaError_t ki_cuda_pool_forward(cudaStream_t stream, const ki_cuda_pool_args *pool);
cudaError_t ki_cuda_pool_backward(cudaStream_t stream, const ki_cuda_pool_args *pool);

/* lrn over `size` channels. */
typedef struct ki_cuda_lrn_args {
    bool is_bf16;
    int size;
    float alpha, beta, k;
    int64_t n, c, src_pitch, dst_pitch;
    const void *src;
    void *dst;
    const void *diff_dst;
    void *diff_src;
} ki_cuda_lrn_args;

cudaError_t ki_cuda_lrn_forward(cudaStream_t stream, const ki_cuda_lrn_args *lrn);
cudaError_t ki_cuda_lrn_backward(cudaStream_t stream, const ki_cuda_lrn_args *lrn);

/* global_pool: dst and diff_dst are float [mb, c]; place, for maxima, is [mb, c]. */
typedef struct ki_cuda_global_args {
    bool is_bf16, has_average, has_max;
    int64_t mb, c, hw, pitch;
    const void *src;
    float *dst;
    const float *diff_dst;
    void *diff_src;
    int32_t *place;
} ki_cuda_global_args;

cudaError_t ki_cuda_global_forward(cudaStream_t stream, const ki_cuda_global_args *global);
cudaError_t ki_cuda_global_backward(cudaStream_t stream, const ki_cuda_global_args *global);

/* Rows [mb, c] in float. */
cudaError_t ki_cuda_l2_forward(cudaStream_t stream, int64_t mb, int64_t c, float eps, const float *src,
                               float *dst);
cudaError_t ki_cuda_l2_backward(cudaStream_t stream, int64_t mb, int64_t c, float eps, const float *src,
                                const float *diff_dst, float *diff_src);
cudaError_t ki_cuda_softmax_forward(cudaStream_t stream, int64_t mb, int64_t c, const float *src,
                                    const int32_t *labels, float *dst);
cudaError_t ki_cuda_softmax_backward(cudaStream_t stream, int64_t mb, int64_t c, const float *src,
                                     const int32_t *labels, const float *diff_dst, float *diff_src);

/* dst = src through the mask of core/dropout.h at *step, which is device memory; *step goes to keeps_step unless that
 * is NULL. is_map: a map of hw pixels; else float [mb, c] with hw 1. */
typedef struct ki_cuda_dropout_args {
    bool is_bf16, is_map;
    int64_t mb, c, hw, src_pitch, dst_pitch;
    uint32_t key[2], node, purpose, threshold;
    float scale;
    const void *src;
    void *dst;
    const uint64_t *step;
    uint64_t *keeps_step;
} ki_cuda_dropout_args;

cudaError_t ki_cuda_dropout_mask(cudaStream_t stream, const ki_cuda_dropout_args *args);

#ifdef __cplusplus
}
#endif

#endif
