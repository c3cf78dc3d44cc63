/* What happens once in an evaluation, before and after the terms: weights of this step, labels made safe, the
 * total, and the cross-batch memory. */
#ifndef KI_OBJECTIVE_CUDA_STEP_H
#define KI_OBJECTIVE_CUDA_STEP_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { KI_CUDA_MOST_TERMS = 32 };

/* On the device, with a copy in pinned memory. */
typedef struct ki_cuda_values {
    uint64_t step;
    double total;
    float total_f32;   /* the same */
    int64_t pairs[3];  /* positives, negatives; evaluations without any so far */
    int32_t fault;     /* 1: something was not finite */
    int32_t bad_label; /* 1: some label so far was outside the classes */
    double value[KI_CUDA_MOST_TERMS];
    double weight[KI_CUDA_MOST_TERMS];
    float term_weight[KI_CUDA_MOST_TERMS]; /* the weights again, as the gradients use them */
} ki_cuda_values;

typedef struct ki_cuda_begin {
    const uint64_t *step;
    const int32_t *label; /* [m] as given */
    int32_t *safe_label;  /* [m] in 0 … n_classes - 1: the others become 0 */
    int32_t *row_label;   /* [m * heads]: the same for each head; NULL: not wanted */
    int32_t m, n_terms, heads;
    int64_t n_classes; /* 0: any label from 0 */
    double weight[KI_CUDA_MOST_TERMS];
    int64_t warmup[KI_CUDA_MOST_TERMS]; /* steps over which the weight grows from 0 */
} ki_cuda_begin;

cudaError_t ki_cuda_step_begin(const ki_cuda_begin *begin, ki_cuda_values *values, cudaStream_t stream);

/* The ring of past embeddings. size 0: there is none. */
typedef struct ki_cuda_ring {
    int64_t size, dim, heads;         /* dim: of all heads */
    float *embedding, *label, *state; /* [size, dim], [size], [2]: how many are filled, where the next goes */
    float *square;                    /* [size, heads]: squared norms */
} ki_cuda_ring;

/* Put x [m, dim] into the ring, unless something was not finite; then the total. */
cudaError_t ki_cuda_step_end(const ki_cuda_begin *begin, const ki_cuda_ring *ring, const float *x,
                             ki_cuda_values *values, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
