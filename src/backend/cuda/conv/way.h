/* A way to compute one pass of a convolution on the device, and choosing the best one.
 *
 * A problem is one pass of one convolution with all its sizes and strides. Ways to compute it are cuDNN engines
 * (with bias and ReLU inside, or after it in a kernel of ours), cuBLASLt if the convolution is a matrix product, and
 * a plain kernel that can do anything. ki_conv_tune collects them, times them on scratch tensors and keeps the
 * fastest. The choice is stored on disk (remember.h), so that the next run need not time anything. In deterministic
 * mode only ways that give the same bits in every run are used, and the choice itself must not change from run to
 * run: if it cannot be stored in a file, nothing is timed and the first such way is used.
 *
 * This header uses no library's types: the emulator (test/emulate) has the same functions on the host. */
#ifndef KI_CUDA_CONV_WAY_H
#define KI_CUDA_CONV_WAY_H

#include <cuda_runtime_api.h>

#include "backend/cuda/conv/problem.h"
#include "device/backend.h"

typedef struct ki_conv_way ki_conv_way;

/* What choosing a way took, for people. */
typedef struct ki_conv_tuning {
    int n_offered, n_built, n_timed, n_wrong; /* n_wrong: fast, but not exact enough */
    bool from_cache;
    double build_seconds, time_seconds;
} ki_conv_tuning;

/* Waits for the device; must not be called while a step is captured. ret_tuning may be NULL. */
kith_status ki_conv_tune(ki_backend *backend, const ki_conv_problem *problem, ki_conv_way **ret_way,
                         ki_conv_tuning *ret_tuning, kith_error *err);
void ki_conv_way_free(ki_conv_way *way); /* NULL is fine */

size_t ki_conv_way_workspace_bytes(const ki_conv_way *way);
/* Of diff_weights: the type written, and whether it is added to the master's gradient instead. */
ki_number ki_conv_way_diff_type(const ki_conv_way *way);
bool ki_conv_way_accumulates(const ki_conv_way *way);
/* Of diff_src: does it add io.diff_added? */
bool ki_conv_way_takes_part(const ki_conv_way *way);
/* Is it the plain kernel, because nothing else can do it? */
bool ki_conv_way_is_plain(const ki_conv_way *way);
/* "cudnn fused engine 38, knobs 2=5 …"; and the seconds it took when it was chosen (0: never timed). */
const char *ki_conv_way_text(const ki_conv_way *way);
double ki_conv_way_seconds(const ki_conv_way *way);

/* Fix the pointers; may be called again. */
kith_status ki_conv_way_bind(ki_conv_way *way, const ki_conv_io *io, kith_error *err);
/* Queue it on a stream of the backend; allocates nothing. */
kith_status ki_conv_way_run(ki_conv_way *way, cudaStream_t stream, kith_error *err);

/* Free the memory that ways are timed on, which is kept from one tuning to the next, and save the remembered
 * choices. */
void ki_conv_tune_end(ki_backend *backend);

#endif
