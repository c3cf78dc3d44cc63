/* FastAP on the device (fastap.c has the formulas). */
#include "objective/loss/fastap.h"

#include "objective/cuda/loss.cuh"
#include "objective/loss/bins.cuh"

namespace {

struct fastap {
    enum { MOST_NODES = KI_FASTAP_MOST_BINS + 1 };
    int bins;

    __device__ double axis(float d) const { return (double)d / 4 * (double)bins; }
    __device__ void operator()(const ki_cuda_view &v, const ki_cuda_row &row, ki_cuda_tally *t) const {
        KI_SHARED_ARRAY(ki_cuda_bin, counts, 2 * MOST_NODES);
        KI_SHARED_ARRAY(double, by, 2 * MOST_NODES); /* dAP/dh of positives, negatives */
        KI_SHARED_ARRAY(double, result, 1);
        (void)v;
        const int n_nodes = bins + 1;
        if (row.n_pos == 0) return row.clear();
        for (int r = (int)threadIdx.x; r < 2 * MOST_NODES; r += (int)blockDim.x) counts[r] = 0;
        __syncthreads();
        KI_COLUMNS(j, row.n) {
            if (row.pair[j] == KI_PAIR_NONE) continue;
            int node = 0;
            double past = 0;
            ki_bin_place(axis(row.s[j]), n_nodes, &node, &past);
            ki_cuda_bin *at = counts + (ki_is_pos(row.pair[j]) ? 0 : MOST_NODES) + node;
            ki_bin_add(at, 1 - past);
            ki_bin_add(at + 1, past);
        }
        __syncthreads();
        if (ki_is_first()) *result = precision(counts, by, n_nodes, 1 / (double)row.n_pos);
        __syncthreads();
        const double per_node = -(double)bins / 4;
        KI_COLUMNS(j, row.n) {
            int node = 0;
            double past = 0, g = 0;
            if (row.pair[j] != KI_PAIR_NONE && ki_bin_place(axis(row.s[j]), n_nodes, &node, &past)) {
                const double *mine = by + (ki_is_pos(row.pair[j]) ? 0 : MOST_NODES) + node;
                g = per_node * (mine[1] - mine[0]);
            }
            row.g[j] = (float)g;
        }
        t->pos = 1 - *result;
    }
    /* The average precision, and its derivative by every node, in two passes over the nodes. */
    __device__ double precision(const ki_cuda_bin *counts, double *by, int n_nodes, double inverse) const {
        double sum = 0, cum_pos = 0, cum = 0;
        double *by_pos = by, *by_neg = by + MOST_NODES;
        for (int l = 0; l < n_nodes; l++) {
            const double pos = ki_bin_get(counts[l]), neg = ki_bin_get(counts[MOST_NODES + l]);
            cum_pos += pos;
            cum += pos + neg;
            /* by_pos: H+/H, and by_neg: h+ / H^2 of this node, for the second pass. */
            by_pos[l] = cum > 0 ? cum_pos / cum : 0;
            by_neg[l] = cum > 0 ? pos / (cum * cum) : 0;
            sum += inverse * pos * by_pos[l];
        }
        double later_pos = 0, later_neg = 0;
        for (int l = n_nodes - 1; l >= 0; l--) {
            const double pos = ki_bin_get(counts[l]), neg = ki_bin_get(counts[MOST_NODES + l]);
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

cudaError_t rows(const ki_cuda_loss_in *in, const ki_cuda_view *view, cudaStream_t stream) {
    const ki_fastap_settings *o = static_cast<const ki_fastap_settings *>(in->settings);
    const fastap loss = {(int)o->bins};
    return ki_loss_launch(view, loss, stream);
}

} // namespace

const ki_cuda_loss ki_cuda_loss_fastap = {.rows = rows, .by = KI_BY_ANCHORS};
