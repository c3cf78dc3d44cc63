/* The backend interface: memory, streams, and one kernel record per op.
 *
 * A backend computes; it knows nothing of graphs. The planner (nn/plan.h) asks it for a kernel per
 * node, lays out all memory once, binds every kernel to its pointers, and from then on a step is a
 * fixed list of forward and backward calls: nothing is allocated, no pointer changes. That is what
 * a captured CUDA graph needs, and it suits oneDNN as well.
 *
 * Layout. An activation is PLAIN (row-major [mb, c, h, w] or [mb, c]) or NATIVE, the backend's own
 * form of [mb, c, h, w] (ref: plain; cpu: blocks of 16 channels; cuda: NHWC). Everything [mb, c] is
 * plain. All maps are native, except that the input of a first convolution is plain images. Kernels may
 * rely on this. No layer above the backend computes an address inside a tensor.
 *
 * Number type. `storage` is the type of activations; master parameters and their gradients are
 * always ki_real (float), plain, in one slab each. A kernel that wants weights in another form
 * (blocked, bf16, transformed) keeps its own copy, refreshed by `pack` after the masters change.
 *
 * Gradients. Weight gradients accumulate, activation gradients assign.
 *
 * Streams. Calls are queued on the backend's stream and may return before they are done; `sync`
 * waits. Host pointers given to upload must stay valid until then. A backend is used by one thread
 * at a time. */
#ifndef KI_BACKEND_H
#define KI_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/op.h"
#include "core/real.h"
#include "core/tensor.h"

enum { KI_BACKEND_VERSION = 6 };

typedef enum ki_layout { KI_PLAIN, KI_NATIVE } ki_layout;

/* One tensor between two kernels, or its gradient: both have the same layout.
 *
 * A map may be a slice of the channels of a wider one: `pitch` is then the wider one's channels, the
 * elements from one pixel to the next, and the pointer that goes with the edge is that of the slice's
 * first channel. Only backends that CAN_SLICE_CONCAT (their native maps have the channels of a pixel
 * side by side) ever see one; slices start at and hold multiples of KI_SLICE_ALIGN channels. */
typedef struct ki_edge {
    ki_shape shape;
    ki_layout layout;
    size_t bytes;  /* without the gaps between the pixels of a slice */
    int64_t pitch; /* 0: not a slice; same as dim[1] */
} ki_edge;

enum { KI_SLICE_ALIGN = 8 };

typedef enum ki_mode { KI_INFER, KI_TRAIN } ki_mode;

/* What a kernel is asked to do. Pointers are borrowed for the call. */
typedef struct ki_kernel_spec {
    ki_op_kind kind;
    const ki_attr *attr;
    ki_mode mode;
    int n_src;
    ki_edge src[KI_MAX_SRC];
    ki_edge dst;
    bool has_relu;      /* apply ReLU to dst (only if the backend CAN_FUSE_RELU for this op) */
    bool has_add;       /* batch_norm: src[1] is added before ReLU (only if the backend CAN_FUSE_ADD) */
    bool has_folded_bn; /* conv2d, inference: scale and shift by the batch norm in params */
    double bn_eps;      /* of the folded batch norm */
    bool frozen_stats;  /* batch_norm: use running statistics also in training */
    bool wants_diff_src[KI_MAX_SRC];
    bool wants_diff_params;
    bool adds_diff_src; /* conv2d: the gradient is added to diff_src[0] (only if the backend CAN_ADD_DIFFS) */
    bool may_be_late;   /* backward may leave work beside the queue (ki_kernel_info) */
    unsigned masked_src; /* concat: bit k = sources whose ReLU mask this kernel applies in backward */
    uint64_t seed;       /* dropout: names its random stream */
    uint32_t node;
    /* batch_norm: batch statistics are those of all ranks' images; both NULL: of these. The second is for backends with
     * queues: comm/device.h. */
    struct ki_comm *comm;
    struct ki_device_comm *device_comm;
} ki_kernel_spec;

