/* Valid-triplet hard mining on the device (vthm.c says what is kept). */
#include "objective/miner/vthm.h"

#include "objective/cuda/miner.cuh"

namespace {

struct vthm {
    float margin;

    __device__ bool operator()(const ki_cuda_view &v, const ki_cuda_row &row) const {
        (void)v;
        const bool is_empty = row.n_pos == 0 || row.n_neg == 0;
        float least = 0, most = 0;
        row.hardest(&least, &most);
        KI_COLUMNS(j, row.n) {
            const int kind = row.pair[j];
            const float s = row.s[j];
            const bool keep = kind == KI_PAIR_NEGATIVE ? s > least - margin && s < FLT_MAX
                                                       : s > -FLT_MAX && s < most + margin;
            if (is_empty || !keep) row.pair[j] = KI_PAIR_NONE;
        }
        return true;
    }
};

cudaError_t mine(const void *settings, const ki_cuda_view *view, cudaStream_t stream) {
    const ki_vthm_settings *o = static_cast<const ki_vthm_settings *>(settings);
    const vthm miner = {(float)o->margin};
    return ki_mine_launch(view, miner, stream);
}

} // namespace

const ki_cuda_miner ki_cuda_miner_vthm = {.mine = mine};
