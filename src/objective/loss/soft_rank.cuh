/* What losses on ranks share on the device (soft_rank.h has the formula). The whole block calls these functions. */
#ifndef KI_OBJECTIVE_SOFT_RANK_CUH
#define KI_OBJECTIVE_SOFT_RANK_CUH

#include "objective/cuda/loss.cuh"

/* Each file has its own copy, because the kernels made from it belong to the file, too. */
namespace {

struct ki_cuda_soft_rank {
    double pos, neg;
};

/* e = exp(-|z|) of column j against the positive at column i; returns whether the column counts. */
__device__ bool ki_soft_rank_exp(const ki_cuda_row &row, int i, int j, float inverse_temperature, float *z,
                                 float *e) {
    if (row.pair[j] == KI_PAIR_NONE || j == i) return false;
    *z = (row.s[j] - row.s[i]) * inverse_temperature;
    *e = expf(*z < 0 ? *z : -*z);
    return true;
}

__device__ ki_cuda_soft_rank ki_soft_rank_of(const ki_cuda_row &row, int i, float inverse_temperature) {
    ki_cuda_soft_rank rank = {0, 0};
    KI_COLUMNS(j, row.n) {
        float z = 0, e = 0;
        if (!ki_soft_rank_exp(row, i, j, inverse_temperature, &z, &e)) continue;
        (ki_is_pos(row.pair[j]) ? rank.pos : rank.neg) += (double)((z < 0 ? e : 1) / (1 + e));
    }
    row.sums(rank.pos, rank.neg);
    rank.pos += 1;
    return rank;
}

/* g += the derivative by s, from those by the two counts. */
__device__ void ki_soft_rank_backward(const ki_cuda_row &row, int i, float inverse_temperature,
                                      ki_cuda_soft_rank by) {
    const float pos = inverse_temperature * (float)by.pos, neg = inverse_temperature * (float)by.neg;
    double sum = 0;
    KI_COLUMNS(j, row.n) {
        float z = 0, e = 0;
        if (!ki_soft_rank_exp(row, i, j, inverse_temperature, &z, &e)) continue;
        const float g = (ki_is_pos(row.pair[j]) ? pos : neg) * e / ((1 + e) * (1 + e));
        row.g[j] += g;
        sum += (double)g;
    }
    sum = row.sum(sum);
    if (i % (int)blockDim.x == (int)threadIdx.x) row.g[i] -= (float)sum; /* the thread that has the column */
}

} // namespace

#endif
