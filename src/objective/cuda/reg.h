/* A regularizer on the device: one record `ki_cuda_reg_NAME` in reg/NAME.cu with its kernels, beside NAME.c, which
 * is the definition. The row of reg/table.def serves both. docs/adding-a-regularizer.md walks through one.
 *
 * This header is for C and for kernels: it knows neither the backend's struct nor the objective's. */
#ifndef KI_OBJECTIVE_CUDA_REG_H
#define KI_OBJECTIVE_CUDA_REG_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "objective/cuda/declare.h"
#include "objective/reg/tap.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ki_backend ki_backend;
typedef struct ki_engine ki_engine;
typedef struct ki_state ki_state;

typedef struct ki_cuda_param {
    const ki_state *state; /* name, shape, count */
    float *value;
    float *diff; /* ADD to it; NULL: not learned */
} ki_cuda_param;

/* A tap as a matrix [rows, cols], `pitch` elements from row to row. A MAP has a row for each position of each item
 * and is bf16 if the backend's activations are; all others are float with a pitch of cols. */
typedef struct ki_cuda_tap {
    const void *data; /* NULL: the term does not read it */
    void *diff;
    int64_t rows, cols, pitch;
    bool is_bf16;
} ki_cuda_tap;

/* Everything a term may use. All pointers but settings are device memory; they are the same from open to
 * close, and a term may keep `in` itself. */
typedef struct ki_cuda_reg_in {
    ki_engine *engine;
    ki_backend *backend;  /* for matrix products */
    cudaStream_t stream;  /* everything is queued there */
    const char *name;     /* the method's, for errors */
    const void *settings; /* the same struct of NAME.h that the host's term reads */
    int64_t m, n_classes; /* n_classes 0: not known */
    /* Over ranks (is_shared) a MAP has only the rows of items [first, first + n_own): gather what is made of them. */
    int64_t first, n_own;
    bool is_shared;
    const int32_t
        *label; /* [m], each in 0 … n_classes - 1 when n_classes is known; with counts_all not to be read */
    uint64_t seed;
    const uint64_t *step; /* random choices: (seed, KI_RNG_REGULARIZER, *step, …) */
    bool normalized;      /* the embedding tap is L2-normalised, head by head */
    int64_t heads;        /* [m, dim] of the embedding is [m * heads, dim / heads] */

    /* ADD *weight * gradient to the taps' diffs; they have been cleared. Only MAP is special: it has not been
     * cleared. The term that has assigns_map set must assign it; later terms add. */
    ki_cuda_tap tap[KI_N_TAPS];
    bool assigns_map;

    size_t n_params;
    const ki_cuda_param *param; /* in the order of the host's params function; ADD *weight * gradient */
    size_t n_loss_params;       /* of the objective's loss: for a term that repeats it */

    const float *weight; /* one number: the term's weight at this step, after warm-up */
    double *value;       /* one number: ASSIGN the plain value, without the weight */
} ki_cuda_reg_in;

typedef struct ki_cuda_reg {
    /* Makes the host object of the term, if it needs one; it can take its own device memory with
     * ki_engine_take. Asks for scratch memory, which is shared with the other terms and undefined between
     * launches. Both are 0 before. NULL: nothing to prepare. On failure ret_self is not read. */
    kith_status (*open)(const ki_cuda_reg_in *in, void **ret_self, size_t *ret_scratch_bytes,
                        kith_error *err);
    /* Queue the term; may be captured. No atomics on floats: sums are made in a fixed order. */
    kith_status (*launch)(void *self, const ki_cuda_reg_in *in, void *scratch, kith_error *err);
    void (*close)(void *self); /* NULL: nothing to release */
    /* Queue the descriptors of the taps: *ret_parts is device memory in the scratch, [n_parts, m, n]; in a
     * descriptor the parts follow each other. NULL: none, as in the host's record. */
    kith_status (*describe)(void *self, const ki_cuda_reg_in *in, void *scratch, const float **ret_parts,
                            int64_t *ret_n, kith_error *err);
} ki_cuda_reg;

#define X(name, device) KI_DECLARE_##device(ki_cuda_reg, name)
#include "objective/reg/table.def"
#undef X

/* NULL: the device does not have it. */
const ki_cuda_reg *ki_cuda_reg_find(const char *name);

/* Device memory that lives as long as the engine; 256-byte aligned, not cleared. Only while opening. */
kith_status ki_engine_take(ki_engine *engine, size_t bytes, const char *what, void *ret_ptr, kith_error *err);
/* Queue zeros. */
kith_status ki_engine_zero(ki_engine *engine, void *ptr, size_t bytes, kith_error *err);

/* Over ranks: all [m, cols] from every rank's own [n_own, cols]. Queued. */
kith_status ki_cuda_reg_gather(const ki_cuda_reg_in *in, const float *own, int64_t cols, float *all,
                               kith_error *err);

/* The objective's loss and miner again, on other embeddings. open: param[first …) of `in` are the parameters
 * that ki_state_add_loss made, and dim is the width of x. The memory belongs to the engine; there is nothing
 * to close. run: x [m, dim] is used as it is (normalise it first), value (ADDED to) is the plain value,
 * diff_x [m, dim] (assigned) and the parameters' gradients (added) are multiplied by *in->weight. No
 * cross-batch memory. */
typedef struct ki_cuda_site ki_cuda_site;
kith_status ki_cuda_repeat_open(const ki_cuda_reg_in *in, size_t first, int64_t dim, ki_cuda_site **ret_site,
                                kith_error *err);
kith_status ki_cuda_repeat_run(ki_cuda_site *site, const float *x, double *value, float *diff_x,
                               kith_error *err);

#ifdef __cplusplus
}
#endif
#endif
