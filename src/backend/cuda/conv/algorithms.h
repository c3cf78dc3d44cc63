/* How a convolution is computed on the device: the ways there are, the choice, and running it.
 *
 * A problem is one pass of one convolution with all its sizes and strides. ki_conv_choose collects the
 * ways to compute it: cuDNN engines (with bias and ReLU inside, or behind it as a kernel of ours),
 * cuBLASLt where the convolution is a matrix product, and a plain kernel that can do anything. It
 * times them on scratch tensors and keeps the fastest; the choice is remembered on disk
 * (remember.h), so that the next run asks nobody. In deterministic mode only ways that give the same bits in
 * every run are taken, and the choice itself must not change from run to run: where no file can remember
 * it, nothing is timed and the first such way is taken.
 *
 * No library's types here: the emulator (test/emulate) has the same functions on the host. */
#ifndef KI_CUDA_ALGORITHMS_H
#define KI_CUDA_ALGORITHMS_H

#include <cuda_runtime_api.h>

#include "backend/cuda/conv/problem.h"
#include "core/backend.h"

typedef struct ki_conv_algorithm ki_conv_algorithm;

/* What a choice took, for people. */
typedef struct ki_conv_trials {
    int n_offered, n_built, n_timed, n_wrong; /* n_wrong: fast, but not exact enough */
    bool from_cache;
    double build_seconds, time_seconds;
} ki_conv_trials;

/* Waits for the device; must not be called while a step is captured. ret_trials may be NULL. */
kith_status ki_conv_choose(ki_backend *backend, const ki_conv_problem *problem,
                           ki_conv_algorithm **ret_algorithm, ki_conv_trials *ret_trials, kith_error *err);
void ki_conv_algorithm_free(ki_conv_algorithm *algorithm); /* NULL is fine */

size_t ki_conv_workspace_bytes(const ki_conv_algorithm *algorithm);
/* Of diff_weights: the type written, and whether it is added to the master's gradient instead. */
ki_number ki_conv_diff_type(const ki_conv_algorithm *algorithm);
bool ki_conv_accumulates(const ki_conv_algorithm *algorithm);
/* "cudnn fused engine 38, knobs 2=5 …"; and the seconds it took when it was chosen (0: never timed). */
const char *ki_conv_text(const ki_conv_algorithm *algorithm);
double ki_conv_seconds(const ki_conv_algorithm *algorithm);

/* Fix the pointers; may be called again. */
kith_status ki_conv_bind(ki_conv_algorithm *algorithm, const ki_conv_io *io, kith_error *err);
/* Queue it on a stream of the backend; allocates nothing. */
kith_status ki_conv_run(ki_conv_algorithm *algorithm, cudaStream_t stream, kith_error *err);

/* Give back the memory that trials ran on, and save the choices; kept from one choice to the next until
 * this. */
void ki_conv_trials_end(ki_backend *backend);

/* conv2d.c: convolutions whose weights are to be packed before the next forward. */
typedef struct ki_conv_queue {
    void **item;
    size_t n, capacity;
} ki_conv_queue;

/* The backend's one queue, which lives as long as it. */
kith_status ki_conv_queue_of(ki_backend *backend, ki_conv_queue **ret_queue, kith_error *err);

#endif
