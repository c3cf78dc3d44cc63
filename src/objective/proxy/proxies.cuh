/* What the proxy losses share on the device: cross entropy over one row of proxies. */
#ifndef KI_OBJECTIVE_PROXIES_CUH
#define KI_OBJECTIVE_PROXIES_CUH

#include "objective/cuda/loss.cuh"

/* Each file has its own copy, because the kernels made from it belong to the file, too. */
namespace {

/* -ln( e^(scale own) / (e^(scale own) + sum_j e^(scale s_j)) ) over the kept negatives j, where `own`
 * replaces the cosine of the own column and `slope` is its derivative by that cosine. */
__device__ __forceinline__ void ki_cuda_cross_entropy(const ki_cuda_view &v, const ki_cuda_row &row,
                                                      float own, float slope, float scale, ki_cuda_tally *t) {
    const int y = v.label[row.i];
    if (!ki_is_pos(row.pair[y])) return row.clear();
    const float other = row.most(KI_PAIR_NEGATIVE), most = own > other ? own : other;
    const float e_own = expf(scale * (own - most));
    double others = 0;
    KI_COLUMNS(j, row.n) {
        float e = 0;
        if (ki_is_neg(row.pair[j])) others += (double)(e = expf(scale * (row.s[j] - most)));
        row.g[j] = e;
    }
    others = row.sum(others);
    const double factor = (double)scale / ((double)e_own + others);
    /* e_own - (e_own + others), without the subtraction, so that an item with a small loss keeps its digits. */
    KI_COLUMNS(j, row.n) row.g[j] = j == y ? (float)(-factor * others) * slope : row.g[j] * (float)factor;
    t->pos = (double)(scale * (most - own)) + log1p(others + ((double)e_own - 1));
}

/* With a margin subtracted from the own cosine. */
struct ki_cuda_margin_softmax {
    float scale, margin;
    __device__ void operator()(const ki_cuda_view &v, const ki_cuda_row &row, ki_cuda_tally *t) const {
        ki_cuda_cross_entropy(v, row, row.s[v.label[row.i]] - margin, 1, scale, t);
    }
};

} // namespace

#endif
