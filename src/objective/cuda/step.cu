/* Begin and end of an evaluation on the device. */
#include "objective/cuda/step.h"

#include "backend/cuda/number.cuh"

namespace {

__global__ void step_begin(ki_cuda_begin b, ki_cuda_values *values) {
    const uint64_t step = *b.step;
    if (threadIdx.x == 0) {
        values->step = step;
        values->fault = 0;
        values->pairs[0] = values->pairs[1] = 0;
    }
    for (int i = (int)threadIdx.x; i < b.n_terms; i += (int)blockDim.x) {
        const bool grows = b.warmup[i] > 0 && step < (uint64_t)b.warmup[i];
        const double weight = grows ? b.weight[i] * (double)step / (double)b.warmup[i] : b.weight[i];
        values->value[i] = 0;
        values->weight[i] = weight;
        values->term_weight[i] = (float)weight;
    }
    for (int i = (int)threadIdx.x; i < b.m; i += (int)blockDim.x) {
        const int32_t label = b.label[i];
        const bool is_in = label >= 0 && (!b.n_classes || label < b.n_classes);
        b.safe_label[i] = is_in ? label : 0;
        for (int k = 0; b.row_label && k < b.heads; k++) b.row_label[i * b.heads + k] = is_in ? label : 0;
        if (!is_in) atomicMax(&values->bad_label, 1);
    }
}

/* The state may have come from a file, so its numbers are limited to the size of the ring. */
__device__ int64_t within(float value, int64_t most) {
    return value > 0 ? (value < (float)most ? (int64_t)value : most) : 0;
}

/* One block for each head of each row that is kept: the last `size` of the m. */
__global__ void ring_put(ki_cuda_ring ring, const float *x, const int32_t *label, int first,
                         const ki_cuda_values *values) {
    KI_SHARED_ARRAY(double, room, 33);
    if (values->fault) return;
    const int64_t from = first + (int64_t)blockIdx.x;
    const int64_t to = (within(ring.state[1], ring.size) + (int64_t)blockIdx.x) % ring.size;
    const int64_t each = ring.dim / ring.heads, begin = (int64_t)blockIdx.y * each;
    double sum = 0;
    for (int64_t k = begin + (int64_t)threadIdx.x; k < begin + each; k += (int64_t)blockDim.x) {
        const float v = x[from * ring.dim + k];
        ring.embedding[to * ring.dim + k] = v;
        sum += (double)v * (double)v;
    }
    sum = ki_block_sum(sum, room);
    if (threadIdx.x != 0) return;
    if (blockIdx.y == 0) ring.label[to] = (float)label[from];
    ring.square[to * ring.heads + (int64_t)blockIdx.y] = (float)sum;
}

__global__ void step_end(ki_cuda_ring ring, int n_put, int n_terms, ki_cuda_values *values) {
    double total = 0;
    for (int i = 0; i < n_terms; i++) total += values->weight[i] * values->value[i];
    values->total = total;
    values->total_f32 = (float)total;
    if (n_put && !values->fault) {
        const int64_t filled = within(ring.state[0], ring.size) + n_put;
        ring.state[1] = (float)((within(ring.state[1], ring.size) + n_put) % ring.size);
        ring.state[0] = (float)(filled < ring.size ? filled : ring.size);
    }
    if (!(total - total == 0)) values->fault = 1;
}

} // namespace

cudaError_t ki_cuda_step_begin(const ki_cuda_begin *begin, ki_cuda_values *values, cudaStream_t stream) {
    return KI_LAUNCH(step_begin, 1, 128, 0, stream, *begin, values);
}

cudaError_t ki_cuda_step_end(const ki_cuda_begin *begin, const ki_cuda_ring *ring, const float *x,
                             ki_cuda_values *values, cudaStream_t stream) {
    int first = 0, n_put = 0;
    if (ring->size) {
        first = begin->m > ring->size ? (int)(begin->m - ring->size) : 0;
        n_put = begin->m - first;
        const dim3 grid((unsigned)n_put, (unsigned)ring->heads);
        KI_LAUNCH_TRY(ring_put, grid, ring->dim / ring->heads <= 64 ? 32 : 128, 0, stream, *ring, x,
                      begin->safe_label, first, values);
    }
    return KI_LAUNCH(step_end, 1, 1, 0, stream, *ring, n_put, begin->n_terms, values);
}
