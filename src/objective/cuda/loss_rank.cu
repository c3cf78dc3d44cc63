/* Losses about the order of a row or of all pairs: ranked_list, histogram, fastap.
 *
 * Soft histograms are sums of fractions in whatever order threads come; they are kept in whole numbers of
 * 2^-36, which add up to the same in any order. */
#include "objective/cuda/loss.cuh"

namespace {

typedef unsigned long long bin;
const double BIN = 68719476736.0; /* 2^36: 2^27 pairs fit */

__device__ void bin_add(bin *at, double share) { atomicAdd(at, (bin)(share * BIN + 0.5)); }
__device__ double bin_get(bin count) { return (double)count / BIN; }

struct ranked_list {
    double alpha, margin, temperature, lambda;

    __device__ void operator()(const ki_cuda_view &v, const ki_row &row, ki_cuda_tally *t) const {
        (void)v;
        const float inner = (float)(alpha - margin);
        double positives = 0, active = 0;
        KI_COLUMNS(j, row.n) {
            if (!ki_is_pos(row.pair[j]) || !(row.s[j] - inner > 0)) continue;
            positives += (double)(row.s[j] - inner);
            active += 1;
        }
        row.sums(positives, active);
        const double pos_weight = active > 0 ? (1 - lambda) / active : 0;
        float least = -FLT_MAX;
        KI_COLUMNS(j, row.n) if (ki_is_neg(row.pair[j]) && -row.s[j] > least) least = -row.s[j];
        const double nearest = -(double)row.max(least);
        const bool has_near = nearest < alpha;
        double sum_w = 0, sum_wl = 0;
        KI_COLUMNS(j, row.n) {
            if (!ki_is_neg(row.pair[j]) || !((double)row.s[j] < alpha)) continue;
            const double w = exp(temperature * (nearest - (double)row.s[j]));
            sum_w += w;
            sum_wl += w * (alpha - (double)row.s[j]);
        }
        row.sums(sum_w, sum_wl);
        const double mean = has_near ? sum_wl / sum_w : 0;
        KI_COLUMNS(j, row.n) {
            double g = 0;
            if (ki_is_pos(row.pair[j]) && row.s[j] - inner > 0) g = pos_weight;
            if (ki_is_neg(row.pair[j]) && (double)row.s[j] < alpha) {
                const double w = exp(temperature * (nearest - (double)row.s[j]));
                g = -lambda * w / sum_w * (1 + temperature * (alpha - (double)row.s[j] - mean));
            }
            row.g[j] = (float)g;
        }
        t->pos = pos_weight * positives;
        t->neg = lambda * mean;
    }
};

/* The node below a place on the axis, and how far past it; false when it is beyond the ends. */
__device__ bool place(double at, int n_nodes, int *node, double *past) {
    int below = at > 0 ? (at < (double)n_nodes ? (int)at : n_nodes) : 0;
    if (below > n_nodes - 2) below = n_nodes - 2;
    const double rest = at - (double)below;
    *node = below;
    *past = rest < 0 ? 0 : rest > 1 ? 1 : rest;
    return rest >= 0 && rest <= 1;
}

struct histogram {
    int bins;
    __device__ double axis(float s) const { return ((double)s + 1) * 0.5 * (double)(bins - 1); }
};

/* Scratch memory: counts [2, bins], then their slopes for positives and negatives [2, bins]. */
__global__ void histogram_clear(bin *counts, int n) {
    for (int r = (int)(blockIdx.x * blockDim.x + threadIdx.x); r < n; r += (int)(gridDim.x * blockDim.x))
        counts[r] = 0;
}

__global__ void histogram_count(ki_cuda_view v, histogram h, bin *counts, bool in_shared) {
    KI_SHARED(bin, own);
    bin *to = in_shared ? own : counts;
    if (in_shared) {
        for (int r = (int)threadIdx.x; r < 2 * h.bins; r += (int)blockDim.x) own[r] = 0;
        __syncthreads();
    }
    const int64_t row = (int64_t)blockIdx.x * v.ld;
    KI_COLUMNS(j, v.n) {
        const int kind = v.pair[row + j];
        if (kind == KI_VIEW_NONE) continue;
        int node = 0;
        double past = 0;
        place(h.axis(v.s[row + j]), h.bins, &node, &past);
        bin *at = to + (ki_is_pos(kind) ? 0 : h.bins) + node;
        bin_add(at, 1 - past);
        bin_add(at + 1, past);
    }
    if (!in_shared) return;
    __syncthreads();
    for (int r = (int)threadIdx.x; r < 2 * h.bins; r += (int)blockDim.x) {
        if (own[r]) atomicAdd(&counts[r], own[r]);
    }
}

/* One block. below: H+_r, what a negative at r costs; above: the negatives at r or above, what a positive
 * costs. The value goes into a tally behind those of the rows. */
__global__ void histogram_sum(ki_cuda_view v, int bins, const bin *counts, double *slopes) {
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
        below[r] = sum += pos * bin_get(counts[r]);
        value += neg * bin_get(counts[bins + r]) * sum;
    }
    sum = 0;
    for (int r = bins - 1; r >= 0; r--) above[r] = sum += neg * bin_get(counts[bins + r]);
    /* Each pair's share of its histogram is in the slope from here on. */
    for (int r = 0; r < bins; r++) above[r] *= pos, below[r] *= neg;
    v.tally[v.m] = {0, 0, value, {0, 0}};
}

