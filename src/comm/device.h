/* What ranks tell each other out of a device's memory: a comm (comm/comm.h) whose pointers are those of one backend.
 *
 *     ki_device_comm_open(backend, comm, &device, err)         every rank; NULL: one process, nothing to tell
 *     ki_device_comm_gather(device, own, all, n, bytes, err)   rows of all ranks, in their order
 *     ki_device_comm_sum(device, x, n, err)                    … several, beside other work …
 *     ki_device_comm_settle(device, err)                       from here on the sums are there
 *
 * Calls are queued on the backend, allocate nothing after the first of their size, and, where `can_be_captured` is set, wait
 * for nothing: they may be part of a recorded step. Every rank makes the same calls in the same order. Results are the same
 * bits on every rank and in every repetition with the same number of ranks on the same machines.
 *
 * Three implementations: `direct` is the comm itself, where a backend's memory is the host's; `host` copies to host memory and
 * back and lets the comm do the work, on any device; a backend may have one of its own (ki_backend_type.comm_open: NCCL). Sums of
 * the first two are made in the order of the ranks, as those of a comm are. NCCL has an order of its own, which its choice of algorithm fixes (docs/adr/0101). */
#ifndef KI_COMM_DEVICE_H
#define KI_COMM_DEVICE_H

#include "comm/comm.h"
#include "device/backend.h"

typedef struct ki_device_comm ki_device_comm;

typedef struct ki_device_comm_type {
    const char *name; /* "nccl", "host", "direct" */
    bool can_be_captured;
    /* As ki_comm_type.gather, in the order of the backend's main queue. */
    kith_status (*gather)(ki_device_comm *device, const void *own, void *all, const size_t *bytes,
                          kith_error *err);
    /* x [n] = the sum of all ranks' x. Starts after everything queued so far, and may run beside what is queued next: that
     * must not touch x before settle. */
    kith_status (*sum)(ki_device_comm *device, ki_real *x, int64_t n, kith_error *err);
    /* Work queued from now on starts after all sums. */
    kith_status (*settle)(ki_device_comm *device, kith_error *err);
    void (*close)(ki_device_comm *device);
} ki_device_comm_type;

/* Each implementation's own struct begins with this one. */
struct ki_device_comm {
    const ki_device_comm_type *type;
    ki_backend *backend;
    ki_comm *comm; /* of the same ranks, for the host; never NULL */
};

/* The device comm of a job. Every rank calls this, and all fail or none. Over memory of the host it is `direct`. Elsewhere
 * the variable KITH_COMM chooses: `nccl` (what the backend has of its own, also with one rank), `host`, or unset: the backend's own where all ranks can have it,
 * else `host` with a warning that says why. One rank without the variable gets NULL. comm NULL: one rank. KITH_EUNSUPPORTED:
 * what was asked for is not there, or the ranks' devices are not of one kind. */
kith_status ki_device_comm_open(ki_backend *backend, ki_comm *comm, ki_device_comm **ret_device,
                                kith_error *err);
void ki_device_comm_close(ki_device_comm *device); /* NULL is fine; before its backend */

/* all [n, bytes] = the ranks' rows, of which this one has part ki_comm_own(n). `own` may lie in `all` where it belongs. */
kith_status ki_device_comm_gather(ki_device_comm *device, const void *own, void *all, int64_t n, size_t bytes,
                                  kith_error *err);
kith_status ki_device_comm_sum(ki_device_comm *device, ki_real *x, int64_t n, kith_error *err);
kith_status ki_device_comm_settle(ki_device_comm *device, kith_error *err);
/* The ranks, for the host; NULL: there is one. */
static inline ki_comm *ki_device_comm_ranks(const ki_device_comm *device) {
    return device && !ki_comm_is_alone(device->comm) ? device->comm : NULL;
}

/* Through host memory, and for memory that is the host's; for the files of this folder and tests. */
kith_status ki_staged_open(ki_backend *backend, ki_comm *comm, ki_device_comm **ret_device, kith_error *err);
kith_status ki_direct_open(ki_backend *backend, ki_comm *comm, ki_device_comm **ret_device, kith_error *err);

#endif