/* What the planner must provide for a kernel, and what it may assume. */
typedef struct ki_kernel_info {
    size_t workspace_bytes; /* written by forward, read by backward */
    size_t scratch_bytes;   /* not kept between calls; shared by all kernels */
    bool backward_reads_src, backward_reads_dst;
    bool mask_in_join; /* ReLU was fused; its backward is left to `join` with dst as the mask */
    bool joins;        /* backward takes several diff_dst parts and sums them itself */
    bool shares_diff;  /* backward is the identity for every source: diff_dst is passed on, without a call */
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
    const void *diff_dst[KI_MAX_SRC];
    int n_diff_dst; /* 1 unless the kernel joins */
    void *workspace, *scratch, *late;
    ki_param_slot param[KI_MAX_PARAMS];
    const uint64_t *step; /* dropout: the step number, read when the kernel runs */
    /* dropout: the place in the whole batch of the first image here, which names the mask; NULL: 0. */
    const uint64_t *first;
} ki_binding;

typedef struct ki_backend ki_backend;
typedef struct ki_kernel ki_kernel; /* each backend's kernels begin with this struct */

/* One op on one backend. Every function except pack, backward, settle and flush is required. */
typedef struct ki_kernel_type {
    kith_status (*create)(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err);
    kith_status (*bind)(ki_kernel *kernel, const ki_binding *binding, kith_error *err);
    kith_status (*pack)(ki_kernel *kernel, kith_error *err); /* optional: called after the masters changed */
    kith_status (*forward)(ki_kernel *kernel, kith_error *err);
    kith_status (*backward)(ki_kernel *kernel, kith_error *err); /* optional: NULL for inference only */
    /* Of late kernels: work queued from now on waits for everything that this backward and earlier ones left. */
    kith_status (*settle)(ki_kernel *kernel, kith_error *err);
    /* Of kernels that may leave gradients of their parameters to a kernel of the same type whose backward comes later: complete
     * those of this one and of the ones before it. Of a late kernel this is late work, too. */
    kith_status (*flush)(ki_kernel *kernel, kith_error *err);
    void (*free)(ki_kernel *kernel);
} ki_kernel_type;

struct ki_kernel {
    const ki_kernel_type *type;
    ki_backend *backend;
};

/* For backends: make a zeroed kernel of that many bytes, whose struct begins with ki_kernel; ret_kernel points to a
 * pointer. */
kith_status ki_kernel_new(ki_backend *backend, const ki_kernel_type *type, size_t bytes, void *ret_kernel,
                          kith_error *err);

typedef enum ki_precision { KI_FLOAT32, KI_BF16 } ki_precision;

/* How a backend is opened; all zero is the plain case. */
typedef struct ki_backend_options {
    int device;
    ki_precision precision; /* of activations and matrix products */
    bool tf32;              /* float32 products may use TF32 where the device has it */
    bool deterministic;     /* every run gives the same bits */
    bool plain_plan;        /* plans without slices and merged convolutions, to compare with */
    const char *cache;      /* folder for algorithm choices, borrowed for the backend's life; NULL:
                               $XDG_CACHE_HOME/kith, else ~/.cache/kith */
} ki_backend_options;

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

/* What a device adds to plain calls: copies beside the main queue, and marks that one queue or the host can
 * wait for. Nothing here may be called between capture_begin and capture_end. */
typedef enum ki_queue { KI_QUEUE_MAIN, KI_QUEUE_COPY } ki_queue;
typedef struct ki_mark ki_mark;

