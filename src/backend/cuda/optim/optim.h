/* Updates of parameters and sums of squares over many runs in one launch (optim.cu). */
#ifndef KI_CUDA_OPTIM_H
#define KI_CUDA_OPTIM_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Runs of one launch: the table is a launch parameter, so that a captured step has its own copy. */
enum { KI_CUDA_RUNS = 128 };

typedef struct ki_cuda_run {
    float *value;
    const float *diff;
    float *m, *v; /* NULL: none */
    int64_t n, start;
    double lr, decay, decoupled;
    int64_t first_block;
} ki_cuda_run;

typedef struct ki_cuda_update {
    int kind; /* 0 adam, 1 sgd, 2 rmsprop */
    bool nesterov;
    float beta1, beta2, rest1, rest2; /* rest = 1 - beta */
    float eps;
    double log_beta1, log_beta2;
    double diff_scale, max_norm;
    const double *lr;      /* device memory: of the step */
    const int64_t *t;      /* device memory: of the step */
    const double *norm_sq; /* device memory; NULL: no clipping */
    double *sum;           /* device scratch: the norm's square over all tables */
    int n_runs;
    ki_cuda_run run[KI_CUDA_RUNS];
} ki_cuda_update;

/* The gradient's squared norm over the runs of this table that are updated now, added to update->sum; the first
 * table sets it. norm_sq points to the value of the table's first run. */
cudaError_t ki_cuda_optim_norm(cudaStream_t stream, const ki_cuda_update *update, bool is_first);
cudaError_t ki_cuda_optim_update(cudaStream_t stream, ki_cuda_update *update);

/* dst[i] = sum of diff^2 of run i. `sums` holds max_blocks doubles, `counters` KI_CUDA_RUNS zeros. */
cudaError_t ki_cuda_sum_squares_of(cudaStream_t stream, ki_cuda_update *runs, double *dst, double *sums,
                                   int64_t max_blocks, unsigned *counters);

#ifdef __cplusplus
}
#endif
#endif
