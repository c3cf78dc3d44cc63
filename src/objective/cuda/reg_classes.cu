/* Finding classes: every item compares its label with all others, O(m^2) cheap reads; no sort, no atomics. */
#include "objective/cuda/reg_classes.h"

#include "backend/cuda/number.cuh"

enum { THREADS = 256 };

static unsigned blocks(int64_t n) { return (unsigned)((n + THREADS - 1) / THREADS); }

static __global__ void mark_first(const int32_t *label, int m, int32_t *first) {
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= m) return;
    int is_first = 1;
    for (int j = 0; j < i; j++) is_first &= label[j] != label[i];
    first[i] = is_first;
}

static __global__ void list_classes(const int32_t *label, int m, ki_cuda_classes c) {
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= m) return;
    const int32_t mine = label[i];
    int n = 0, class_at = 0, count = 0, below = 0, before = 0;
    for (int j = 0; j < m; j++) {
        const int32_t other = label[j], is_first = c.first[j];
        n += is_first;
        class_at += other < mine ? is_first : 0;
        below += other < mine;
        count += other == mine;
        before += other == mine && j < i;
    }
    c.of[i] = class_at;
    c.member[below + before] = i;
    if (c.first[i]) {
        c.label[class_at] = mine;
        c.count[class_at] = count;
        c.start[class_at] = below;
    }
    if (i == 0) *c.n = n;
}

extern "C" cudaError_t ki_cuda_classes_find(const int32_t *label, int64_t m, const ki_cuda_classes *classes,
                                            cudaStream_t stream) {
    KI_LAUNCH_TRY(mark_first, blocks(m), THREADS, 0, stream, label, m, classes->first);
    return KI_LAUNCH(list_classes, blocks(m), THREADS, 0, stream, label, m, *classes);
}

/* A block for each class. */
static __global__ void measure_classes(ki_cuda_classes c, const float *x, int dim, float *mean,
                                       double *spread) {
    KI_SHARED_ARRAY(double, room, 33);
    const int at = (int)blockIdx.x;
    if (at >= *c.n) {
        if (threadIdx.x == 0) spread[at] = 0;
        return;
    }
    const int32_t *member = c.member + c.start[at];
    const int count = c.count[at];
    double total = 0;
    for (int k = (int)threadIdx.x; k < dim; k += (int)blockDim.x) {
        float sum = 0;
        for (int i = 0; i < count; i++) sum += x[(int64_t)member[i] * dim + k];
        const float centre = sum / (float)count;
        mean[(int64_t)at * dim + k] = centre;
        float square = 0;
        for (int i = 0; i < count; i++) {
            const float d = x[(int64_t)member[i] * dim + k] - centre;
            square += d * d;
        }
        total += (double)square;
    }
    total = ki_block_sum(total, room);
    if (threadIdx.x == 0) spread[at] = total / (double)count;
}

extern "C" cudaError_t ki_cuda_classes_measure(const ki_cuda_classes *classes, const float *x, int64_t m,
                                               int64_t dim, float *mean, double *spread,
                                               cudaStream_t stream) {
    return KI_LAUNCH(measure_classes, (unsigned)m, THREADS, 0, stream, *classes, x, dim, mean, spread);
}

static __device__ double power_of(const float *d0, int32_t label, double eta) {
    const double d = (double)d0[label];
    return d > 0 ? pow(d, eta) : 0;
}

/* What original densities are multiplied with: 1, or 1 over their mean of the batch's classes. */
static __device__ double density_scale(const ki_cuda_classes &c, const ki_cuda_density &o, int n,
                                       double *room) {
    if (!o.relative) return 1;
    double sum = 0;
    for (int e = (int)threadIdx.x; e < n; e += (int)blockDim.x) sum += power_of(o.d0, c.label[e], o.eta);
    sum = ki_block_sum(sum, room);
    return sum > 0 ? (double)n / sum : 1;
}

