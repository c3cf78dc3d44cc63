/* A miner on the device: one record `ki_cuda_miner_NAME` in miner/NAME.cu, beside NAME.c, which is the definition.
 * miner.cuh makes the kernel. */
#ifndef KI_OBJECTIVE_CUDA_MINER_H
#define KI_OBJECTIVE_CUDA_MINER_H

#include <stdbool.h>

#include "objective/cuda/declare.h"
#include "objective/cuda/view.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ki_cuda_miner {
    /* From inner products in s: pairs by label, the miner's choice, counts, and then s as the loss measures. */
    cudaError_t (*mine)(const void *settings, const ki_cuda_view *view, cudaStream_t stream);
    /* Sets the view's triplet rule when the engine opens. NULL: all triplets of the kept pairs. */
    void (*set_rule)(const void *settings, ki_cuda_view *view);
    bool reads_norms; /* the kernel reads x_sq */
} ki_cuda_miner;

#define X(name, device) KI_DECLARE_##device(ki_cuda_miner, name)
#include "objective/miner/table.def"
#undef X

/* NULL: the device does not have it. */
const ki_cuda_miner *ki_cuda_miner_find(const char *name);

#ifdef __cplusplus
}
#endif
#endif
