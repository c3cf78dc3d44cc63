/* Losses on the device: launchers that fill g = dL/ds and the tallies from a mined view. Each is the loss of
 * its name in loss/ or proxy/, which has the formula; here is how a block computes a row of it. */
#ifndef KI_OBJECTIVE_CUDA_LOSS_H
#define KI_OBJECTIVE_CUDA_LOSS_H

#include <stddef.h>

#include "objective/cuda/view.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KI_CUDA_MOST_OPTIONS = 6 };

typedef struct ki_cuda_loss_args {
    double option[KI_CUDA_MOST_OPTIONS]; /* as the row of the table names them */
    const float *param;                  /* the loss's first parameter; NULL: it has none */
    int64_t n_param;
    float *diff_param;    /* add the gradient (after, not proxies); NULL: not learned */
    const float *proxies; /* the columns as the view saw them */
    float *diff_proxies;  /* [n, dim] assign dL/d(columns) that does not go through s (has_straight) */
    const float *scale;   /* after: what g has been multiplied by, by kind */
    const float *weight;  /* of the whole; NULL: 1 */
    void *scratch;
} ki_cuda_loss_args;

typedef cudaError_t (*ki_cuda_loss_fn)(const ki_cuda_view *view, const ki_cuda_loss_args *args,
                                       cudaStream_t stream);

typedef struct ki_cuda_loss_type {
    const char *name;
    const char *options[KI_CUDA_MOST_OPTIONS + 1]; /* read into option[]; a choice is its index */
    /* Weights by kind of pair (ki_cuda_sum_up). */
    void (*weights)(const double *option, const ki_cuda_view *view, ki_cuda_weight weight[3]);
    ki_cuda_loss_fn rows;
    ki_cuda_loss_fn after; /* NULL: nothing to do after the sums */
    int64_t (*n_tallies)(const double *option, const ki_cuda_view *view);    /* NULL: m */
    size_t (*scratch_bytes)(const double *option, const ki_cuda_view *view); /* NULL: 0 */
    int (*has_straight)(const double *option);                               /* NULL: no */
    int reads_norms;                                                         /* the kernel reads x_sq */
} ki_cuda_loss_type;

/* NULL: the device does not have it. */
const ki_cuda_loss_type *ki_cuda_loss_find(const char *name);

#define KI_CUDA_LOSS(name)                                                                   \
    cudaError_t ki_cuda_loss_##name(const ki_cuda_view *view, const ki_cuda_loss_args *args, \
                                    cudaStream_t stream)
KI_CUDA_LOSS(contrastive);
KI_CUDA_LOSS(binomial);
KI_CUDA_LOSS(margin);
KI_CUDA_LOSS(margin_after);
KI_CUDA_LOSS(raw);
KI_CUDA_LOSS(lifted);
KI_CUDA_LOSS(npair);
KI_CUDA_LOSS(ntxent);
KI_CUDA_LOSS(supcon);
KI_CUDA_LOSS(circle);
KI_CUDA_LOSS(triplet);
KI_CUDA_LOSS(angular);
KI_CUDA_LOSS(ranked_list);
KI_CUDA_LOSS(histogram);
KI_CUDA_LOSS(fastap);
KI_CUDA_LOSS(amsoftmax);
KI_CUDA_LOSS(arcface);
KI_CUDA_LOSS(normsoftmax);
KI_CUDA_LOSS(proxy_nca);
KI_CUDA_LOSS(proxy_anchor);
KI_CUDA_LOSS(softtriple);

#ifdef __cplusplus
}
#endif
#endif
