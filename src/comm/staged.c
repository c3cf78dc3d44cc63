/* A device comm through host memory: down to pinned memory, the comm's own call, and up again. The host waits in every call,
 * so none can be part of a recorded step, and nothing runs beside a sum. It works with any device, any number of ranks to a
 * device, and sums in the order of the ranks. */
#include "base/alloc.h"
#include "comm/device.h"

typedef struct staged {
    ki_device_comm base;
    void *memory; /* pinned */
    size_t bytes;
} staged;

/* The memory may still be read by the upload of the call before. */
static kith_status room(staged *s, size_t bytes, char **ret, kith_error *err) {
    ki_backend *backend = s->base.backend;
    KI_TRY(backend->type->memory.sync(backend, err));
    if (bytes > s->bytes) {
        backend->type->queues->host_free(backend, s->memory);
        s->memory = NULL;
        s->bytes = 0;
        KI_TRY(backend->type->queues->host_alloc(backend, bytes, &s->memory, err));
        s->bytes = bytes;
    }
    *ret = s->memory;
    return KITH_OK;
}

static kith_status staged_gather(ki_device_comm *device, const void *own, void *all, const size_t *bytes,
                                 kith_error *err) {
    ki_backend *backend = device->backend;
    ki_comm *comm = device->comm;
    int64_t counts[KI_MOST_RANKS];
    size_t n_all = 0, at = 0;
    char *memory = NULL;
    for (int r = 0; r < comm->size; r++) {
        counts[r] = (int64_t)bytes[r];
        if (r < comm->rank) at += bytes[r];
        n_all += bytes[r];
    }
    /* A rank that cannot take part must not leave the others waiting. */
    kith_status status = room((staged *)device, n_all, &memory, err);
    if (status == KITH_OK && bytes[comm->rank] > 0)
        status = backend->type->memory.download(backend, own, memory + at, bytes[comm->rank], err);
    if (status == KITH_OK) status = backend->type->memory.sync(backend, err);
    KI_TRY(ki_comm_agree(comm, status, err));
    KI_TRY(ki_comm_gather(comm, memory + at, counts, 1, memory, err));
    return backend->type->memory.upload(backend, all, memory, n_all, err);
}

static kith_status staged_sum(ki_device_comm *device, ki_real *x, int64_t n, kith_error *err) {
    ki_backend *backend = device->backend;
    const size_t bytes = (size_t)n * sizeof *x;
    char *memory = NULL;
    kith_status status = room((staged *)device, bytes, &memory, err);
    if (status == KITH_OK) status = backend->type->memory.download(backend, x, memory, bytes, err);
    if (status == KITH_OK) status = backend->type->memory.sync(backend, err);
    KI_TRY(ki_comm_agree(device->comm, status, err));
    KI_TRY(ki_comm_sum(device->comm, (ki_real *)(void *)memory, n, err));
    return backend->type->memory.upload(backend, x, memory, bytes, err);
}

static kith_status staged_settle(ki_device_comm *device, kith_error *err) {
    (void)device, (void)err;
    return KITH_OK;
}

static void staged_close(ki_device_comm *device) {
    ki_backend *backend = device->backend;
    (void)backend->type->memory.sync(backend, NULL);
    backend->type->queues->host_free(backend, ((staged *)device)->memory);
    ki_free(device);
}

static const ki_device_comm_type type = {.name = "host",
                                         .gather = staged_gather,
                                         .sum = staged_sum,
                                         .settle = staged_settle,
                                         .close = staged_close};

kith_status ki_staged_open(ki_backend *backend, ki_comm *comm, ki_device_comm **ret, kith_error *err) {
    staged *s = NULL;
    KI_TRY(ki_zalloc_or(&s, 1, sizeof *s, "messages between ranks", err));
    s->base = (ki_device_comm){.type = &type, .backend = backend, .comm = comm};
    *ret = &s->base;
    return KITH_OK;
}
