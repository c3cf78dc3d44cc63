/* Pair margins on the device (pair_margin.c says what is kept). */
#include "objective/miner/pair_margin.h"

#include "objective/cuda/miner.cuh"

namespace {

struct pair_margin {
    double pos, neg;

    __device__ bool operator()(const ki_cuda_view &v, const ki_cuda_row &row) const {
        KI_COLUMNS(j, row.n) {
            if (row.pair[j] == KI_PAIR_NONE) continue;
            const double d = (double)ki_view_sqdist(v, row.i, j, row.s[j]);
            if (row.pair[j] == KI_PAIR_POSITIVE ? !(d > pos * pos) : !(d < neg * neg))
                row.pair[j] = KI_PAIR_NONE;
        }
        return true;
    }
};

cudaError_t mine(const void *settings, const ki_cuda_view *view, cudaStream_t stream) {
    const ki_pair_margin_settings *o = static_cast<const ki_pair_margin_settings *>(settings);
    const pair_margin miner = {o->pos_margin, o->neg_margin};
    return ki_mine_launch(view, miner, stream);
}

} // namespace

const ki_cuda_miner ki_cuda_miner_pair_margin = {.mine = mine, .reads_norms = true};
