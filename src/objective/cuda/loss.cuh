/* How a loss that works row by row becomes a kernel: a struct of settings with one function,
 *
 *     __device__ void operator()(const ki_cuda_view &v, const ki_cuda_row &row, ki_cuda_tally *t) const;
 *
 * that writes g in every column of the row and, in thread 0, the row's tally (which is 0 before). */
#ifndef KI_OBJECTIVE_CUDA_LOSS_CUH
#define KI_OBJECTIVE_CUDA_LOSS_CUH

#include "objective/cuda/loss.h"
#include "objective/cuda/row.cuh"

template <typename Loss>
__global__ void ki_loss_rows(ki_cuda_view v, Loss loss) {
    KI_SHARED_ARRAY(double, room, KI_ROOM);
    const ki_cuda_row row = ki_cuda_row_of(v, (int)blockIdx.x, room);
    ki_cuda_tally tally = {0, 0, 0, {0, 0}};
    loss(v, row, &tally);
    if (ki_is_first()) v.tally[blockIdx.x] = tally;
}

template <typename Loss>
static inline cudaError_t ki_loss_launch(const ki_cuda_view *view, const Loss &loss, cudaStream_t stream) {
    return KI_LAUNCH(ki_loss_rows<Loss>, (unsigned)view->m, view->threads, 0, stream, *view, loss);
}

static __device__ __forceinline__ bool ki_is_pos(int kind) { return kind == KI_PAIR_POSITIVE; }
static __device__ __forceinline__ bool ki_is_neg(int kind) { return kind == KI_PAIR_NEGATIVE; }

#endif
