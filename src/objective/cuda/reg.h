/* A regularizer on the device. One record `ki_cuda_reg_NAME` in a C file, its kernels in a .cu file behind
 * plain launchers, one row in reg.def. norm_l2 is the example.
 *
 * The host's reg/NAME.c is the definition. Settings are read by name with ki_method_real and its kin
 * (objective/method.h), so that the host file keeps its struct to itself. */
#ifndef KI_OBJECTIVE_CUDA_REG_H
#define KI_OBJECTIVE_CUDA_REG_H

#include <cuda_runtime_api.h>

#include "objective/engine.h"
#include "objective/state.h"

typedef struct ki_cuda_param {
    const ki_state *state; /* name, shape, count */
    float *value;
    float *diff; /* ADD to it; NULL: not learned */
} ki_cuda_param;

/* Everything a term may use. All pointers but settings are device memory; they are the same from open to
 * close, and a term may keep `in` itself. */
typedef struct ki_cuda_reg_in {
    ki_engine *engine;
    ki_backend *backend; /* of backend/cuda/cuda.h */
    cudaStream_t stream; /* its stream: everything is queued there */
    const ki_method *method;
    const void *settings;
    int64_t m, n_classes; /* n_classes 0: nobody said */
    const int32_t *label; /* [m], each in 0 … n_classes - 1 when n_classes is known */
    uint64_t seed;
    const uint64_t *step; /* random choices: (seed, KI_RNG_REGULARIZER, *step, …) */
    bool normalized;      /* tap[KI_TAP_EMBEDDING] is L2-normalised */

    /* Taps this term reads; NULL otherwise. MAP: edge[KI_TAP_MAP] in storage precision, with its pitch; the
     * others plain float [rows, cols] (LOGITS [m, n_classes * centers]). */
    const void *tap[KI_N_TAPS];
    ki_edge edge[KI_N_TAPS]; /* LOGITS: shape alone */
    /* ADD *weight * gradient here, same shapes; they have been cleared. Only MAP is special: it has not been
     * cleared, and the term that finds assigns_map set must assign it, the later ones add. */
    void *diff[KI_N_TAPS];
    bool assigns_map;

    size_t n_params;
    const ki_cuda_param *param; /* in the order of the host's params function; ADD *weight * gradient */
    size_t n_loss_params;       /* of the objective's loss: for a term that repeats it */

    const float *weight; /* one number: the term's weight at this step, after warm-up */
    double *value;       /* one number: ASSIGN the plain value, without the weight */
} ki_cuda_reg_in;

typedef struct ki_cuda_reg {
    const char *name;
    /* Host object of the term, if it needs one; device memory of its own through ki_engine_take. Asks for
     * scratch memory, which it shares with the other terms and which means nothing between launches. NULL:
     * nothing to prepare. On failure ret_self is not read. */
    kith_status (*open)(const ki_cuda_reg_in *in, void **ret_self, size_t *ret_scratch_bytes,
                        kith_error *err);
    /* Queue the term; may be captured. No atomics on floats: sums are made in a fixed order. */
    kith_status (*launch)(void *self, const ki_cuda_reg_in *in, void *scratch, kith_error *err);
    void (*close)(void *self); /* NULL: nothing to release */
    /* Queue the descriptors of the taps: *ret_parts device memory in the scratch, [n_parts, m, n], parts one after
     * the other in a descriptor. NULL: as the host's record, none. */
    kith_status (*describe)(void *self, const ki_cuda_reg_in *in, void *scratch, const float **ret_parts,
                            int64_t *ret_n, kith_error *err);
} ki_cuda_reg;

#define X(name) extern const ki_cuda_reg ki_cuda_reg_##name;
#include "objective/cuda/reg.def"
#undef X

/* Device memory that lives as long as the engine; 256-byte aligned, not cleared. Only while opening. */
kith_status ki_engine_take(ki_engine *engine, size_t bytes, const char *what, void *ret_ptr, kith_error *err);

/* The objective's loss and miner once more, on other embeddings. open: param[first …) of `in` are the
 * parameters that ki_state_add_loss made, dim the width of x; memory is the engine's, there is nothing to
 * close. run: x [m, dim] is used as it is (normalise it first), value (ADDED to) is the plain value, diff_x
 * [m, dim] (assigned) and the parameters' gradients (added) are multiplied by *in->weight. No cross-batch
 * memory. */
typedef struct ki_cuda_loss ki_cuda_loss;
kith_status ki_cuda_loss_open(const ki_cuda_reg_in *in, size_t first, int64_t dim, ki_cuda_loss **ret_loss,
                              kith_error *err);
kith_status ki_cuda_loss_run(ki_cuda_loss *loss, const float *x, double *value, float *diff_x,
                             kith_error *err);

#endif
