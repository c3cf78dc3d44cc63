/* Energy confusion on the device (energy_confusion.c has the formulas).
 *
 * All pairs: with class means mu and spreads v (the mean squared distance to mu),
 *   E_IJ = v_I + v_J + |mu_I - mu_J|^2,   sum_J e_IJ (x_i - mu_J) = own_I (x_i - mu_I) + sum_J e_IJ (mu_I - mu_J)
 * where every difference is computed first, so that nothing needs to be centred.
 *
 * Random pairs: first count how often each pair is drawn, then make one pass over the pairs. They are the same
 * pairs that the host draws one after another from its stream. The host takes word after word, skips the few that
 * ki_rng_below rejects, makes pairs of the others in order and skips pairs of one class. Here a block of threads
 * makes many words at once and finds the position of each word and each pair by prefix sums. A pair's energy does
 * not depend on the draw, so only the number of times each was drawn is kept. */
#include "objective/reg/energy_confusion.h"

#include "base/rng.h"
#include "objective/cuda/classes.h"
#include "objective/cuda/pairwise.h"
#include "objective/cuda/reg.cuh"

namespace {

enum { THREADS = 256, WORDS = 4 * THREADS, PAIRS_EACH = WORDS / 2 / THREADS };

/* A block for each class. square [m, m] holds the squared distances of the means, and afterwards e: the
 * derivative of the value by E_ab, without the slope of the log. own [m]: sums of e; row_value, row_items [m]:
 * each row's share of the value and, for the log, of the number of pairs in its mean. */
__global__ void energy_rows(ki_cuda_classes c, int m, const double *spread, int form, bool is_mean,
                            float *square, double *own, double *row_value, double *row_items) {
    KI_SHARED_ARRAY(double, room, 33);
    const int a = (int)blockIdx.x, n = *c.n;
    if (a >= n) {
        if (threadIdx.x == 0) row_value[a] = row_items[a] = 0;
        return;
    }
    const double share = form == KI_ENERGY_LOG || !is_mean ? 1 : 2 / ((double)n * (double)(n - 1));
    float *e = square + (int64_t)a * m;
    double total = 0, items = 0, sum = 0;
    for (int b = (int)threadIdx.x; b < n; b += (int)blockDim.x) {
        double slope = 0;
        if (b != a) {
            const double energy = spread[a] + spread[b] + (double)e[b];
            const double both = (double)c.count[a] * (double)c.count[b];
            if (form == KI_ENERGY_LINEAR) {
                total += 0.5 * share * energy;
                slope = share;
            } else if (form == KI_ENERGY_LOG1P) {
                total += 0.5 * share * log1p(energy);
                slope = share / (1 + energy);
            } else {
                total += 0.5 * both * energy;
                items += 0.5 * both;
                slope = both;
            }
        }
        e[b] = (float)slope;
        sum += slope;
    }
    total = ki_block_sum(total, room);
    items = ki_block_sum(items, room);
    sum = ki_block_sum(sum, room);
    if (threadIdx.x == 0) {
        row_value[a] = total;
        row_items[a] = items;
        own[a] = sum;
    }
}

/* The value and the log's slope from the rows. */
__global__ void energy_finish(int m, int form, const double *row_value, const double *row_items,
                              double *value, double *slope) {
    KI_SHARED_ARRAY(double, room, 33);
    double total = 0, items = 0;
    for (int i = (int)threadIdx.x; i < m; i += (int)blockDim.x) {
        total += row_value[i];
        items += row_items[i];
    }
    total = ki_block_sum(total, room);
    items = ki_block_sum(items, room);
    if (threadIdx.x != 0) return;
    if (form != KI_ENERGY_LOG) {
        *value = total;
        *slope = 1;
    } else if (items > 0) {
        const double mean = total / items;
        *value = log(mean > KI_LEAST_ENERGY ? mean : KI_LEAST_ENERGY);
        *slope = mean > KI_LEAST_ENERGY ? 1 / mean / items : 0;
    } else { /* one class */
        *value = 0;
        *slope = 0;
    }
}

/* diff += weight * dL/dx; pull [m, dim] = 4 sum_b e_ab (mean_a - mean_b), of ki_cuda_pairwise_back. */
__global__ void energy_back(ki_cuda_classes c, const float *x, int64_t n, int dim, const float *mean,
                            const double *own, const float *pull, const double *slope, const float *weight,
                            float *diff) {
    const int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= n) return;
    const int32_t i = (int32_t)(at / dim), k = (int32_t)(at % dim), mine = c.of[i];
    const int64_t from = (int64_t)mine * dim + k;
    const float factor = (float)(2 * *slope / (double)c.count[mine]), self = (float)own[mine];
    diff[at] += *weight * factor * (self * (x[at] - mean[from]) + 0.25f * pull[from]);
}

