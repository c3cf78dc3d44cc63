/* Kernels: one record per op, bound to its memory once, then called step after step.
 *
 * A backend computes; it knows nothing of graphs. The planner (nn/plan.h) asks it for a kernel per
 * node, lays out all memory once, binds every kernel to its pointers, and from then on a step is a
 * fixed list of forward and backward calls: nothing is allocated, no pointer changes. That is what
 * a captured CUDA graph needs, and it suits oneDNN as well.
 *
 * Gradients. Weight gradients accumulate, activation gradients assign. */
#ifndef KI_DEVICE_KERNEL_H
#define KI_DEVICE_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/real.h"
#include "base/shape.h"
#include "device/memory.h"
#include "device/op.h"

typedef enum ki_mode { KI_INFER, KI_TRAIN } ki_mode;

/* What a kernel is asked to do. Pointers are borrowed for the call. */
typedef struct ki_kernel_spec {
    ki_op_kind kind;
    const ki_attr *attr;
    ki_mode mode;
    int n_src;
    ki_edge src[KI_MAX_SRC];
    ki_edge dst;
    bool has_relu; /* apply ReLU to dst (only if the kernel fuses_relu) */
    bool has_act;  /* inference: apply act to dst (only if the kernel fuses_act, and without has_relu) */
    ki_act act;
    bool
        has_add; /* src[1] is added, before ReLU (batch_norm: if the backend can_fuse_add; others: if the kernel fuses_add) */
    bool has_folded_bn; /* conv2d, inference: scale and shift by the batch norm in params */
    double bn_eps;      /* of the folded batch norm */
    bool frozen_stats;  /* batch_norm: use running statistics also in training */
    bool wants_diff_src[KI_MAX_SRC];
    bool wants_diff_params; /* backward will be called */
    bool keeps_params;      /* … and the parameters do not learn (ki_kernel_info.skips_diffs) */
    bool adds_diff_src; /* conv2d: the gradient is added to diff_src[0] (only if the backend can_add_diffs) */
    bool may_be_late;   /* backward may leave work beside the queue (ki_kernel_info) */
    unsigned masked_src; /* concat: bit k = sources whose ReLU mask this kernel applies in backward */
    uint64_t seed;       /* dropout: names its random stream */
    uint32_t node;
    /* batch_norm: batch statistics are those of all ranks' images (comm/device.h). NULL: of these. */
    struct ki_device_comm *device_comm;
} ki_kernel_spec;

/* What the planner must provide for a kernel, and what it may assume. */
typedef struct ki_kernel_info {
    size_t workspace_bytes; /* written by forward, read by backward */
    size_t scratch_bytes;   /* not kept between calls; shared by all kernels */
    bool backward_reads_src, backward_reads_dst;
    bool mask_in_join; /* ReLU was fused; its backward is left to `join` with dst as the mask */
    bool joins;        /* backward takes several diff_dst parts and sums them itself */
    /* With keeps_params param[].diff is NULL, and backward leaves these gradients out. Not set: it gets memory for them that nobody
     * reads. */
    bool skips_diffs;
    bool shares_diff;  /* backward is the identity for every source: diff_dst is passed on, without a call */
    bool shares_added; /* the same for src[1] with has_add */
    bool takes_part;   /* backward adds binding.diff_added to the gradient of src[0] */
    /* Backward leaves work that runs beside the queue until `settle`. This work reads every src, the gradient
     * too if late_reads_diff_dst is set, and uses late_bytes of its own memory. */
    bool is_late, late_reads_diff_dst;
    size_t late_bytes;
} ki_kernel_info;

typedef struct ki_param_slot {
    ki_real *value; /* NULL: this op has no such parameter */
    ki_real *diff;  /* NULL: not trained */
} ki_param_slot;

/* Device pointers, fixed for the life of a plan. */
typedef struct ki_binding {
    const void *src[KI_MAX_SRC];
    void *dst;
    void *diff_src[KI_MAX_SRC]; /* NULL where not wanted */
    const void *diff_added;     /* of kernels that take a part: another part of src[0]'s gradient, or NULL */
    const void *diff_dst[KI_MAX_SRC];
    int n_diff_dst; /* 1 unless the kernel joins */
    void *workspace, *scratch, *late;
    ki_param_slot param[KI_MAX_PARAMS];
    const uint64_t *step; /* dropout: the step number, read when the kernel runs */
    /* dropout: the place in the whole batch of the first image here, which names the mask; NULL: 0. */
    const uint64_t *first;
} ki_binding;

typedef struct ki_kernel ki_kernel; /* each backend's kernels begin with this struct */

