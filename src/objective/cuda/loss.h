/* A loss on the device: one record `ki_cuda_loss_NAME` in loss/NAME.cu (or proxy/NAME.cu), beside NAME.c, which is
 * the definition. The row of table.def serves both. docs/adding-a-loss.md walks through one.
 *
 * A launcher fills in g = dL/ds and the tallies from a mined view, with one block for each row; loss.cuh makes a
 * kernel from a function of one row. */
#ifndef KI_OBJECTIVE_CUDA_LOSS_H
#define KI_OBJECTIVE_CUDA_LOSS_H

#include <stdbool.h>
#include <stddef.h>

#include "objective/cuda/declare.h"
#include "objective/cuda/view.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ki_cuda_loss_in {
    const void *settings; /* the same struct of NAME.h that the host's loss reads */
    const float *param;   /* the loss's first parameter; NULL: it has none */
    int64_t n_param;
    float *diff_param;    /* add the gradient (after, not proxies); NULL: not learned */
    const float *proxies; /* the columns as the view has them */
    float *diff_proxies;  /* [n, dim] assign dL/d(columns) that does not go through s (has_straight) */
    const float *scale;   /* after: what g has been multiplied by, by kind */
    const float *weight;  /* of the whole; NULL: 1 */
    void *scratch;
} ki_cuda_loss_in;

typedef cudaError_t (*ki_cuda_loss_fn)(const ki_cuda_loss_in *in, const ki_cuda_view *view,
                                       cudaStream_t stream);

typedef struct ki_cuda_loss {
    ki_cuda_loss_fn rows;
    /* What the sums over positives and over negatives are divided by; Use `weights` instead if the settings
     * decide, or if the two differ: it fills in weight[kind of pair] (ki_cuda_sum_up), which is 1 before. */
    ki_cuda_by by;
    void (*weights)(const void *settings, const ki_cuda_view *view, ki_cuda_weight weight[3]);
    ki_cuda_loss_fn after;                                                /* NULL: nothing after the sums */
    int64_t (*n_tallies)(const void *settings, const ki_cuda_view *view); /* NULL: m */
    size_t (*scratch_bytes)(const void *settings, const ki_cuda_view *view); /* NULL: 0 */
    bool (*has_straight)(const void *settings);                              /* NULL: no */
    bool reads_norms;                                                        /* the kernel reads x_sq */
} ki_cuda_loss;

#define X(name, device) KI_DECLARE_##device(ki_cuda_loss, name)
#include "objective/loss/table.def"
#include "objective/proxy/table.def"
#undef X

/* NULL: the device does not have it. */
const ki_cuda_loss *ki_cuda_loss_find(const char *name);

#ifdef __cplusplus
}
#endif
#endif
