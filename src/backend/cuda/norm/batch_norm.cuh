/* What the two ways of batch norm share: batch_norm.cu (two launches) and batch_norm_once.cu (one). */
#ifndef KI_CUDA_BATCH_NORM_CUH
#define KI_CUDA_BATCH_NORM_CUH

#include "backend/cuda/channels.cuh"
#include "backend/cuda/norm/kernels.h"

/* Whether one launch can handle a map, and how (batch_norm_once.cu). */
bool ki_cuda_bn_is_once(const ki_cuda_bn_args *bn, bool is_backward);
/* The most chunks of pixels with one launch, for scratch: [chunks, 2, c] floats. */
int ki_cuda_bn_once_chunks(int64_t n, int64_t c, int n_processors);
/* Backward sums the parts itself only if there are at most two. */
cudaError_t ki_cuda_bn_once(cudaStream_t stream, const ki_cuda_bn_args *bn, bool is_backward);

namespace {

const int EACH = KI_CHANNEL_EACH;
const int THREADS = KI_CHANNEL_THREADS;

struct bn_args {
    const void *src, *other, *diff_dst; /* diff_dst has the pitch diff_pitch */
    const void *part[KI_CUDA_MAX_PARTS];
    void *dst, *diff_src, *diff_other;
    int64_t src_pitch, dst_pitch, other_pitch, diff_pitch;
    const float *gamma, *beta;
    float *running_mean, *running_var, *diff_gamma, *diff_beta;
    float *saved;   /* [2, c]: mean and 1 / std of the batch */
    float *partial; /* [chunks, 2, c], then [2, c]: what backward subtracts */
    unsigned *counters;
    double *share;   /* NULL: the pixels are those of the whole batch */
    float *subtract; /* NULL: it is behind `partial` */
    float eps, momentum;
};

template <int V>
__device__ __forceinline__ void load_channels(const float *from, int pack, float *to) {
#pragma unroll
    for (int i = 0; i < V; i++) to[i] = from[pack * V + i];
}

/* Mean, gamma / std and beta of the thread's channels. */
template <int V, bool FROZEN>
__device__ __forceinline__ void load_norm(const bn_args &a, const ki_channel_grid &g, int pack, float *mean,
                                          float *istd, float *scale, float *beta) {
    load_channels<V>(FROZEN ? a.running_mean : a.saved, pack, mean);
    load_channels<V>(FROZEN ? a.running_var : a.saved + g.packs * V, pack, istd);
    load_channels<V>(a.gamma, pack, scale);
    load_channels<V>(a.beta, pack, beta);
#pragma unroll
    for (int i = 0; i < V; i++) {
        if (FROZEN) istd[i] = 1 / sqrtf(istd[i] + a.eps);
        scale[i] *= istd[i];
    }
}

/* The only function that normalises: backward must compute the same sign as forward. */
__device__ __forceinline__ float norm(float x, float mean, float scale, float beta) {
    return fmaf(x - mean, scale, beta);
}

/* Sums over the chunks of the thread's channel. From the means and squared differences of the chunks, of
 * count_of(chunk) pixels each, to those of the whole. `room` is THREADS doubles. All threads must call this. */
template <int V, int AT_ONCE, typename Count>
__device__ __forceinline__ void combine_stats(const bn_args &a, const ki_channel_grid &g,
                                              const ki_channel_finish &f, Count count_of, double *room,
                                              double *mean, double *squares) {
    /* In double it is safe to add up the squares of the means and to subtract the square of the overall mean. */
    double sum = 0, all = 0;
    ki_channel_over_chunks<2, AT_ONCE>(g, f, a.partial, g.packs * V, [&](const float *value, int b) {
        const double count = (double)count_of(b), at = (double)value[0];
        sum += count * at;
        all += (double)value[1] + count * at * at;
    });
    sum = ki_channel_sum_slices(g, f, V, sum, room);
    all = ki_channel_sum_slices(g, f, V, all, room);
    *mean = sum / (double)g.n;
    *squares = fmax(all - sum * *mean, 0.0);
}

__device__ __forceinline__ float istd_of(const bn_args &a, double squares, double n) {
    return (float)(1 / sqrt(squares / n + (double)a.eps));
}

/* This rank's two numbers of a channel, and its pixels. */
__device__ __forceinline__ void save_share(const bn_args &a, int c, int channel, double n, double x,
                                           double y) {
    a.share[channel] = x;
    a.share[c + channel] = y;
    if (channel == 0) a.share[2 * c] = n;
}

/* What forward stores for a channel: for backward, and in the running statistics. */
__device__ __forceinline__ void save_stats(const bn_args &a, int c, int channel, double n, double mean,
                                           double squares) {
    const double m = (double)a.momentum;
    a.saved[channel] = (float)mean;
    a.saved[c + channel] = istd_of(a, squares, n);
    a.running_mean[channel] = (float)((1 - m) * (double)a.running_mean[channel] + m * mean);
    a.running_var[channel] = (float)((1 - m) * (double)a.running_var[channel] + m * squares / (n - 1));
}

/* From the chunks' sums of the gradient and of gradient * (x - mean) to those of the whole. */
template <int V, int AT_ONCE>
__device__ __forceinline__ void combine_sums(const bn_args &a, const ki_channel_grid &g,
                                             const ki_channel_finish &f, double *room, double *diff,
                                             double *diff_off) {
    double sum = 0, off = 0;
    ki_channel_over_chunks<2, AT_ONCE>(g, f, a.partial, g.packs * V, [&](const float *value, int) {
        sum += (double)value[0];
        off += (double)value[1];
    });
    *diff = ki_channel_sum_slices(g, f, V, sum, room);
    *diff_off = ki_channel_sum_slices(g, f, V, off, room);
}

__device__ __forceinline__ void save_sums(const bn_args &a, int channel, double diff, double diff_norm) {
    if (a.diff_gamma) a.diff_gamma[channel] += (float)diff_norm;
    if (a.diff_beta) a.diff_beta[channel] += (float)diff;
}

static inline bn_args args_of(const ki_cuda_bn_args *bn) {
    bn_args a = {};
    a.src = bn->src, a.dst = bn->dst, a.other = bn->other;
    for (int i = 0; i < bn->n_parts; i++) a.part[i] = bn->diff_dst[i];
    a.diff_src = bn->diff_src, a.diff_other = bn->diff_other;
    a.diff_dst = bn->has_add ? bn->diff_other : bn->diff_dst[0];
    a.src_pitch = bn->src_pitch, a.dst_pitch = bn->dst_pitch, a.other_pitch = bn->other_pitch;
    a.diff_pitch = bn->has_add ? bn->other_pitch : bn->dst_pitch;
    a.gamma = bn->gamma, a.beta = bn->beta, a.running_mean = bn->mean, a.running_var = bn->var;
    a.diff_gamma = bn->diff_gamma, a.diff_beta = bn->diff_beta;
    a.saved = bn->saved, a.partial = bn->scratch, a.counters = bn->counters;
    a.share = bn->share, a.subtract = bn->subtract;
    a.eps = bn->eps, a.momentum = bn->momentum;
    return a;
}

template <typename T>
static inline bool is_wide(const ki_cuda_bn_args *bn) {
    bool fits = ki_fits_packs<T>(bn->src, bn->src_pitch, bn->c) &&
                ki_fits_packs<T>(bn->dst, bn->dst_pitch, bn->c) &&
                ki_fits_packs<T>(bn->diff_src, bn->src_pitch, bn->c);
    for (int i = 0; i < bn->n_parts; i++) fits &= ki_fits_packs<T>(bn->diff_dst[i], bn->dst_pitch, bn->c);
    if (bn->has_add)
        fits &= ki_fits_packs<T>(bn->other, bn->other_pitch, bn->c) &&
                ki_fits_packs<T>(bn->diff_other, bn->other_pitch, bn->c);
    return fits;
}

} // namespace

#endif
