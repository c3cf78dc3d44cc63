/* Random pairs of energy confusion: the same ones as the host draws, one after another, from its stream.
 *
 * The host takes word after word, passes over the few that ki_rng_below rejects, makes pairs of the others
 * in order and passes over pairs of one class. Here a block of threads makes a run of words at once and finds
 * by prefix sums which word is which, and which pair is the how-manieth. A pair's energy does not depend on
 * the draw, so all that is kept is how often each was drawn. */
#include "backend/cuda/number.cuh"
#include "core/rng.h"
#include "objective/cuda/reg_rows.h"

enum { THREADS = 256, WORDS = 4 * THREADS, PAIRS_EACH = WORDS / 2 / THREADS };

/* The sum of what threads before this one gave; *ret_total of all. Every thread of the block calls. */
static __device__ int sum_before(int mine, int *room, int *ret_total) {
    const int t = (int)threadIdx.x;
    room[t] = mine;
    __syncthreads();
    for (int step = 1; step < THREADS; step *= 2) {
        const int below = t >= step ? room[t - step] : 0;
        __syncthreads();
        room[t] += below;
        __syncthreads();
    }
    const int up_to = room[t];
    *ret_total = room[THREADS - 1];
    __syncthreads();
    return up_to - mine;
}

static __global__ void draw(const int32_t *label, int m, int64_t pairs, uint64_t seed, const uint64_t *step,
                            int32_t *count) {
    KI_SHARED_ARRAY(int, room, THREADS);
    KI_SHARED_ARRAY(uint32_t, item, WORDS + 1);
    const int t = (int)threadIdx.x;
    int others = 0, n_others = 0;
    for (int i = t; i < m; i += THREADS) others |= label[i] != label[0];
    sum_before(others, room, &n_others);
    if (n_others == 0) return;
    const uint32_t range = (uint32_t)m, least = (uint32_t)(0u - range) % range;
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    int n_left = 0; /* items of the run before that found no partner: 0 or 1, in item[0] */
    int64_t drawn = 0;
    for (uint32_t run = 0; drawn < pairs; run++) {
        const uint32_t counter[4] = {run * THREADS + (uint32_t)t, KI_RNG_REGULARIZER, (uint32_t)*step, 0};
        uint32_t word[4], kept[4];
        int n_kept = 0, n_items = 0;
        ki_philox(counter, key, word);
        for (int k = 0; k < 4; k++) {
            const uint64_t product = (uint64_t)word[k] * range;
            if ((uint32_t)product >= least) kept[n_kept++] = (uint32_t)(product >> 32);
        }
        int at = n_left + sum_before(n_kept, room, &n_items);
        for (int k = 0; k < n_kept; k++) item[at + k] = kept[k];
        n_items += n_left;
        __syncthreads();
        int is_good[PAIRS_EACH], n_good = 0, n_all_good = 0;
        for (int k = 0; k < PAIRS_EACH; k++) {
            const int pair = t * PAIRS_EACH + k;
            is_good[k] = 2 * pair + 1 < n_items && label[item[2 * pair]] != label[item[2 * pair + 1]];
            n_good += is_good[k];
        }
        int64_t number = drawn + sum_before(n_good, room, &n_all_good);
        for (int k = 0; k < PAIRS_EACH; k++) {
            const int pair = t * PAIRS_EACH + k;
            if (is_good[k] && number++ < pairs)
                atomicAdd(&count[(int64_t)item[2 * pair] * m + item[2 * pair + 1]], 1);
        }
        drawn += n_all_good;
        n_left = n_items % 2;
        const uint32_t last = item[n_items > 0 ? n_items - 1 : 0];
        __syncthreads();
        if (t == 0 && n_left) item[0] = last;
        __syncthreads();
    }
}

extern "C" cudaError_t ki_cuda_energy_draw(const int32_t *label, int64_t m, int64_t pairs, uint64_t seed,
                                           const uint64_t *step, int32_t *count, cudaStream_t stream) {
    return KI_LAUNCH(draw, 1, THREADS, 0, stream, label, m, pairs, seed, step, count);
}

static __global__ void pair_rows(const float *s, const int32_t *count, int m, int form, double share,
                                 double *row_value, double *row_items) {
    KI_SHARED_ARRAY(double, room, 33);
    const int64_t row = (int64_t)blockIdx.x * m;
    double sum = 0, items = 0;
    for (int j = (int)threadIdx.x; j < m; j += (int)blockDim.x) {
        const int32_t times = count[row + j];
        if (times == 0) continue;
        const double energy = (double)s[row + j];
        sum += times * (form == KI_ENERGY_LOG1P ? log1p(energy) : energy);
        items += times;
    }
    sum = ki_block_sum(sum, room);
    items = ki_block_sum(items, room);
    if (threadIdx.x == 0) {
        row_value[blockIdx.x] = form == KI_ENERGY_LOG ? sum : share * sum;
        row_items[blockIdx.x] = items;
    }
}

extern "C" cudaError_t ki_cuda_energy_pairs(const float *s, const int32_t *count, int64_t m,
                                            ki_energy_form form, double share, double *row_value,
                                            double *row_items, cudaStream_t stream) {
    return KI_LAUNCH(pair_rows, (unsigned)m, 128, 0, stream, s, count, m, (int)form, share, row_value,
                     row_items);
}

static __global__ void pair_back(const float *s, const int32_t *count, int m, int form, double share,
                                 const double *slope, float *g) {
    const int64_t row = (int64_t)blockIdx.x * m;
    const double factor = form == KI_ENERGY_LOG ? *slope : share;
    for (int j = (int)threadIdx.x; j < m; j += (int)blockDim.x) {
        const double below = form == KI_ENERGY_LOG1P ? 1 + (double)s[row + j] : 1;
        g[row + j] = (float)(factor * count[row + j] / below);
    }
}

extern "C" cudaError_t ki_cuda_energy_pairs_back(const float *s, const int32_t *count, int64_t m,
                                                 ki_energy_form form, double share, const double *slope,
                                                 float *g, cudaStream_t stream) {
    return KI_LAUNCH(pair_back, (unsigned)m, 128, 0, stream, s, count, m, (int)form, share, slope, g);
}
