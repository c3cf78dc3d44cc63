/* A backend: the nouns it is made of, each with a header of its own, and how it is opened.
 *
 *     memory.h      tensors, and how bytes get to the device and back
 *     queue.h       copies beside the main queue, and marks to wait for
 *     kernel.h      one record per op, and what the planner may do with them
 *     optimizer.h   updates of parameters
 *     capture.h     a whole step recorded once
 *
 * Number type. `storage` is the type of activations; master parameters and their gradients are
 * always ki_real (float), plain, in one slab each. A kernel that wants weights in another form
 * (blocked, bf16, transformed) keeps its own copy, refreshed by `pack` after the masters change.
 *
 * Streams. Calls are queued on the backend's stream and may return before they are done; `sync`
 * waits. A backend is used by one thread at a time. */
#ifndef KI_BACKEND_H
#define KI_BACKEND_H

#include "device/capture.h"
#include "device/kernel.h"
#include "device/memory.h"
#include "device/optimizer.h"
#include "device/queue.h"

/* comm/comm.h, comm/device.h */
struct ki_comm;
struct ki_device_comm;

enum { KI_BACKEND_VERSION = 11 };

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

typedef struct ki_backend_type {
    const char *name, *summary;
    int version; /* KI_BACKEND_VERSION it was written for */

    bool has_bf16; /* takes KI_BF16 */
    bool is_host;  /* its memory is the host's, and a call is finished when it returns or at the next sync */

    /* (optional) The devices found, in words ("NVIDIA H200, 139.8 GiB"), or why there is none. NULL means that the backend
     * always works. */
    kith_status (*describe)(char *ret_text, size_t bytes, kith_error *err);
    /* (optional) How many devices there are. NULL means one. */
    kith_status (*count)(int *ret_n, kith_error *err);
    /* (optional) An open device's kind ("NVIDIA H200") and which one of its machine it is, whatever number it has in this
     * process; each result may be NULL. NULL means that all devices are of one kind. */
    kith_status (*identify)(ki_backend *backend, char *ret_kind, char *ret_which, size_t bytes,
                            kith_error *err);
    /* (optional) A way of its own between ranks (comm/device.h). NULL means that there is none. Every rank calls it, and all
     * fail or none. KITH_EUNSUPPORTED: it cannot be used here, and the line says why. */
    kith_status (*comm_open)(ki_backend *backend, struct ki_comm *comm, struct ki_device_comm **ret_device,
                             kith_error *err);

    /* The options are never NULL here, and the device can do what they ask: ki_backend_open checks this. */
    kith_status (*open)(const ki_backend_options *options, ki_backend **ret_backend, kith_error *err);
    void (*close)(ki_backend *backend);

    ki_memory_type memory;
    const ki_queue_type *queues; /* with is_host: ki_host_queues (device/host_queue.h) */
    ki_kernel_set kernels;
    ki_optimizer_type optimizers;
    ki_capture_type recording; /* (optional) */
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
