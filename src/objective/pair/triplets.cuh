/* Triplets on the device, never listed: which negatives go with a positive. */
#ifndef KI_OBJECTIVE_TRIPLETS_CUH
#define KI_OBJECTIVE_TRIPLETS_CUH

#include "objective/cuda/row.cuh"

/* Whether negative column j goes with positive column p of row i, by the miner's rule. */
struct ki_cuda_rule {
    const ki_cuda_view &v;
    int i, p;
    float low, high;

    __device__ ki_cuda_rule(const ki_cuda_view &view, int row, int positive, float s)
        : v(view), i(row), p(positive) {
        const float key = v.rule == KI_TRIPLETS_WINDOW ? ki_view_key(v, i, p, s) : 0;
        low = key + v.low;
        high = key + v.high;
    }
    __device__ bool operator()(int j, float s) const {
        if (v.rule == KI_TRIPLETS_ALL) return true;
        if (v.rule == KI_TRIPLETS_PICKED) return v.pick[(int64_t)i * v.ld + p] == j;
        const float key = ki_view_key(v, i, j, s);
        return key > low && key < high;
    }
};

#endif
