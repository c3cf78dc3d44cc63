/* Optimizers as backends run them: one update of all parameters, and the norms that clipping needs. */
#ifndef KI_DEVICE_OPTIMIZER_H
#define KI_DEVICE_OPTIMIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/real.h"

typedef struct ki_backend ki_backend; /* device/backend.h */

/* Optimizers. With g = scale * diff + decay * value, where scale is diff_scale times the clipping
 * factor, rate = clock->lr * run.lr, and value first shrunk by the factor 1 - rate * decoupled:
 *   adam     m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
 *            value -= rate / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
 *   sgd      m = beta1 m + g;  value -= rate * (nesterov ? g + beta1 m : m)
 *   rmsprop  v = beta2 v + (1 - beta2) g^2;  m = beta1 m + g / (sqrt(v) + eps);  value -= rate * m
 * These are PyTorch's forms. With beta1 = 0 sgd and rmsprop take m = NULL and use g in its place. */
typedef enum ki_optim_kind { KI_OPTIM_ADAM, KI_OPTIM_SGD, KI_OPTIM_RMSPROP } ki_optim_kind;

/* Lives in backend memory and is written before each step: a captured step reads it when it runs. */
typedef struct ki_optim_clock {
    double lr;
    int64_t t; /* from 1 */
} ki_optim_clock;

/* A run of parameters that share optimizer settings. */
typedef struct ki_optim_run {
    int64_t n;
    ki_real *value;      /* [n] updated in place */
    const ki_real *diff; /* [n] */
    ki_real *m, *v;      /* [n] moments, zero before the first step; NULL where the kind has none */
    double lr;           /* multiplier on the clock's */
    double decay;        /* L2: added to the gradient as decay * value */
    double decoupled;    /* AdamW: value shrinks by rate * decoupled */
    int64_t start;       /* not updated while clock->t <= start; then its t is clock->t - start */
} ki_optim_run;

typedef struct ki_optim_step {
    ki_optim_kind kind;
    double beta1; /* adam; momentum of sgd and rmsprop */
    double beta2; /* adam; smoothing of rmsprop */
    double eps;
    bool nesterov;         /* sgd with beta1 > 0 */
    double diff_scale;     /* on every gradient: 1 / micro-batches */
    double max_norm;       /* 0: no clipping. Otherwise scale is diff_scale times
                                    min(1, max_norm / (N + 1e-6)), N = diff_scale * the square root of
                                    the sum of norm_sq over the runs that are not asleep */
    const double *norm_sq; /* backend memory [n_runs]: sum_squares of the runs; NULL when max_norm is 0 */
    const ki_optim_clock *clock; /* backend memory */
    int n_runs;
    const ki_optim_run *runs; /* host memory, borrowed for the call; pointers inside are the backend's */
} ki_optim_step;

/* `scale` of a step whose clock and norms the host can read. */
double ki_optim_scale(const ki_optim_step *step);

/* Both are required. */
typedef struct ki_optimizer_type {
    /* One update of all runs. Allocates nothing and waits for nothing. */
    kith_status (*update)(ki_backend *backend, const ki_optim_step *step, kith_error *err);
    /* dst[i] = sum over run i of diff^2, made in double; dst is backend memory [n_runs]. The same bits
     * whatever the number of threads. */
    kith_status (*sum_squares)(ki_backend *backend, int n_runs, const ki_optim_run *runs, double *dst,
                               kith_error *err);
} ki_optimizer_type;

#endif