/* A block for each class c; t_e = r_e a_c - r_c a_e over all classes e. */
static __global__ void density_rows(ki_cuda_classes c, const double *spread, ki_cuda_density o,
                                    double *row_value, double *factor) {
    KI_SHARED_ARRAY(double, room, 33);
    const int at = (int)blockIdx.x, n = *c.n;
    if (at >= n) {
        if (threadIdx.x == 0) row_value[at] = 0;
        return;
    }
    const double a = (double)o.alpha[c.label[at]];
    double squares = 0, pull = 0;
    if (o.correlation) {
        const double scale = density_scale(c, o, n, room), r = scale * power_of(o.d0, c.label[at], o.eta);
        for (int e = (int)threadIdx.x; e < n; e += (int)blockDim.x) {
            const double r_e = scale * power_of(o.d0, c.label[e], o.eta);
            const double t = r_e * a - r * (double)o.alpha[c.label[e]];
            squares += t * t;
            pull += r_e * t;
        }
        squares = ki_block_sum(squares, room);
        pull = ki_block_sum(pull, room);
    }
    if (threadIdx.x != 0) return;
    const double off = spread[at] - a, share = 1 / ((double)n * (double)n);
    row_value[at] = (off * off - a) / (double)n + share * squares;
    factor[at] = 4 * off / ((double)n * (double)c.count[at]);
    if (o.diff_alpha)
        o.diff_alpha[c.label[at]] += *o.weight * (float)((-2 * off - 1) / (double)n + 4 * share * pull);
}

extern "C" cudaError_t ki_cuda_density_rows(const ki_cuda_classes *classes, int64_t m, const double *spread,
                                            const ki_cuda_density *density, double *row_value, double *factor,
                                            cudaStream_t stream) {
    return KI_LAUNCH(density_rows, (unsigned)m, 128, 0, stream, *classes, spread, *density, row_value,
                     factor);
}

static __global__ void density_back(ki_cuda_classes c, const float *x, int64_t n, int dim, const float *mean,
                                    const double *factor, const float *weight, float *diff) {
    const int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= n) return;
    const int32_t i = (int32_t)(at / dim), k = (int32_t)(at % dim), mine = c.of[i];
    diff[at] += *weight * (float)factor[mine] * (x[at] - mean[(int64_t)mine * dim + k]);
}

extern "C" cudaError_t ki_cuda_density_back(const ki_cuda_classes *classes, const float *x, int64_t m,
                                            int64_t dim, const float *mean, const double *factor,
                                            const float *weight, float *diff, cudaStream_t stream) {
    return KI_LAUNCH(density_back, blocks(m * dim), THREADS, 0, stream, *classes, x, m * dim, dim, mean,
                     factor, weight, diff);
}

/* A block for each class. */
static __global__ void energy_rows(ki_cuda_classes c, int m, const double *spread, int form, bool is_mean,
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

extern "C" cudaError_t ki_cuda_energy_rows(const ki_cuda_classes *classes, int64_t m, const double *spread,
                                           ki_energy_form form, bool is_mean, float *square, double *own,
                                           double *row_value, double *row_items, cudaStream_t stream) {
    return KI_LAUNCH(energy_rows, (unsigned)m, 128, 0, stream, *classes, m, spread, (int)form, is_mean,
                     square, own, row_value, row_items);
}

/* ln of less than this is taken as ln of this, with no gradient: all points coincide. */
#define LEAST_ENERGY 1e-30

static __global__ void energy_finish(int m, int form, const double *row_value, const double *row_items,
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
        *value = log(mean > LEAST_ENERGY ? mean : LEAST_ENERGY);
        *slope = mean > LEAST_ENERGY ? 1 / mean / items : 0;
    } else { /* one class */
        *value = 0;
        *slope = 0;
    }
}

extern "C" cudaError_t ki_cuda_energy_finish(int64_t m, ki_energy_form form, const double *row_value,
                                             const double *row_items, double *value, double *slope,
                                             cudaStream_t stream) {
    return KI_LAUNCH(energy_finish, 1, THREADS, 0, stream, m, (int)form, row_value, row_items, value, slope);
}

static __global__ void energy_back(ki_cuda_classes c, const float *x, int64_t n, int dim, const float *mean,
                                   const double *own, const float *pull, const double *slope,
                                   const float *weight, float *diff) {
    const int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= n) return;
    const int32_t i = (int32_t)(at / dim), k = (int32_t)(at % dim), mine = c.of[i];
    const int64_t from = (int64_t)mine * dim + k;
    const float factor = (float)(2 * *slope / (double)c.count[mine]), self = (float)own[mine];
    diff[at] += *weight * factor * (self * (x[at] - mean[from]) + 0.25f * pull[from]);
}

extern "C" cudaError_t ki_cuda_energy_back(const ki_cuda_classes *classes, const float *x, int64_t m,
                                           int64_t dim, const float *mean, const double *own,
                                           const float *pull, const double *slope, const float *weight,
                                           float *diff, cudaStream_t stream) {
    return KI_LAUNCH(energy_back, blocks(m * dim), THREADS, 0, stream, *classes, x, m * dim, dim, mean, own,
                     pull, slope, weight, diff);
}
