/* Plan: a graph made ready to run on one backend for one batch size.
 *
 * Planning drops nodes that no requested tap needs, fuses ReLU into its producer and (for inference) batch
 * norm into the convolution, and asks the backend for a kernel per node. It places every buffer in one block,
 * by lifetime: inference reuses memory as soon as it is free, training keeps only what some backward reads. Backward
 * stops where nothing upstream is trained; frozen nodes there (ki_graph_freeze) are computed as for inference.
 * After ki_plan_new a step allocates nothing.
 *
 * A training step: ki_plan_set_input, ki_plan_forward, read taps, ki_plan_set_grad at taps,
 * ki_plan_backward (parameter gradients accumulate: several of these make micro-batches), then the
 * optimizer.
 *
 * On a device a step does not involve the host: input and step number are written to backend memory,
 * and taps are read and gradients written where the plan keeps them. All these addresses stay the same for
 * the life of the plan, so such a step can be captured and launched again. */
#ifndef KI_PLAN_H
#define KI_PLAN_H

#include "comm/device.h"
#include "nn/params.h"

enum { KI_MAX_TAPS = 8 };

/* Work queued from now on finds complete gradients of all trained parameters from number `from` of the slab to its end
 * (ki_params_diffs). `from` falls from call to call; after backward all are complete. */
typedef kith_status (*ki_plan_ready_fn)(void *user, int64_t from, kith_error *err);

typedef struct ki_plan ki_plan;

typedef struct ki_plan_options {
    int64_t mb;
    ki_mode mode;
    bool frozen_bn;                     /* training: batch norms use and keep their running statistics */
    bool input_grad;                    /* training: also compute the gradient at the input */
    const char *taps[KI_MAX_TAPS];      /* read after forward; NULL-terminated */
    const char *grad_taps[KI_MAX_TAPS]; /* these take a gradient, and can be read too */
    uint64_t seed;                      /* dropout, with the step number */
    const uint64_t *step;               /* backend memory; NULL: the plan counts its forwards from 0 */
    const uint64_t *first; /* with `step`: the place in the whole batch of the first image; NULL: 0 */
    /* Training over ranks: the batch is this rank's part of a whole one, and batch statistics are those of the whole. Every
     * rank makes the same calls, with one image or more. NULL: the batch is whole. */
    ki_device_comm *device_comm;
    /* Training: backward calls it when so many gradients more, at least, are complete. NULL: nobody wants to know. */
    ki_plan_ready_fn ready;
    void *ready_user;
    int64_t ready_every;
    /* A plan that never works while this one does: its memory for activations is used, too, where it is large enough. It must outlive
     * this plan. NULL: none. */
    const ki_plan *beside;
} ki_plan_options;

typedef struct ki_plan_stats {
    size_t activation_bytes, scratch_bytes; /* of the one block */
    size_t unshared_bytes;                  /* what activations would take without reuse */
    int n_kernels, n_fused_relu, n_folded_bn, n_swapped_pools;
    int n_backward;       /* kernels with a backward */
    double forward_flops; /* for the whole batch */
    bool is_guest;        /* in the memory of the plan beside it */
} ki_plan_stats;

/* Borrows graph, params and backend for its life. Errors name the node. */
kith_status ki_plan_new(const ki_graph *graph, ki_params *params, ki_backend *backend,
                        const ki_plan_options *options, ki_plan **ret_plan, kith_error *err);
void ki_plan_free(ki_plan *plan); /* NULL is fine */

/* [mb, c, h, w] plain host memory. */
kith_status ki_plan_set_input(ki_plan *plan, const ki_real *host, kith_error *err);
/* The backend memory of the input, for callers that fill it there. */
kith_status ki_plan_input_memory(ki_plan *plan, ki_edge *ret_edge, void **ret_ptr, kith_error *err);
kith_status ki_plan_forward(ki_plan *plan, kith_error *err);
/* Shape with the batch; host is plain. */
kith_status ki_plan_tap_shape(const ki_plan *plan, const char *tap, ki_shape *ret_shape, kith_error *err);
kith_status ki_plan_read(ki_plan *plan, const char *tap, ki_real *host, kith_error *err);
/* The gradient of the objective at a tap named in grad_taps, for the next backward only (taps not
 * set count as zero). */
kith_status ki_plan_set_grad(ki_plan *plan, const char *tap, const ki_real *host, kith_error *err);
/* The backend memory of a tap's values. */
kith_status ki_plan_tap_memory(const ki_plan *plan, const char *tap, ki_edge *ret_edge, void **ret_ptr,
                               kith_error *err);
/* The backend memory of a tap's gradient. From now on every backward reads it; write it between forward and
 * backward. NULL when nothing upstream is trained, because then it is not needed. */
kith_status ki_plan_grad_memory(ki_plan *plan, const char *tap, ki_edge *ret_edge, void **ret_ptr,
                                kith_error *err);
kith_status ki_plan_backward(ki_plan *plan, kith_error *err);
/* The number of the next forward, from 0: it names dropout's random numbers. A resumed run sets it; each
 * forward adds one. Has no effect if options.step is given. */
void ki_plan_set_step(ki_plan *plan, uint64_t step);
/* The place in the whole batch of this batch's first image; 0 at first. It names dropout's random numbers, too. Has no
 * effect if options.step is given. */
void ki_plan_set_first(ki_plan *plan, int64_t first);
/* With input_grad: the gradient at the input, plain. */
kith_status ki_plan_read_input_grad(ki_plan *plan, ki_real *host, kith_error *err);

void ki_plan_stats_get(const ki_plan *plan, ki_plan_stats *ret_stats);

#endif