struct histogram_slopes {
    histogram h;
    const double *slopes;

    __device__ void operator()(const ki_cuda_view &v, const ki_row &row, ki_cuda_tally *t) const {
        (void)v, (void)t;
        const double per_step = 0.5 * (double)(h.bins - 1);
        KI_COLUMNS(j, row.n) {
            int node = 0;
            double past = 0, g = 0;
            if (row.pair[j] != KI_VIEW_NONE && place(h.axis(row.s[j]), h.bins, &node, &past)) {
                const double *by = slopes + (ki_is_pos(row.pair[j]) ? 0 : h.bins) + node;
                g = per_step * (by[1] - by[0]);
            }
            row.g[j] = (float)g;
        }
    }
};

struct fastap {
    enum { MOST_NODES = 257 };
    int bins;

    __device__ double axis(float d) const { return (double)d / 4 * (double)bins; }
    __device__ void operator()(const ki_cuda_view &v, const ki_row &row, ki_cuda_tally *t) const {
        KI_SHARED_ARRAY(bin, counts, 2 * MOST_NODES);
        KI_SHARED_ARRAY(double, by, 2 * MOST_NODES); /* dAP/dh of positives, negatives */
        KI_SHARED_ARRAY(double, result, 1);
        (void)v;
        const int n_nodes = bins + 1;
        if (row.n_pos == 0) return row.clear();
        for (int r = (int)threadIdx.x; r < 2 * MOST_NODES; r += (int)blockDim.x) counts[r] = 0;
        __syncthreads();
        KI_COLUMNS(j, row.n) {
            if (row.pair[j] == KI_VIEW_NONE) continue;
            int node = 0;
            double past = 0;
            place(axis(row.s[j]), n_nodes, &node, &past);
            bin *at = counts + (ki_is_pos(row.pair[j]) ? 0 : MOST_NODES) + node;
            bin_add(at, 1 - past);
            bin_add(at + 1, past);
        }
        __syncthreads();
        if (ki_is_first()) *result = precision(counts, by, n_nodes, 1 / (double)row.n_pos);
        __syncthreads();
        const double per_node = -(double)bins / 4;
        KI_COLUMNS(j, row.n) {
            int node = 0;
            double past = 0, g = 0;
            if (row.pair[j] != KI_VIEW_NONE && place(axis(row.s[j]), n_nodes, &node, &past)) {
                const double *mine = by + (ki_is_pos(row.pair[j]) ? 0 : MOST_NODES) + node;
                g = per_node * (mine[1] - mine[0]);
            }
            row.g[j] = (float)g;
        }
        t->pos = 1 - *result;
    }
    /* The average precision, and its derivative by every node, in two walks over the nodes. */
    __device__ double precision(const bin *counts, double *by, int n_nodes, double inverse) const {
        double sum = 0, cum_pos = 0, cum = 0;
        double *by_pos = by, *by_neg = by + MOST_NODES;
        for (int l = 0; l < n_nodes; l++) {
            const double pos = bin_get(counts[l]), neg = bin_get(counts[MOST_NODES + l]);
            cum_pos += pos;
            cum += pos + neg;
            /* by_pos: H+/H, and by_neg: h+ / H^2 of this node, for the walk back. */
            by_pos[l] = cum > 0 ? cum_pos / cum : 0;
            by_neg[l] = cum > 0 ? pos / (cum * cum) : 0;
            sum += inverse * pos * by_pos[l];
        }
        double later_pos = 0, later_neg = 0;
        for (int l = n_nodes - 1; l >= 0; l--) {
            const double pos = bin_get(counts[l]), neg = bin_get(counts[MOST_NODES + l]);
            later_pos += by_neg[l] * (cum - cum_pos);
            later_neg += by_neg[l] * cum_pos;
            by_pos[l] = inverse * (by_pos[l] + later_pos);
            by_neg[l] = -inverse * later_neg;
            cum_pos -= pos;
            cum -= pos + neg;
        }
        return sum;
    }
};

} // namespace

/* alpha, margin, temperature, lambda */
KI_CUDA_LOSS(ranked_list) {
    const double *o = args->option;
    const ranked_list loss = {o[0], o[1], o[2], o[3]};
    return ki_loss_launch(view, loss, stream);
}

/* bins */
KI_CUDA_LOSS(histogram) {
    const histogram h = {(int)args->option[0]};
    const size_t shared_bytes = 2 * (size_t)h.bins * sizeof(bin);
    const bool in_shared = shared_bytes <= 32768;
    bin *counts = (bin *)args->scratch;
    double *slopes = (double *)(void *)(counts + 2 * h.bins);
    KI_LAUNCH_TRY(histogram_clear, (unsigned)(2 * h.bins + 255) / 256, 256, 0, stream, counts, 2 * h.bins);
    KI_LAUNCH_TRY(histogram_count, (unsigned)view->m, view->threads, in_shared ? shared_bytes : 0, stream,
                  *view, h, counts, in_shared);
    KI_LAUNCH_TRY(histogram_sum, 1, 128, 0, stream, *view, h.bins, counts, slopes);
    const histogram_slopes loss = {h, slopes};
    return ki_loss_launch(view, loss, stream);
}

/* bins */
KI_CUDA_LOSS(fastap) {
    const fastap loss = {(int)args->option[0]};
    return ki_loss_launch(view, loss, stream);
}