/* One op on one backend. What is not marked optional is required. */
typedef struct ki_kernel_type {
    kith_status (*create)(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err);
    kith_status (*bind)(ki_kernel *kernel, const ki_binding *binding, kith_error *err);
    /* (optional) Called after the masters changed. NULL means that the kernel reads the masters themselves. */
    kith_status (*pack)(ki_kernel *kernel, kith_error *err);
    kith_status (*forward)(ki_kernel *kernel, kith_error *err);
    /* (optional) NULL means for inference only. */
    kith_status (*backward)(ki_kernel *kernel, kith_error *err);
    /* (optional) NULL means that no kernel of the type is late. Of late kernels: work queued from now on waits for everything that this backward and earlier ones left. */
    kith_status (*settle)(ki_kernel *kernel, kith_error *err);
    /* (optional) NULL means that nothing is left to others. Of kernels that may leave gradients of their parameters to a kernel of the same type whose backward comes later: complete
     * those of this one and of the ones before it. Of a late kernel this is late work, too. */
    kith_status (*flush)(ki_kernel *kernel, kith_error *err);
    void (*free)(ki_kernel *kernel);
    bool fuses_relu; /* spec.has_relu may be set */
    bool fuses_add;  /* spec.has_add may be set of a kernel of one source; it shares_added */
    /* (optional) Whether spec.has_act may be set with this function; NULL means with none. */
    bool (*fuses_act)(ki_act how);
} ki_kernel_type;

struct ki_kernel {
    const ki_kernel_type *type;
    ki_backend *backend;
};

/* For backends: make a zeroed kernel of that many bytes, whose struct begins with ki_kernel; ret_kernel points to a
 * pointer. */
kith_status ki_kernel_new(ki_backend *backend, const ki_kernel_type *type, size_t bytes, void *ret_kernel,
                          kith_error *err);

/* Images from a loader, to be cropped, mirrored and normalised into a network's input: channel k of the input
 * is (pixel - mean[k]) * factor[k], the difference first, both in float. */
typedef struct ki_image_step {
    int64_t n, h, w, c;    /* n may be less than the input's number of images: the others are not changed */
    const uint8_t *pixels; /* backend memory [n, h, w, c], RGB where c is 3 */
    const int32_t *window; /* backend memory [n, 3]: x and y of the first pixel, and 1 to mirror the window
                              left to right; NULL: the images are as large as the input and shown as they are */
    bool bgr;              /* channel k of the input is channel c - 1 - k of the pixels */
    float mean[4], factor[4];
} ki_image_step;

/* All kernels of a backend, and what the planner may do because of them. */
typedef struct ki_kernel_set {
    /* [KI_N_OPS], by ki_op_kind; (optional) NULL means that the backend does not have the op. */
    const ki_kernel_type *const *of;
    bool can_fold_bn, can_mask_concat;
    bool can_fuse_add; /* into the batch norm before it: the sum at the end of a residual block */
    /* Kernels and `join` honour the pitch of sources and destinations and of their gradients. The
     * planner then lets the sources of a concat write into its buffer and takes their gradients out of
     * the concat's, and neither needs a kernel. */
    bool can_slice_concat;
    /* Several 1x1 convolutions of one source may become one, whose output their consumers read in slices. The
     * batch norms before a concat may become one after it. Their parameters must then be adjacent in memory
     * (ki_params_new places them so). */
    bool can_merge_convs;
    /* If param[KI_B] [c] is bound, `pool` pads with it instead of with zeros when it takes averages. The
     * planner may then swap an average pool and the 1x1 convolution after it (nn/plan/swap.c). */
    bool can_pad_pools;
    /* A 1x1 convolution of multiples of KI_SLICE_ALIGN channels can add its source's gradient to that of another
     * consumer: the two need not be joined. */
    bool can_add_diffs;
    /* A bias before a batch norm with batch statistics changes nothing, and its gradient is only rounding
     * error. So its sums are not computed, and the gradient stays as it was. */
    bool skips_lost_biases;

    /* dst = (sum of parts) * [mask > 0]; mask may be NULL; dst may be any one of the parts. */
    kith_status (*join)(ki_backend *backend, const ki_edge *edge, int n_parts, const void *const *parts,
                        const void *mask, void *dst, kith_error *err);
    /* (optional) Fill the input of a plan from images. NULL means that the host does it. */
    kith_status (*images)(ki_backend *backend, const ki_image_step *step, const ki_edge *edge, void *dst,
                          kith_error *err);
    /* diff_weights [oc, ic] += diff_dst^T src; diff_bias [oc] (NULL: none) += column sums of diff_dst.
     * src is an activation [mb, ic] described by its edge, diff_dst [mb, oc] plain ki_real: trains one
     * layer from a gradient that stops there. Required. */
    kith_status (*linear_grad)(ki_backend *backend, const ki_edge *src_edge, const void *src,
                               const ki_real *diff_dst, int64_t oc, ki_real *diff_weights, ki_real *diff_bias,
                               kith_error *err);
} ki_kernel_set;

#endif
