/* Steps: the graph after pruning and fusion, one per kernel, in running order. Shared by fuse.c
 * (which makes them), norms.c and merge.c (which replace some) and plan.c (which gives them kernels and
 * memory). */
#ifndef KI_STEPS_H
#define KI_STEPS_H

#include "nn/plan.h"

/* A place in a plan's memory: an offset from the start of a buffer. */
typedef struct ki_place {
    int buffer; /* -1: none */
    size_t offset;
} ki_place;

#define KI_NOWHERE ((ki_place){-1, 0})

/* A gradient part: where it is, and whether something else reads it later. */
typedef struct ki_part {
    ki_place place;
    bool shared;
} ki_part;

enum { KI_MAX_PARTS = KI_MAX_SRC };

typedef struct ki_step {
    const ki_node *node; /* what the kernel computes */
    int node_number;     /* in the graph: the same on every backend */
    const ki_node *bn;   /* folded batch norm, or NULL */
    const ki_node *out;  /* the node whose output the kernel writes (the ReLU when fused) */
    bool has_relu;
    const ki_node *act;         /* fused behind the kernel, or NULL */
    bool has_add;               /* batch_norm: src[1] is what a sum adds to it */
    int n_src, src[KI_MAX_SRC]; /* steps */
    int n_consumers;
    bool is_tap, is_grad_tap;
    bool live;   /* a gradient arrives at the output */
    bool useful; /* a gradient at the output is worth computing: something upstream is trained */
    bool runs_backward;
    bool
        infers; /* computed as for inference: it and all that it depends on are frozen, or the plan is for inference */

    ki_edge edge;
    ki_kernel *kernel; /* NULL for the input */
    ki_kernel_info info;
    bool mask_done; /* the one consumer, a concat, applies this step's ReLU mask */

    bool is_sliced;   /* a concat whose sources write into its buffer: no kernel */
    bool hands_parts; /* a sliced concat: its sources sum their slices of its gradient's parts themselves */
    bool adds_diff;   /* a convolution that adds to a part of its source's gradient that was written before */
    bool is_swapped;  /* a pool that was swapped with a convolution: padded with its bias */
    bool is_view;     /* a convolution done as part of a merged one: no kernel */
    int slice_of; /* the sliced concat this step writes into, or the merged step it is part of; -1: none */
    int64_t slice_at; /* first channel there */

    ki_place dst, workspace, late, grad;
    ki_place diff_src[KI_MAX_SRC];
    ki_place added; /* a part of its source's gradient that it adds to its own */
    int n_parts;
    ki_part part[KI_MAX_PARTS];
    bool joins;    /* the parts must be summed or masked before backward */
    ki_place diff; /* the gradient at the output after joining */
    bool diff_shared;
    bool grad_is_set;                   /* for the next backward */
    bool grad_is_lent;                  /* written by a caller who has its address: never zeroed */
    const void *part_ptr[KI_MAX_PARTS]; /* bound addresses for join */
    const void *mask_ptr;
    void *diff_ptr;
} ki_step;

typedef struct ki_steps {
    ki_step *step;
    int n, n_fused_relu, n_folded_bn;
} ki_steps;

/* Do parameters of the step's node learn? */
bool ki_step_is_trained(const ki_step *step);
/* Prune, fuse and mark which steps take part in backward. ret_steps->step is allocated. */
kith_status ki_steps_make(const ki_graph *graph, const ki_backend_type *backend,
                          const ki_plan_options *options, ki_steps *ret_steps, kith_error *err);
/* Replace the steps by the n allocated steps `step`, whose sources still have the numbers of the old steps:
 * sources that were step s become to[s]. */
void ki_steps_replace(ki_steps *steps, ki_step *step, int n, const int *to);

#endif
