/* Finding classes: every item compares its label with all others, O(m^2) cheap reads; no sort, no atomics. */
#include "objective/cuda/classes.h"

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
