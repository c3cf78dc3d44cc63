/* Batch-hard mining on the device (hard.c says what is kept). */
#include "objective/cuda/miner.cuh"

namespace {

struct hard {
    __device__ bool operator()(const ki_cuda_view &v, const ki_cuda_row &row) const {
        float farthest = -1, nearest = -FLT_MAX; /* nearest: with the opposite sign */
        KI_COLUMNS(j, row.n) {
            const float d = ki_view_sqdist(v, row.i, j, row.s[j]);
            if (row.pair[j] == KI_PAIR_POSITIVE && d > farthest) farthest = d;
            if (row.pair[j] == KI_PAIR_NEGATIVE && -d > nearest) nearest = -d;
        }
        row.maxima(farthest, nearest);
        /* The first of equals. */
        int pos = -INT32_MAX, neg = -INT32_MAX; /* with the opposite sign, too */
        KI_COLUMNS(j, row.n) {
            const float d = ki_view_sqdist(v, row.i, j, row.s[j]);
            if (row.pair[j] == KI_PAIR_POSITIVE && d == farthest && -j > pos) pos = -j;
            if (row.pair[j] == KI_PAIR_NEGATIVE && d == -nearest && -j > neg) neg = -j;
        }
        row.maxima(pos, neg);
        pos = -pos, neg = -neg;
        const bool has_both = pos < row.n && neg < row.n;
        KI_COLUMNS(j, row.n) {
            row.pair[j] = (uint8_t)(has_both && j == pos   ? KI_PAIR_POSITIVE
                                    : has_both && j == neg ? KI_PAIR_NEGATIVE
                                                           : KI_PAIR_NONE);
        }
        return true;
    }
};

cudaError_t mine(const void *settings, const ki_cuda_view *view, cudaStream_t stream) {
    (void)settings;
    const hard miner = {};
    return ki_mine_launch(view, miner, stream);
}

} // namespace

const ki_cuda_miner ki_cuda_miner_hard = {.mine = mine, .reads_norms = true};
