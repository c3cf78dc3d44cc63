/* The pair view before the loss sees it: kinds by label, the miner's choice, counts, distances. One block
 * per row; every miner is the one of its name in miner/, which says what it does and where it is from.
 *
 * While a miner works s holds inner products and g is free for its use. */
#include "objective/cuda/row.cuh"

namespace {

enum { RNG_MINER = 5 }; /* KI_RNG_MINER */

__device__ void count(ki_row &row) {
    int pos = 0, neg = 0;
    KI_COLUMNS(j, row.n) {
        pos += row.pair[j] == KI_VIEW_POSITIVE;
        neg += row.pair[j] == KI_VIEW_NEGATIVE;
    }
    /* Both in one sum: counts are below 2^26. */
    const double both = row.sum((double)pos * 67108864.0 + (double)neg);
    row.n_pos = (int)(both / 67108864.0);
    row.n_neg = (int)(both - (double)row.n_pos * 67108864.0);
}

__device__ void kinds(const ki_cuda_view &v, ki_row &row) {
    const int live = ki_view_columns(v), mine = v.label[row.i];
    KI_COLUMNS(j, row.n) {
        const bool is_none = j >= live || (!v.n_centers && j == row.i);
        row.pair[j] = (uint8_t)(is_none                       ? KI_VIEW_NONE
                                : ki_view_label(v, j) == mine ? KI_VIEW_POSITIVE
                                                              : KI_VIEW_NEGATIVE);
    }
    count(row);
}

__device__ void vthm(const ki_row &row, float margin) {
    const bool is_empty = row.n_pos == 0 || row.n_neg == 0;
    float least = 0, most = 0;
    row.hardest(&least, &most);
    KI_COLUMNS(j, row.n) {
        const int kind = row.pair[j];
        const float s = row.s[j];
        const bool keep =
            kind == KI_VIEW_NEGATIVE ? s > least - margin && s < FLT_MAX : s > -FLT_MAX && s < most + margin;
        if (is_empty || !keep) row.pair[j] = KI_VIEW_NONE;
    }
}

__device__ void hard(const ki_cuda_view &v, const ki_row &row) {
    float farthest = -1, nearest = -FLT_MAX; /* nearest: with the sign turned */
    KI_COLUMNS(j, row.n) {
        const float d = ki_view_sqdist(v, row.i, j, row.s[j]);
        if (row.pair[j] == KI_VIEW_POSITIVE && d > farthest) farthest = d;
        if (row.pair[j] == KI_VIEW_NEGATIVE && -d > nearest) nearest = -d;
    }
    row.maxima(farthest, nearest);
    /* The first of equals. */
    int pos = -INT32_MAX, neg = -INT32_MAX; /* with the sign turned, too */
    KI_COLUMNS(j, row.n) {
        const float d = ki_view_sqdist(v, row.i, j, row.s[j]);
        if (row.pair[j] == KI_VIEW_POSITIVE && d == farthest && -j > pos) pos = -j;
        if (row.pair[j] == KI_VIEW_NEGATIVE && d == -nearest && -j > neg) neg = -j;
    }
    row.maxima(pos, neg);
    pos = -pos, neg = -neg;
    const bool has_both = pos < row.n && neg < row.n;
    KI_COLUMNS(j, row.n) {
        row.pair[j] = (uint8_t)(has_both && j == pos   ? KI_VIEW_POSITIVE
                                : has_both && j == neg ? KI_VIEW_NEGATIVE
                                                       : KI_VIEW_NONE);
    }
}

__device__ void pair_margin(const ki_cuda_view &v, const ki_row &row, double pos, double neg) {
    KI_COLUMNS(j, row.n) {
        if (row.pair[j] == KI_VIEW_NONE) continue;
        const double d = (double)ki_view_sqdist(v, row.i, j, row.s[j]);
        if (row.pair[j] == KI_VIEW_POSITIVE ? !(d > pos * pos) : !(d < neg * neg)) row.pair[j] = KI_VIEW_NONE;
    }
}

/* Positives by the list, negatives by the threads; g marks who takes part in a triplet. */
__device__ void semihard(const ki_cuda_view &v, const ki_row &row, const ki_list &list, float *key,
                         int *is_used) {
    row.clear();
    for (int from = 0; from < row.n; from += (int)blockDim.x) {
        const int n_listed = list.positives(row, from);
        if (n_listed == 0) continue;
        if ((int)threadIdx.x < n_listed) {
            const int p = list.column[threadIdx.x];
            key[threadIdx.x] = ki_view_sqdist(v, row.i, p, row.s[p]);
            is_used[threadIdx.x] = 0;
        }
        __syncthreads();
        KI_COLUMNS(j, row.n) {
            if (row.pair[j] != KI_VIEW_NEGATIVE) continue;
            const float mine = ki_view_sqdist(v, row.i, j, row.s[j]);
            for (int k = 0; k < n_listed; k++) {
                if (!(mine > key[k] + v.low && mine < key[k] + v.high)) continue;
                row.g[j] = 1;
                atomicMax(&is_used[k], 1);
            }
        }
        __syncthreads();
        if ((int)threadIdx.x < n_listed) row.g[list.column[threadIdx.x]] = (float)is_used[threadIdx.x];
        __syncthreads();
    }
    KI_COLUMNS(j, row.n) if (row.g[j] == 0) row.pair[j] = KI_VIEW_NONE;
}

/* ln of the chance at squared distance d2, up to a constant. */
__device__ double ln_chance(double d2, double dim, double cutoff) {
    const double d = sqrt(d2) > cutoff ? sqrt(d2) : cutoff;
    const double rest = 1 - 0.25 * d * d;
    return (2 - dim) * log(d) - 0.5 * (dim - 3) * log(rest > 1e-8 ? rest : 1e-8);
}

/* The k-th number in [0, 1) of the stream of (seed, step, row). */
__device__ double draw(const ki_cuda_view &v, int row, int k) {
    const uint32_t key[2] = {(uint32_t)v.seed, (uint32_t)(v.seed >> 32)};
    const uint32_t counter[4] = {(uint32_t)(k / 2), RNG_MINER, (uint32_t)*v.step, (uint32_t)row};
    uint32_t word[4];
    ki_philox(counter, key, word);
    const uint32_t a = k % 2 ? word[2] : word[0], b = k % 2 ? word[3] : word[1];
    const uint64_t high = a >> 5, low = b >> 6;
    return (double)(high << 26 | low) * (1.0 / 9007199254740992.0);
}

/* Sums of chances up to each column into g; returns the sum of all. scan: shared memory of blockDim. */
__device__ double cumulate(const ki_row &row, double most, double *scan) {
    const bool is_uniform = !(most > -INFINITY);
    double before = 0;
    for (int from = 0; from < row.n; from += (int)blockDim.x) {
        const int t = (int)threadIdx.x, j = from + t;
        const bool is_in = j < row.n && row.pair[j] == KI_VIEW_NEGATIVE;
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

__device__ void distance_weighted(const ki_cuda_view &v, const ki_row &row, const ki_list &list, double *scan,
                                  double cutoff, double nonzero_loss_cutoff) {
    const double limit = nonzero_loss_cutoff * nonzero_loss_cutoff;
    double most = -INFINITY;
    KI_COLUMNS(j, row.n) {
        if (row.pair[j] != KI_VIEW_NEGATIVE) continue;
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
            while (low > 0 && row.pair[low] != KI_VIEW_NEGATIVE) low--; /* rounding at the very end */
            pick[list.column[threadIdx.x]] = row.pair[low] == KI_VIEW_NEGATIVE ? low : -1;
        }
        n_before += n_listed;
        __syncthreads();
    }
    /* Only the negatives drawn stay, and positives only where there was one to draw. */
    KI_COLUMNS(j, row.n) {
        if (row.pair[j] == KI_VIEW_NEGATIVE || row.n_neg == 0) row.pair[j] = KI_VIEW_NONE;
    }
    __syncthreads();
    KI_COLUMNS(j, row.n) {
        if (row.pair[j] == KI_VIEW_POSITIVE && pick[j] >= 0) row.pair[pick[j]] = KI_VIEW_NEGATIVE;
    }
    __syncthreads();
}

/* Below this share of |x|^2 + |y|^2 the difference of inner products has lost too many digits. */
const float NEAR = 1.0f / 256;

/* By the whole warp; every lane gets it. */
__device__ float exact_sqdist(const float *a, const float *b, int dim) {
    double sum = 0;
    for (int k = (int)threadIdx.x & 31; k < dim; k += 32) {
        const double d = (double)a[k] - (double)b[k];
        sum += d * d;
    }
    return (float)ki_warp_sum(sum);
}

__device__ const float *column_of(const ki_cuda_view &v, int j) {
    if (v.n_centers) return v.w + (int64_t)j * v.dim;
    return j < v.m ? v.x + (int64_t)j * v.dim : v.w + (int64_t)(j - v.m) * v.dim;
}

__device__ void measure(const ki_cuda_view &v, const ki_row &row) {
    const float *x = v.x + (int64_t)row.i * v.dim;
    const int lane = (int)threadIdx.x & 31;
    for (int from = 0; from < row.n; from += (int)blockDim.x) {
        const int j = from + (int)threadIdx.x;
        float d = 0, size = 0;
        if (j < row.n && (v.n_centers || j != row.i)) {
            size = v.x_sq[row.i] + (v.n_centers ? v.w_sq[j] : j < v.m ? v.x_sq[j] : v.w_sq[j - v.m]);
            d = size - 2 * row.s[j];
            d = d > 0 ? d : 0;
        }
        const bool is_near = d < NEAR * size && row.pair[j] != KI_VIEW_NONE;
        for (unsigned near = __ballot_sync(0xffffffffu, is_near); near; near &= near - 1) {
            const int other = __ffs((int)near) - 1;
            const float exact = exact_sqdist(x, column_of(v, j - lane + other), v.dim);
            if (lane == other) d = exact;
        }
        if (j < row.n) row.s[j] = v.measure == KI_VIEW_EUCLIDEAN ? sqrtf(d + 1e-16f) : d;
    }
}

__global__ void mine(ki_cuda_view v, ki_cuda_miner miner) {
    KI_SHARED_ARRAY(double, room, KI_ROOM);
    KI_SHARED_ARRAY(double, scan, KI_MOST_THREADS);
    KI_SHARED_ARRAY(int, column, KI_MOST_THREADS);
    KI_SHARED_ARRAY(int, is_used, KI_MOST_THREADS);
    KI_SHARED_ARRAY(int, ranks, 32);
    const int64_t at = (int64_t)blockIdx.x * v.ld;
    ki_row row = {(int)blockIdx.x, v.n, v.s + at, v.pair + at, v.g + at, 0, 0, room};
    const ki_list list = {column, ranks};
    kinds(v, row);
    switch (miner.kind) {
    case KI_CUDA_MINE_ALL: break;
    case KI_CUDA_MINE_VTHM: vthm(row, (float)miner.option[0]); break;
    case KI_CUDA_MINE_SEMIHARD: semihard(v, row, list, (float *)scan, is_used); break;
    case KI_CUDA_MINE_HARD: hard(v, row); break;
    case KI_CUDA_MINE_DISTANCE_WEIGHTED:
        distance_weighted(v, row, list, scan, miner.option[0], miner.option[1]);
        break;
    case KI_CUDA_MINE_PAIR_MARGIN: pair_margin(v, row, miner.option[0], miner.option[1]); break;
    }
    if (miner.kind != KI_CUDA_MINE_ALL) count(row);
    if (v.measure != KI_VIEW_INNER) measure(v, row);
    if (ki_is_first()) {
        v.n_pos[row.i] = row.n_pos;
        v.n_neg[row.i] = row.n_neg;
    }
}

} // namespace

cudaError_t ki_cuda_mine(const ki_cuda_view *view, const ki_cuda_miner *miner, cudaStream_t stream) {
    return KI_LAUNCH(mine, (unsigned)view->m, view->threads, 0, stream, *view, *miner);
}
