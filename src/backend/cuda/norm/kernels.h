/* Batch, local response and layer norm, as C calls that queue a kernel and return the error, if any. Sums are computed in
 * float, in an order that depends on the shapes alone.
 *
 * Maps are n pixels of c channels, `pitch` elements apart, in float or (is_bf16) bf16. A pointer that is not aligned to
 * 16 bytes, a pitch or a channel count that is not a multiple of 16 bytes costs speed, not correctness. */
#ifndef KI_CUDA_NORM_KERNELS_H
#define KI_CUDA_NORM_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#include "backend/cuda/elementwise/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* batch_norm over n pixels per channel, followed by ReLU; parameters and statistics are float [c].
 *
 * With `other` (has_add) that map is added before ReLU. Backward then sums the parts of diff_dst where dst > 0 (or
 * everywhere without ReLU) into diff_other, which is the gradient of other and must not be NULL; without has_add
 * there is one part, and what ReLU let through is computed from src. */
typedef enum ki_cuda_bn_way {
    KI_CUDA_BN_CHOOSE,
    KI_CUDA_BN_TWICE, /* a launch for the sums, one for what needs them */
    KI_CUDA_BN_ONCE /* one launch that keeps as much of the map on the chip as it can; not possible if frozen,
                       without diff_src, or with too many channels for the device's processors */
} ki_cuda_bn_way;

/* Over ranks a call is made in two halves, with ki_cuda_bn_merge between them. */
typedef enum ki_cuda_bn_half { KI_CUDA_BN_WHOLE, KI_CUDA_BN_SUMS, KI_CUDA_BN_REST } ki_cuda_bn_half;

typedef struct ki_cuda_bn_args {
    ki_cuda_bn_way way;
    ki_cuda_bn_half half;
    bool is_bf16, has_relu;
    bool is_frozen; /* use mean and var, do not change them */
    bool has_add;
    int n_processors, n_parts;
    int64_t n, c, src_pitch, dst_pitch, other_pitch; /* gradients have the pitch of their map */
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
    /* Halves: what this rank's pixels add, ki_cuda_bn_share doubles: forward leaves means and sums of squared differences there,
     * backward the two sums, both followed by the number of pixels. And what merging makes of all ranks' shares for backward. */
    double *share;
    float *subtract; /* [2, c] */
} ki_cuda_bn_args;

static inline int64_t ki_cuda_bn_share(int64_t c) { return 2 * c + 1; }
/* From the shares of n_ranks ranks, side by side, to the statistics of the batch (forward) or to `subtract`; sums in the order
 * of the ranks. */
cudaError_t ki_cuda_bn_merge(cudaStream_t stream, const ki_cuda_bn_args *bn, bool is_backward,
                             const double *shares, int n_ranks);

size_t ki_cuda_bn_scratch(int64_t n, int64_t c, int n_processors);
/* The part of the map, from 0 to 1, that one launch keeps on the chip. */
double ki_cuda_bn_kept(const ki_cuda_bn_args *bn, bool is_backward);
cudaError_t ki_cuda_bn_forward(cudaStream_t stream, const ki_cuda_bn_args *bn);
cudaError_t ki_cuda_bn_backward(cudaStream_t stream, const ki_cuda_bn_args *bn);

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

/* layer_norm of n rows of c numbers: vectors, tokens, or the pixels of a map; parameters are float [c]. */
typedef struct ki_cuda_layer_norm_args {
    bool is_bf16, rms;
    int64_t n, c, src_pitch, dst_pitch; /* gradients have the pitch of their map */
    float eps;
    const void *src;
    void *dst;
    const float *gamma, *beta; /* beta: NULL with rms */
    float *saved; /* [n, 2]: mean and 1 / sqrt(var + eps), from forward to backward; NULL: not kept */
    const void *diff_dst;
    void *diff_src;                /* NULL: not wanted */
    const void *diff_added;        /* added to it, laid out as it; NULL: nothing */
    float *diff_gamma, *diff_beta; /* added to; NULL: not wanted */
    float *scratch;                /* ki_cuda_layer_norm_scratch floats */
} ki_cuda_layer_norm_args;

size_t ki_cuda_layer_norm_scratch(int64_t n, int64_t c);
cudaError_t ki_cuda_layer_norm_forward(cudaStream_t stream, const ki_cuda_layer_norm_args *norm);
cudaError_t ki_cuda_layer_norm_backward(cudaStream_t stream, const ki_cuda_layer_norm_args *norm);

/* The same for rows of whole packs that fit in the registers of a warp, which these two choose where they can: may they, then the pass, and
 * the floats of `scratch` it uses. */
bool ki_cuda_layer_norm_is_kept(const ki_cuda_layer_norm_args *norm, bool is_backward);
cudaError_t ki_cuda_layer_norm_kept(cudaStream_t stream, const ki_cuda_layer_norm_args *norm,
                                    bool is_backward);
size_t ki_cuda_layer_norm_kept_scratch(int64_t n, int64_t c);

/* grn between its sums over pixels (ki_cuda_stretch_sums) and what they are applied to (ki_cuda_mix); all [mb, c] but for `rate` [mb]. */
typedef struct ki_cuda_grn_args {
    int64_t mb, c;
    float eps;
    const float *gamma;
    float *norm, *factor, *rate;   /* from forward to backward; `norm` is the sum of squares before */
    const float *along, *sum;      /* backward: the sums over pixels of diff_dst * src, and of diff_dst */
    float *slope;                  /* what src is multiplied by in its gradient */
    float *diff_gamma, *diff_beta; /* added to; NULL: not wanted */
} ki_cuda_grn_args;

cudaError_t ki_cuda_grn_factors(cudaStream_t stream, const ki_cuda_grn_args *grn);
cudaError_t ki_cuda_grn_slopes(cudaStream_t stream, const ki_cuda_grn_args *grn);

#ifdef __cplusplus
}
#endif

#endif
