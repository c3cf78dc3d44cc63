/* Semi-hard triplets on the device (semihard.c says what is kept). */
#include "objective/miner/semihard.h"

#include "objective/cuda/miner.cuh"

namespace {

struct semihard {
    __device__ bool operator()(const ki_cuda_view &v, const ki_cuda_row &row) const {
        /* Positives by the list, negatives by the threads; g marks the entries that take part in a triplet. */
        KI_SHARED_ARRAY(float, key, KI_MOST_BLOCK_THREADS);
        KI_SHARED_ARRAY(int, is_used, KI_MOST_BLOCK_THREADS);
        KI_SHARED_ARRAY(int, column, KI_MOST_BLOCK_THREADS);
        KI_SHARED_ARRAY(int, ranks, 32);
        const ki_cuda_list list = {column, ranks};
        row.clear();
        for (int from = 0; from < row.n; from += (int)blockDim.x) {
            const int n_listed = list.positives(row, from);
            if (n_listed == 0) continue;
            if ((int)threadIdx.x < n_listed) {
                const int p = list.column[threadIdx.x];
                key[threadIdx.x] = ki_view_sqdist(v, row.i, p, row.s[p]);
                is_used[threadIdx.x] = 0;
            }
            __syncthreads();
            KI_COLUMNS(j, row.n) {
                if (row.pair[j] != KI_PAIR_NEGATIVE) continue;
                const float mine = ki_view_sqdist(v, row.i, j, row.s[j]);
                for (int k = 0; k < n_listed; k++) {
                    if (!(mine > key[k] + v.low && mine < key[k] + v.high)) continue;
                    row.g[j] = 1;
                    atomicMax(&is_used[k], 1);
                }
            }
            __syncthreads();
            if ((int)threadIdx.x < n_listed) row.g[list.column[threadIdx.x]] = (float)is_used[threadIdx.x];
            __syncthreads();
        }
        KI_COLUMNS(j, row.n) if (row.g[j] == 0) row.pair[j] = KI_PAIR_NONE;
        return true;
    }
};

cudaError_t mine(const void *settings, const ki_cuda_view *view, cudaStream_t stream) {
    (void)settings;
    const semihard miner = {};
    return ki_mine_launch(view, miner, stream);
}

void set_rule(const void *settings, ki_cuda_view *view) {
    view->rule = KI_TRIPLETS_WINDOW;
    view->high = (float)static_cast<const ki_semihard_settings *>(settings)->margin;
}

} // namespace

const ki_cuda_miner ki_cuda_miner_semihard = {.mine = mine, .set_rule = set_rule, .reads_norms = true};
