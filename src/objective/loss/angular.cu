/* Angular loss on the device (angular.c has the formulas). */
#include "objective/loss/angular.h"

#include "objective/cuda/loss.cuh"
#include "objective/pair/triplets.cuh"

namespace {

struct angular {
    float square; /* tan^2 */

    /* The exponent of negative j in the term of row i and its positive p. */
    __device__ float exponent(const ki_cuda_view &v, int i, int p, int j) const {
        const float *s_i = v.s + (int64_t)i * v.ld, *s_p = v.s + (int64_t)p * v.ld;
        return 4 * square * (s_i[j] + s_p[j]) - 2 * (1 + square) * s_i[p];
    }
    /* The term of row i and its positive p < m; adds 4 tan^2 q_n to g at the negatives of i. */
    __device__ double term(const ki_cuda_view &v, const ki_cuda_row &row, int i, int p,
                           double *ret_sum_q) const {
        const float *s = v.s + (int64_t)i * v.ld;
        const uint8_t *pair = v.pair + (int64_t)i * v.ld;
        const ki_cuda_rule is_in(v, i, p, s[p]);
        float most = 0; /* the exponent of the 1 */
        KI_COLUMNS(j, row.n) {
            if (!ki_is_neg(pair[j]) || !is_in(j, s[j])) continue;
            const float z = exponent(v, i, p, j);
            most = z > most ? z : most;
        }
        most = row.max(most);
        double sum = 0;
        KI_COLUMNS(j, row.n) {
            if (ki_is_neg(pair[j]) && is_in(j, s[j])) sum += (double)expf(exponent(v, i, p, j) - most);
        }
        const double one = (double)expf(-most);
        sum = one + row.sum(sum);
        const float factor = (float)(4 * (double)square / sum);
        KI_COLUMNS(j, row.n) {
            if (ki_is_neg(pair[j]) && is_in(j, s[j])) row.g[j] += factor * expf(exponent(v, i, p, j) - most);
        }
        *ret_sum_q = 1 - one / sum;
        return (double)most + log(sum);
    }
    __device__ void operator()(const ki_cuda_view &v, const ki_cuda_row &row, ki_cuda_tally *t) const {
        KI_SHARED_ARRAY(int, column, KI_MOST_BLOCK_THREADS);
        KI_SHARED_ARRAY(int, ranks, 32);
        const ki_cuda_list list = {column, ranks};
        double value = 0, sum_q = 0;
        int64_t n = 0;
        row.clear();
        __syncthreads();
        /* As an anchor. Positives from the memory are skipped: their row of S is not known. */
        for (int from = 0; from < v.m; from += (int)blockDim.x) {
            const int j = from + (int)threadIdx.x;
            const int n_listed = list.fill(j < v.m && ki_is_pos(row.pair[j]), j);
            for (int k = 0; k < n_listed; k++) {
                const int p = column[k];
                value += term(v, row, row.i, p, &sum_q);
                if (ki_is_first()) row.g[p] -= (float)(2 * (1 + (double)square) * sum_q);
            }
            n += n_listed;
            __syncthreads();
        }
        /* As a positive: the gradient from the anchors that have this row as a positive. Their negatives are
         * of other classes than this row, so no entry of a positive is touched. */
        for (int from = 0; from < v.m; from += (int)blockDim.x) {
            const int i = from + (int)threadIdx.x;
            const int n_listed = list.fill(i < v.m && ki_is_pos(v.pair[(int64_t)i * v.ld + row.i]), i);
            for (int k = 0; k < n_listed; k++) term(v, row, column[k], row.i, &sum_q);
            __syncthreads();
        }
        t->pos = value;
        t->count[0] = n;
    }
};

cudaError_t rows(const ki_cuda_loss_in *in, const ki_cuda_view *view, cudaStream_t stream) {
    const ki_angular_settings *o = static_cast<const ki_angular_settings *>(in->settings);
    const double tangent = tan(o->angle * 3.14159265358979323846 / 180);
    const angular loss = {(float)(tangent * tangent)};
    return ki_loss_launch(view, loss, stream);
}

/* Entries that are not a pair in their own row have a gradient, too. */
void weights(const void *settings, const ki_cuda_view *view, ki_cuda_weight weight[3]) {
    (void)settings, (void)view;
    weight[KI_PAIR_NONE] = weight[KI_PAIR_POSITIVE] = weight[KI_PAIR_NEGATIVE] = {KI_BY_COUNT_0, 1};
}

} // namespace

const ki_cuda_loss ki_cuda_loss_angular = {.rows = rows, .weights = weights};
