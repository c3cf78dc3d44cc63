/* Losses over triplets, never listed: triplet, angular. */
#include "objective/cuda/loss.cuh"

namespace {

/* Whether negative column j goes with positive column p of row i, by the miner's rule. */
struct rule {
    const ki_cuda_view &v;
    int i, p;
    float low, high;

    __device__ rule(const ki_cuda_view &view, int row, int positive, float s) : v(view), i(row), p(positive) {
        const float key = v.rule == KI_VIEW_WINDOW ? ki_view_key(v, i, p, s) : 0;
        low = key + v.low;
        high = key + v.high;
    }
    __device__ bool operator()(int j, float s) const {
        if (v.rule == KI_VIEW_ALL) return true;
        if (v.rule == KI_VIEW_PICKED) return v.pick[(int64_t)i * v.ld + p] == j;
        const float key = ki_view_key(v, i, j, s);
        return key > low && key < high;
    }
};

struct triplet {
    float margin;
    bool is_cosine, counts_active;

    /* Positives by the list, negatives by the threads. Counts are whole numbers, so that g, which holds them
     * until the end, is the same in whatever order they come. */
    __device__ void operator()(const ki_cuda_view &v, const ki_row &row, ki_cuda_tally *t) const {
        KI_SHARED_ARRAY(int, column, KI_MOST_THREADS);
        KI_SHARED_ARRAY(int, active, KI_MOST_THREADS);
        KI_SHARED_ARRAY(int, ranks, 32);
        const ki_list list = {column, ranks};
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
                    if (!rule(v, row.i, p, row.s[p])(j, row.s[j])) continue;
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

struct angular {
    float square; /* tan^2 */

    /* The exponent of negative j in the term of row i and its positive p. */
    __device__ float exponent(const ki_cuda_view &v, int i, int p, int j) const {
        const float *s_i = v.s + (int64_t)i * v.ld, *s_p = v.s + (int64_t)p * v.ld;
        return 4 * square * (s_i[j] + s_p[j]) - 2 * (1 + square) * s_i[p];
    }
    /* The term of row i and its positive p < m; adds 4 tan^2 q_n to g at the negatives of i. */
    __device__ double term(const ki_cuda_view &v, const ki_row &row, int i, int p, double *ret_sum_q) const {
        const float *s = v.s + (int64_t)i * v.ld;
        const uint8_t *pair = v.pair + (int64_t)i * v.ld;
        const rule is_in(v, i, p, s[p]);
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
    __device__ void operator()(const ki_cuda_view &v, const ki_row &row, ki_cuda_tally *t) const {
        KI_SHARED_ARRAY(int, column, KI_MOST_THREADS);
        KI_SHARED_ARRAY(int, ranks, 32);
        const ki_list list = {column, ranks};
        double value = 0, sum_q = 0;
        int64_t n = 0;
        row.clear();
        __syncthreads();
        /* As an anchor. Positives from the memory are passed over: their row of S is not known. */
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
        /* As a positive: what the anchors that hold this row owe to it. Their negatives are of other classes
         * than this row, so that no positive's entry is touched. */
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

} // namespace

/* margin, distance (2: cosine), reduction (2: nonzero) */
KI_CUDA_LOSS(triplet) {
    const double *o = args->option;
    const triplet loss = {(float)o[0], o[1] == 2, o[2] == 2};
    return ki_loss_launch(view, loss, stream);
}

/* angle in degrees */
KI_CUDA_LOSS(angular) {
    const double tangent = tan(args->option[0] * 3.14159265358979323846 / 180);
    const angular loss = {(float)(tangent * tangent)};
    return ki_loss_launch(view, loss, stream);
}