/* The sum of the values of all threads before this one; *ret_total is the sum of all. Every thread of the
 * block must call this. */
__device__ int sum_before(int mine, int *room, int *ret_total) {
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

/* count [m, m], 0 before: how often each ordered pair was drawn. A batch of one class has none. */
__global__ void draw(const int32_t *label, int m, int64_t pairs, uint64_t seed, const uint64_t *step,
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
    int n_left = 0; /* items of the previous round without a partner: 0 or 1, in item[0] */
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

/* Shares of the value for energy_finish; share: the weight of a pair (not read for the log). */
__global__ void pair_rows(const float *s, const int32_t *count, int m, int form, double share,
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

__global__ void pair_back(const float *s, const int32_t *count, int m, int form, double share,
                          const double *slope, float *g) {
    const int64_t row = (int64_t)blockIdx.x * m;
    const double factor = form == KI_ENERGY_LOG ? *slope : share;
    for (int j = (int)threadIdx.x; j < m; j += (int)blockDim.x) {
        const double below = form == KI_ENERGY_LOG1P ? 1 + (double)s[row + j] : 1;
        g[row + j] = (float)(factor * count[row + j] / below);
    }
}

struct energy {
    int form;
    bool is_mean;
    int64_t pairs, m, dim;
};

energy energy_of(const ki_cuda_reg_in *in) {
    const ki_energy_confusion_settings *o = static_cast<const ki_energy_confusion_settings *>(in->settings);
    return {o->form, o->reduction == KI_ENERGY_MEAN, o->pairs, in->m, in->tap[KI_TAP_EMBEDDING].cols};
}

struct places {
    double *row_value, *row_items, *slope;
    float *square; /* [m, m]: of items or of classes */
    /* Random pairs. */
    int32_t *count;
    /* All pairs. */
    ki_cuda_classes classes;
    float *mean, *pull;
    double *spread, *own;
};

places place(const energy &o, ki_cuda_scratch *room) {
    places at = {};
    at.row_value = ki_cuda_scratch_doubles(room, o.m);
    at.row_items = ki_cuda_scratch_doubles(room, o.m);
    at.slope = ki_cuda_scratch_doubles(room, 1);
    at.square = ki_cuda_scratch_floats(room, o.m * o.m);
    if (o.pairs > 0) {
        at.count = ki_cuda_scratch_ints(room, o.m * o.m);
    } else {
        at.classes = ki_cuda_classes_place(room, o.m);
        at.mean = ki_cuda_scratch_floats(room, o.m * o.dim);
        at.pull = ki_cuda_scratch_floats(room, o.m * o.dim);
        at.spread = ki_cuda_scratch_doubles(room, o.m);
        at.own = ki_cuda_scratch_doubles(room, o.m);
    }
    return at;
}

kith_status reg_open(const ki_cuda_reg_in *in, void **ret_self, size_t *ret_scratch_bytes, kith_error *err) {
    ki_cuda_scratch room = {};
    (void)ret_self, (void)err;
    place(energy_of(in), &room);
    *ret_scratch_bytes = room.used;
    return KITH_OK;
}

cudaError_t finish(const ki_cuda_reg_in *in, const energy &o, const places &at) {
    return KI_LAUNCH(energy_finish, 1, THREADS, 0, in->stream, o.m, o.form, at.row_value, at.row_items,
                     in->value, at.slope);
}

kith_status all_pairs(const ki_cuda_reg_in *in, const energy &o, const places &at, kith_error *err) {
    const ki_cuda_tap &tap = in->tap[KI_TAP_EMBEDDING];
    const float *x = ki_tap_floats(tap);
    const ki_cuda_classes &classes = at.classes;
    KI_CUDA(ki_cuda_classes_find(in->label, o.m, &classes, in->stream));
    KI_CUDA(ki_cuda_classes_measure(&classes, x, o.m, o.dim, at.mean, at.spread, in->stream));
    KI_CUDA(ki_cuda_pairwise(KI_PAIRWISE_SQUARE, at.mean, o.m, o.dim, classes.n, at.square, in->stream));
    KI_CUDA(KI_LAUNCH(energy_rows, (unsigned)o.m, 128, 0, in->stream, classes, o.m, at.spread, o.form,
                      o.is_mean, at.square, at.own, at.row_value, at.row_items));
    KI_CUDA(finish(in, o, at));
    KI_CUDA(ki_cuda_pairwise_back(KI_PAIRWISE_SQUARE, at.mean, at.square, o.m, o.dim, classes.n, NULL, false,
                                  at.pull, in->stream));
    KI_CUDA(KI_LAUNCH(energy_back, (unsigned)((o.m * o.dim + THREADS - 1) / THREADS), THREADS, 0, in->stream,
                      classes, x, o.m * o.dim, o.dim, at.mean, at.own, at.pull, at.slope, in->weight,
                      ki_tap_diff(tap)));
    return KITH_OK;
}

kith_status random_pairs(const ki_cuda_reg_in *in, const energy &o, const places &at, kith_error *err) {
    const ki_cuda_tap &tap = in->tap[KI_TAP_EMBEDDING];
    const float *x = ki_tap_floats(tap);
    const double share = o.is_mean ? 1 / (double)o.pairs : 1;
    KI_TRY(ki_engine_zero(in->engine, at.count, (size_t)(o.m * o.m) * sizeof *at.count, err));
    KI_CUDA(
        KI_LAUNCH(draw, 1, THREADS, 0, in->stream, in->label, o.m, o.pairs, in->seed, in->step, at.count));
    KI_CUDA(ki_cuda_pairwise(KI_PAIRWISE_SQUARE, x, o.m, o.dim, NULL, at.square, in->stream));
    KI_CUDA(KI_LAUNCH(pair_rows, (unsigned)o.m, 128, 0, in->stream, at.square, at.count, o.m, o.form, share,
                      at.row_value, at.row_items));
    KI_CUDA(finish(in, o, at));
    KI_CUDA(KI_LAUNCH(pair_back, (unsigned)o.m, 128, 0, in->stream, at.square, at.count, o.m, o.form, share,
                      at.slope, at.square));
    KI_CUDA(ki_cuda_pairwise_back(KI_PAIRWISE_SQUARE, x, at.square, o.m, o.dim, NULL, in->weight, true,
                                  ki_tap_diff(tap), in->stream));
    return KITH_OK;
}

kith_status reg_launch(void *self, const ki_cuda_reg_in *in, void *scratch, kith_error *err) {
    const energy o = energy_of(in);
    ki_cuda_scratch room = {static_cast<char *>(scratch), 0};
    const places at = place(o, &room);
    (void)self;
    return o.pairs > 0 ? random_pairs(in, o, at, err) : all_pairs(in, o, at, err);
}

} // namespace

const ki_cuda_reg ki_cuda_reg_energy_confusion = {.open = reg_open, .launch = reg_launch};