typedef struct ki_queue_type {
    /* Host memory that is copied at full speed and without the host's help. */
    kith_status (*host_alloc)(ki_backend *backend, size_t bytes, void **ret_ptr, kith_error *err);
    void (*host_free)(ki_backend *backend, void *ptr); /* NULL is fine */
    /* Queue a copy between such memory and the device's, or inside the device's. */
    kith_status (*copy)(ki_backend *backend, ki_queue queue, void *dst, const void *src, size_t bytes,
                        kith_error *err);
    kith_status (*mark_new)(ki_backend *backend, ki_mark **ret_mark, kith_error *err);
    void (*mark_free)(ki_backend *backend, ki_mark *mark); /* NULL is fine */
    /* The mark is passed when everything queued so far is done. */
    kith_status (*mark_set)(ki_backend *backend, ki_mark *mark, ki_queue queue, kith_error *err);
    /* Work queued from now on starts after the mark; the host does not wait. */
    kith_status (*mark_follow)(ki_backend *backend, const ki_mark *mark, ki_queue queue, kith_error *err);
    /* The host waits for the mark. A mark that was never set is passed. */
    kith_status (*mark_wait)(ki_backend *backend, const ki_mark *mark, kith_error *err);
    /* Seconds between two marks; the host waits for both. */
    kith_status (*mark_seconds)(ki_backend *backend, const ki_mark *from, const ki_mark *to,
                                double *ret_seconds, kith_error *err);
    /* Of the whole device, counting all processes: bytes in use and bytes in total. */
    kith_status (*memory)(ki_backend *backend, size_t *ret_used, size_t *ret_all, kith_error *err);
} ki_queue_type;

typedef struct ki_backend_type {
    const char *name, *summary;
    int version; /* KI_BACKEND_VERSION it was written for */

    bool has_bf16; /* takes KI_BF16 */

    /* The devices found, in words ("NVIDIA H200, 139.8 GiB"), or why there is none. NULL: the backend always
     * works. */
    kith_status (*describe)(char *ret_text, size_t bytes, kith_error *err);

    /* How many devices there are; NULL: one. */
    kith_status (*count)(int *ret_n, kith_error *err);
    /* An open device's kind ("NVIDIA H200") and which one of its machine it is, whatever number it has in this process; each may
     * be NULL. NULL: all devices are of one kind. */
    kith_status (*identify)(ki_backend *backend, char *ret_kind, char *ret_which, size_t bytes,
                            kith_error *err);
    /* A way of its own between ranks (comm/device.h); NULL: none. Every rank calls it, and all fail or none. KITH_EUNSUPPORTED:
     * it cannot be used here, and the line says why. */
    kith_status (*comm_open)(ki_backend *backend, struct ki_comm *comm, struct ki_device_comm **ret_device,
                             kith_error *err);

    /* The options are never NULL here, and the device can do what they ask: ki_backend_open checks this. */
    kith_status (*open)(const ki_backend_options *options, ki_backend **ret_backend, kith_error *err);
    void (*close)(ki_backend *backend);

    /* Memory. */
    kith_status (*alloc)(ki_backend *backend, size_t bytes, void **ret_ptr, kith_error *err);
    void (*free)(ki_backend *backend, void *ptr);
    kith_status (*upload)(ki_backend *backend, void *dst, const void *host, size_t bytes, kith_error *err);
    kith_status (*download)(ki_backend *backend, const void *src, void *host, size_t bytes, kith_error *err);
    kith_status (*zero)(ki_backend *backend, void *dst, size_t bytes, kith_error *err);
    kith_status (*sync)(ki_backend *backend, kith_error *err);

    /* Tensors. Bytes an activation takes; 0 when it cannot be represented. */
    size_t (*edge_bytes)(const ki_backend *backend, const ki_shape *shape, ki_layout layout);
    /* Between plain ki_real host memory and an edge's device memory; counted as reorders. */
    kith_status (*import)(ki_backend *backend, const ki_edge *edge, void *dst, const ki_real *host,
                          kith_error *err);
    kith_status (*export)(ki_backend *backend, const ki_edge *edge, const void *src, ki_real *host,
                          kith_error *err);

    /* Fill the input of a plan from images; NULL if the backend does not need this. */
    kith_status (*images)(ki_backend *backend, const ki_image_step *step, const ki_edge *edge, void *dst,
                          kith_error *err);
    const ki_queue_type *queues; /* NULL: host memory, and a call is finished when it returns */

    /* Kernels: NULL where the backend has none for the op. */
    const ki_kernel_type *kernels[KI_N_OPS];
    bool can_fuse_relu[KI_N_OPS];
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

    /* One update of all runs. Allocates nothing and waits for nothing. */
    kith_status (*optim)(ki_backend *backend, const ki_optim_step *step, kith_error *err);
    /* dst[i] = sum over run i of diff^2, made in double; dst is backend memory [n_runs]. The same bits
     * whatever the number of threads. */
    kith_status (*sum_squares)(ki_backend *backend, int n_runs, const ki_optim_run *runs, double *dst,
                               kith_error *err);
    /* diff_weights [oc, ic] += diff_dst^T src; diff_bias [oc] (NULL: none) += column sums of diff_dst.
     * src is an activation [mb, ic] described by its edge, diff_dst [mb, oc] plain ki_real: trains one
     * layer from a gradient that stops there. */
    kith_status (*linear_grad)(ki_backend *backend, const ki_edge *src_edge, const void *src,
                               const ki_real *diff_dst, int64_t oc, ki_real *diff_weights, ki_real *diff_bias,
                               kith_error *err);

    /* Whole-step capture (optional, all four or none): between begin and end calls are recorded
     * instead of run; launch replays them. */
    kith_status (*capture_begin)(ki_backend *backend, kith_error *err);
    kith_status (*capture_end)(ki_backend *backend, void **ret_step, kith_error *err);
    kith_status (*capture_launch)(ki_backend *backend, void *step, kith_error *err);
    void (*capture_free)(ki_backend *backend, void *step);
} ki_backend_type;

