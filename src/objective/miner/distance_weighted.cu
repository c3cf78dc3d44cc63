/* Distance-weighted sampling on the device (distance_weighted.c has the chances). */
#include "objective/miner/distance_weighted.h"

#include "base/rng.h"
#include "objective/cuda/miner.cuh"

namespace {

/* ln of the chance at squared distance d2, up to a constant. */
__device__ double ln_chance(double d2, double dim, double cutoff) {
    const double d = sqrt(d2) > cutoff ? sqrt(d2) : cutoff;
    const double rest = 1 - 0.25 * d * d;
    return (2 - dim) * log(d) - 0.5 * (dim - 3) * log(rest > 1e-8 ? rest : 1e-8);
}

/* The k-th number in [0, 1) of the stream of (seed, step, row). */
__device__ double draw(const ki_cuda_view &v, int row, int k) {
    const uint32_t key[2] = {(uint32_t)v.seed, (uint32_t)(v.seed >> 32)};
    const uint32_t counter[4] = {(uint32_t)(k / 2), KI_RNG_MINER, (uint32_t)*v.step, (uint32_t)row};
    uint32_t word[4];
    ki_philox(counter, key, word);
    const uint32_t a = k % 2 ? word[2] : word[0], b = k % 2 ? word[3] : word[1];
    const uint64_t high = a >> 5, low = b >> 6;
    return (double)(high << 26 | low) * (1.0 / 9007199254740992.0);
}

/* Sums of chances up to each column into g; returns the sum of all. scan: shared memory of blockDim. */
__device__ double cumulate(const ki_cuda_row &row, double most, double *scan) {
    const bool is_uniform = !(most > -INFINITY);
    double before = 0;
    for (int from = 0; from < row.n; from += (int)blockDim.x) {
        const int t = (int)threadIdx.x, j = from + t;
        const bool is_in = j < row.n && row.pair[j] == KI_PAIR_NEGATIVE;
        double sum = !is_in ? 0 : is_uniform ? 1 : exp((double)row.g[j] - most);
        for (int step = 1; step < (int)blockDim.x; step *= 2) {
            scan[t] = sum;
            __syncthreads();
            if (t >= step) sum += scan[t - step];
            __syncthreads();
        }
        if (j < row.n) row.g[j] = (float)(before + sum);
        scan[t] = sum;
        __syncthreads();
        before += scan[blockDim.x - 1];
        __syncthreads();
    }
    return before;
}

struct distance_weighted {
    double cutoff, nonzero_loss_cutoff;

    __device__ bool operator()(const ki_cuda_view &v, const ki_cuda_row &row) const {
        KI_SHARED_ARRAY(double, scan, KI_MOST_BLOCK_THREADS);
        KI_SHARED_ARRAY(int, column, KI_MOST_BLOCK_THREADS);
        KI_SHARED_ARRAY(int, ranks, 32);
        const ki_cuda_list list = {column, ranks};
        const double limit = nonzero_loss_cutoff * nonzero_loss_cutoff;
        double most = -INFINITY;
        KI_COLUMNS(j, row.n) {
            if (row.pair[j] != KI_PAIR_NEGATIVE) continue;
            const double d2 = (double)ki_view_sqdist(v, row.i, j, row.s[j]);
            const double ln = d2 < limit ? ln_chance(d2, (double)v.dim, cutoff) : -INFINITY;
            row.g[j] = (float)ln;
            most = ln > most ? ln : most;
        }
        most = row.max(most);
        const double sum = cumulate(row, most, scan);
        int32_t *pick = v.pick + (int64_t)row.i * v.ld;
        int n_before = 0;
        for (int from = 0; from < row.n; from += (int)blockDim.x) {
            const int n_listed = list.positives(row, from);
            if ((int)threadIdx.x < n_listed) {
                const float at = (float)(draw(v, row.i, n_before + (int)threadIdx.x) * sum);
                int low = 0, high = row.n - 1; /* the first column whose sum is above `at` */
                while (low < high) {
                    const int middle = (low + high) / 2;
                    if (row.g[middle] > at)
                        high = middle;
                    else
                        low = middle + 1;
                }
                while (low > 0 && row.pair[low] != KI_PAIR_NEGATIVE) low--; /* rounding at the very end */
                pick[list.column[threadIdx.x]] = row.pair[low] == KI_PAIR_NEGATIVE ? low : -1;
            }
            n_before += n_listed;
            __syncthreads();
        }
        /* Only the drawn negatives stay, and positives only if there was a negative to draw. */
        KI_COLUMNS(j, row.n) {
            if (row.pair[j] == KI_PAIR_NEGATIVE || row.n_neg == 0) row.pair[j] = KI_PAIR_NONE;
        }
        __syncthreads();
        KI_COLUMNS(j, row.n) {
            if (row.pair[j] == KI_PAIR_POSITIVE && pick[j] >= 0) row.pair[pick[j]] = KI_PAIR_NEGATIVE;
        }
        __syncthreads();
        return true;
    }
};

cudaError_t mine(const void *settings, const ki_cuda_view *view, cudaStream_t stream) {
    const ki_distance_weighted_settings *o = static_cast<const ki_distance_weighted_settings *>(settings);
    const distance_weighted miner = {o->cutoff, o->nonzero_loss_cutoff};
    return ki_mine_launch(view, miner, stream);
}

void set_rule(const void *settings, ki_cuda_view *view) {
    (void)settings;
    view->rule = KI_TRIPLETS_PICKED;
}

} // namespace

const ki_cuda_miner ki_cuda_miner_distance_weighted = {
    .mine = mine, .set_rule = set_rule, .reads_norms = true};
