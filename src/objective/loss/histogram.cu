/* Histogram loss on the device (histogram.c has the formulas). */
#include "objective/loss/histogram.h"

#include "objective/cuda/loss.cuh"
#include "objective/loss/bins.cuh"

namespace {

struct histogram {
    int bins;
    __device__ double axis(float s) const { return ((double)s + 1) * 0.5 * (double)(bins - 1); }
};

/* Scratch memory: counts [2, bins], then their slopes for positives and negatives [2, bins]. */
__global__ void histogram_clear(ki_cuda_bin *counts, int n) {
    for (int r = (int)(blockIdx.x * blockDim.x + threadIdx.x); r < n; r += (int)(gridDim.x * blockDim.x))
        counts[r] = 0;
}

__global__ void histogram_count(ki_cuda_view v, histogram h, ki_cuda_bin *counts, bool in_shared) {
    KI_SHARED(ki_cuda_bin, own);
    ki_cuda_bin *to = in_shared ? own : counts;
    if (in_shared) {
        for (int r = (int)threadIdx.x; r < 2 * h.bins; r += (int)blockDim.x) own[r] = 0;
        __syncthreads();
    }
    const int64_t row = (int64_t)blockIdx.x * v.ld;
    KI_COLUMNS(j, v.n) {
        const int kind = v.pair[row + j];
        if (kind == KI_PAIR_NONE) continue;
        int node = 0;
        double past = 0;
        ki_bin_place(h.axis(v.s[row + j]), h.bins, &node, &past);
        ki_cuda_bin *at = to + (ki_is_pos(kind) ? 0 : h.bins) + node;
        ki_bin_add(at, 1 - past);
        ki_bin_add(at + 1, past);
    }
    if (!in_shared) return;
    __syncthreads();
    for (int r = (int)threadIdx.x; r < 2 * h.bins; r += (int)blockDim.x) {
        if (own[r]) atomicAdd(&counts[r], own[r]);
    }
}

/* One block. below: H+_r, what a negative at r costs; above: the negatives at r or above, what a positive
 * costs. The value goes into a tally after those of the rows. */
__global__ void histogram_sum(ki_cuda_view v, int bins, const ki_cuda_bin *counts, double *slopes) {
    KI_SHARED_ARRAY(double, room, 33);
    double n_pos = 0, n_neg = 0;
    for (int i = (int)threadIdx.x; i < v.m; i += (int)blockDim.x) {
        n_pos += v.n_pos[i];
        n_neg += v.n_neg[i];
    }
    n_pos = ki_block_sum(n_pos, room);
    n_neg = ki_block_sum(n_neg, room);
    if (!ki_is_first()) return;
    const bool is_empty = n_pos == 0 || n_neg == 0;
    const double pos = is_empty ? 0 : 1 / n_pos, neg = is_empty ? 0 : 1 / n_neg;
    double *above = slopes, *below = slopes + bins, sum = 0, value = 0;
    for (int r = 0; r < bins; r++) {
        below[r] = sum += pos * ki_bin_get(counts[r]);
        value += neg * ki_bin_get(counts[bins + r]) * sum;
    }
    sum = 0;
    for (int r = bins - 1; r >= 0; r--) above[r] = sum += neg * ki_bin_get(counts[bins + r]);
    /* From here on the slope includes each pair's share of its histogram. */
    for (int r = 0; r < bins; r++) above[r] *= pos, below[r] *= neg;
    v.tally[v.m] = {0, 0, value, {0, 0}};
}

struct histogram_slopes {
    histogram h;
    const double *slopes;

    __device__ void operator()(const ki_cuda_view &v, const ki_cuda_row &row, ki_cuda_tally *t) const {
        (void)v, (void)t;
        const double per_step = 0.5 * (double)(h.bins - 1);
        KI_COLUMNS(j, row.n) {
            int node = 0;
            double past = 0, g = 0;
            if (row.pair[j] != KI_PAIR_NONE && ki_bin_place(h.axis(row.s[j]), h.bins, &node, &past)) {
                const double *by = slopes + (ki_is_pos(row.pair[j]) ? 0 : h.bins) + node;
                g = per_step * (by[1] - by[0]);
            }
            row.g[j] = (float)g;
        }
    }
};

cudaError_t rows(const ki_cuda_loss_in *in, const ki_cuda_view *view, cudaStream_t stream) {
    const histogram h = {(int)static_cast<const ki_histogram_settings *>(in->settings)->bins};
    const size_t shared_bytes = 2 * (size_t)h.bins * sizeof(ki_cuda_bin);
    const bool in_shared = shared_bytes <= 32768;
    ki_cuda_bin *counts = (ki_cuda_bin *)in->scratch;
    double *slopes = (double *)(void *)(counts + 2 * h.bins);
    KI_LAUNCH_TRY(histogram_clear, (unsigned)(2 * h.bins + 255) / 256, 256, 0, stream, counts, 2 * h.bins);
    KI_LAUNCH_TRY(histogram_count, (unsigned)view->m, view->threads, in_shared ? shared_bytes : 0, stream,
                  *view, h, counts, in_shared);
    KI_LAUNCH_TRY(histogram_sum, 1, 128, 0, stream, *view, h.bins, counts, slopes);
    const histogram_slopes loss = {h, slopes};
    return ki_loss_launch(view, loss, stream);
}

int64_t n_tallies(const void *settings, const ki_cuda_view *view) {
    (void)settings;
    return view->m + 1;
}

size_t scratch_bytes(const void *settings, const ki_cuda_view *view) {
    (void)view;
    return 4 * (size_t) static_cast<const ki_histogram_settings *>(settings)->bins * sizeof(double);
}

} // namespace

const ki_cuda_loss ki_cuda_loss_histogram = {
    .rows = rows, .by = KI_BY_ONE, .n_tallies = n_tallies, .scratch_bytes = scratch_bytes};
