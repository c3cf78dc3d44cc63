/* Triplet loss on the device (triplet.c has the formulas). */
#include "objective/loss/triplet.h"

#include "objective/cuda/loss.cuh"
#include "objective/pair/triplets.cuh"

namespace {

struct triplet {
    float margin;
    bool is_cosine, counts_active;

    /* Positives by the list, negatives by the threads. Counts are whole numbers, so g, which holds them until
     * the end, does not depend on the order in which they come. */
    __device__ void operator()(const ki_cuda_view &v, const ki_cuda_row &row, ki_cuda_tally *t) const {
        KI_SHARED_ARRAY(int, column, KI_MOST_BLOCK_THREADS);
        KI_SHARED_ARRAY(int, active, KI_MOST_BLOCK_THREADS);
        KI_SHARED_ARRAY(int, ranks, 32);
        const ki_cuda_list list = {column, ranks};
        const float sign = is_cosine ? -1 : 1;
        double sum = 0, n = 0;
        row.clear();
        if (row.n_pos == 0 || row.n_neg == 0) return;
        for (int from = 0; from < row.n; from += (int)blockDim.x) {
            active[threadIdx.x] = 0;
            const int n_listed = list.positives(row, from);
            if (n_listed == 0) continue;
            KI_COLUMNS(j, row.n) {
                if (!ki_is_neg(row.pair[j])) continue;
                int mine = 0;
                for (int k = 0; k < n_listed; k++) {
                    const int p = column[k];
                    if (!ki_cuda_rule(v, row.i, p, row.s[p])(j, row.s[j])) continue;
                    const float term = sign * row.s[p] + margin - sign * row.s[j];
                    n += !counts_active || term > 0;
                    if (!(term > 0)) continue;
                    sum += (double)term;
                    mine++;
                    atomicAdd(&active[k], 1);
                }
                row.g[j] -= sign * (float)mine;
            }
            __syncthreads();
            if ((int)threadIdx.x < n_listed) row.g[column[threadIdx.x]] = sign * (float)active[threadIdx.x];
            __syncthreads();
        }
        row.sums(sum, n);
        t->pos = sum;
        t->count[0] = (int64_t)n;
    }
};

cudaError_t rows(const ki_cuda_loss_in *in, const ki_cuda_view *view, cudaStream_t stream) {
    const ki_triplet_settings *o = static_cast<const ki_triplet_settings *>(in->settings);
    const triplet loss = {(float)o->margin, o->distance == KI_DISTANCE_COSINE,
                          o->reduction == KI_REDUCE_NONZERO};
    return ki_loss_launch(view, loss, stream);
}

void weights(const void *settings, const ki_cuda_view *view, ki_cuda_weight weight[3]) {
    const ki_triplet_settings *o = static_cast<const ki_triplet_settings *>(settings);
    (void)view;
    /* The kernel counts the triplets that the reduction divides by. */
    weight[KI_PAIR_POSITIVE] =
        weight[KI_PAIR_NEGATIVE] = {o->reduction == KI_REDUCE_SUM ? KI_BY_ONE : KI_BY_COUNT_0, 1};
}

} // namespace

const ki_cuda_loss ki_cuda_loss_triplet = {.rows = rows, .weights = weights};
