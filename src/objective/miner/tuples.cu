/* N-pair tuples on the device (tuples.c says what is kept). */
#include "objective/miner/tuples.h"

#include "base/rng.h"
#include "objective/cuda/miner.cuh"

namespace {

/* The lot of a column: the word at its place in the row's stream. */
__device__ float lot_of(const ki_cuda_view &v, int row, int j) {
    const uint32_t key[2] = {(uint32_t)v.seed, (uint32_t)(v.seed >> 32)};
    const uint32_t counter[4] = {(uint32_t)j / 4, KI_RNG_MINER, (uint32_t)*v.step, (uint32_t)row};
    uint32_t word[4];
    ki_philox(counter, key, word);
    return (float)(word[j % 4] >> (32 - KI_TUPLES_BITS));
}

struct tuples {
    bool one_positive;

    __device__ bool operator()(const ki_cuda_view &v, const ki_cuda_row &row) const {
        KI_COLUMNS(j, row.n) {
            const bool is_drawn =
                row.pair[j] == KI_PAIR_NEGATIVE || (row.pair[j] == KI_PAIR_POSITIVE && one_positive);
            row.g[j] = is_drawn ? lot_of(v, row.i, j) : -1;
        }
        __syncthreads();
        /* A column of the same class with a higher lot, or with the same lot and a lower number, comes first.
         * Lots and labels are only read here, and each pair is written only by the column's own thread. */
        KI_COLUMNS(j, row.n) {
            const float mine = row.g[j];
            if (mine < 0) continue;
            const int32_t label = ki_view_label(v, j);
            bool stays = true;
            for (int other = 0; other < row.n && stays; other++) {
                if (ki_view_label(v, other) != label) continue;
                stays = !(row.g[other] > mine || (row.g[other] == mine && other < j));
            }
            if (!stays) row.pair[j] = KI_PAIR_NONE;
        }
        __syncthreads();
        return true;
    }
};

cudaError_t mine(const void *settings, const ki_cuda_view *view, cudaStream_t stream) {
    const ki_tuples_settings *o = static_cast<const ki_tuples_settings *>(settings);
    const tuples miner = {o->positives == KI_TUPLES_ONE};
    return ki_mine_launch(view, miner, stream);
}

} // namespace

const ki_cuda_miner ki_cuda_miner_tuples = {.mine = mine};