/* Measures what a step spends its time on. It is called after each piece of work was queued: by the planner
 * after each kernel, and by a kernel itself if it has several parts ("conv wgrad" in the middle of a
 * backward). `bytes` is the least that this work must read and write. */
typedef struct ki_probe ki_probe;
struct ki_probe {
    void (*note)(ki_probe *probe, const char *what, double bytes);
    int64_t n; /* notes so far: a kernel that notes its own parts is not noted by the planner */
};

/* Each backend's own struct begins with this one. */
struct ki_backend {
    const ki_backend_type *type;
    int64_t n_reorders; /* imports, exports and layout changes inside kernels; counted per call */
    ki_backend_options options;
    ki_probe *probe; /* borrowed; NULL: nothing is measured */
};

static inline void ki_backend_note(ki_backend *backend, const char *what, double bytes) {
    if (!backend->probe) return;
    backend->probe->n++;
    backend->probe->note(backend->probe, what, bytes);
}

/* The registration table (backend/table.c). Backends of libkith are always available; others are plugins, which
 * are loaded when one is asked for. */

/* `name` may end in a number, as in "cuda:1", which is then options.device. options NULL: all zero. KITH_EUNSUPPORTED
 * when the backend cannot do what they ask, or cannot be loaded. */
kith_status ki_backend_open(const char *name, const ki_backend_options *options, ki_backend **ret_backend,
                            kith_error *err);
/* Whether `name` is one that ki_backend_open knows, without loading or opening anything. */
kith_status ki_backend_check_name(const char *name, kith_error *err);
/* The record of a backend, loaded if necessary, and the number in its name (without one, *number is
 * unchanged). */
kith_status ki_backend_find(const char *name, const ki_backend_type **ret_type, int *number, kith_error *err);
/* The i-th backend's name, whether it can be loaded or not; NULL past the end. */
const char *ki_backend_name_at(int i);
void ki_backend_close(ki_backend *backend); /* NULL is fine */

#endif
