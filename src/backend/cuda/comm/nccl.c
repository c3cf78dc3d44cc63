/* A device comm over NCCL.
 *
 * All its calls go to one stream beside the main one, of high priority: NCCL wants the calls of a communicator in one order,
 * and a sum that waits behind convolutions keeps every rank waiting. A gather is joined to the main stream at once, sums when
 * they are settled. Both are plain waits for events, so they are captured with the rest of a step.
 *
 * NVLink's switches can add numbers themselves (NVLS), in an order that is not the same in every call. NCCL is told not to use
 * that, unless the user has said otherwise; its other algorithms add in an order that sizes and machines fix.
 *
 * NCCL gathers equal parts; unequal ones (by one row) are a group of broadcasts. */
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/comm/library.h"
#include "backend/cuda/cuda.h"
#include "comm/device.h"

typedef struct nccl {
    ki_device_comm base;
    const ki_nccl *library;
    void *ranks; /* ncclComm_t */
    cudaStream_t stream;
    cudaEvent_t ready, done;
} nccl;

#define TRY_NCCL(library, call, arguments)                                            \
    do {                                                                              \
        const int error_ = (library)->call arguments;                                 \
        if (error_ != KI_NCCL_OK) return ki_nccl_fail((library), error_, #call, err); \
    } while (0)

/* What is queued on the side stream starts after the main one's work so far, and the other way round. */
static kith_status fork_side(nccl *n, kith_error *err) {
    KI_CUDA(cudaEventRecord(n->ready, ki_cuda_stream(n->base.backend)));
    KI_CUDA(cudaStreamWaitEvent(n->stream, n->ready, 0));
    return KITH_OK;
}

static kith_status join_side(nccl *n, kith_error *err) {
    KI_CUDA(cudaEventRecord(n->done, n->stream));
    KI_CUDA(cudaStreamWaitEvent(ki_cuda_stream(n->base.backend), n->done, 0));
    return KITH_OK;
}

static kith_status gather_unequal(nccl *n, const void *own, char *all, const size_t *bytes, kith_error *err) {
    const ki_nccl *library = n->library;
    TRY_NCCL(library, group_start, ());
    int error = KI_NCCL_OK;
    for (int r = 0; r < n->base.comm->size && error == KI_NCCL_OK; all += bytes[r++]) {
        if (bytes[r] > 0)
            error = library->broadcast(r == n->base.comm->rank ? own : all, all, bytes[r], KI_NCCL_BYTE, r,
                                       n->ranks, n->stream);
    }
    const int ended = library->group_end();
    if (error == KI_NCCL_OK) error = ended;
    return error == KI_NCCL_OK ? KITH_OK : ki_nccl_fail(library, error, "broadcast", err);
}

static kith_status nccl_gather(ki_device_comm *device, const void *own, void *all, const size_t *bytes,
                               kith_error *err) {
    nccl *n = (nccl *)device;
    bool is_equal = true;
    for (int r = 1; r < device->comm->size; r++) is_equal &= bytes[r] == bytes[0];
    KI_TRY(fork_side(n, err));
    if (is_equal)
        TRY_NCCL(n->library, all_gather, (own, all, bytes[0], KI_NCCL_BYTE, n->ranks, n->stream));
    else
        KI_TRY(gather_unequal(n, own, all, bytes, err));
    return join_side(n, err);
}

static kith_status nccl_sum(ki_device_comm *device, ki_real *x, int64_t count, kith_error *err) {
    nccl *n = (nccl *)device;
    KI_TRY(fork_side(n, err));
    TRY_NCCL(n->library, all_reduce, (x, x, (size_t)count, KI_NCCL_FLOAT, KI_NCCL_SUM, n->ranks, n->stream));
    return KITH_OK;
}

static kith_status nccl_settle(ki_device_comm *device, kith_error *err) {
    return join_side((nccl *)device, err);
}

/* A rank that leaves others behind does not wait for them. After an error of the device NCCL's end may wait for ever: then its memory
 * stays until the process ends. */
static void leave(nccl *n) {
    const cudaError_t state = n->stream ? cudaStreamQuery(n->stream) : cudaSuccess;
    if (state == cudaSuccess || state == cudaErrorNotReady) (void)n->library->abort(n->ranks);
    n->ranks = NULL;
}

static void nccl_close(ki_device_comm *device) {
    nccl *n = (nccl *)device;
    (void)cudaSetDevice(ki_cuda_of(device->backend)->device);
    if (n->ranks && device->comm->is_lost) leave(n);
    if (n->stream) (void)cudaStreamSynchronize(n->stream);
    if (n->ranks) (void)n->library->destroy(n->ranks);
    if (n->stream) (void)cudaStreamDestroy(n->stream);
    ki_cuda_event_free(n->ready);
    ki_cuda_event_free(n->done);
    ki_free(n);
}

static const ki_device_comm_type type = {.name = "nccl",
                                         .can_be_captured = true,
                                         .gather = nccl_gather,
                                         .sum = nccl_sum,
                                         .settle = nccl_settle,
                                         .close = nccl_close};

/* ---- opening ---- */

/* What a rank brings: its device, its machine, its library. */
typedef struct brought {
    char which[64];
    int64_t machine, version;
} brought;

static kith_status compare(const brought *all, int size, kith_error *err) {
    for (int r = 1; r < size; r++) {
        if (all[r].version != all[0].version)
            return ki_fail(err, KITH_EUNSUPPORTED,
                           "rank 0 has NCCL version %lld, rank %d has %lld; wanted one",
                           (long long)all[0].version, r, (long long)all[r].version);
        for (int q = 0; q < r; q++) {
            if (all[q].machine != all[r].machine || strcmp(all[q].which, all[r].which) != 0) continue;
            ki_fail(err, KITH_EUNSUPPORTED, "ranks %d and %d share a device; NCCL wants one for each rank", q,
                    r);
            return ki_hint(
                err, KITH_EUNSUPPORTED,
                "start one rank for each device of a machine; KITH_COMM=host lets ranks share one");
        }
    }
    return KITH_OK;
}

static kith_status check_ranks(ki_backend *backend, ki_comm *comm, const ki_nccl *library, kith_error *err) {
    kith_status status;
    brought own = {.machine = comm->machine, .version = library->version}, *all = NULL;
    status = backend->type->identify(backend, NULL, own.which, sizeof own.which, err);
    if (status == KITH_OK)
        status = ki_alloc_or(&all, (size_t)comm->size, sizeof *all, "devices of ranks", err);
    KI_CHECK(ki_comm_agree(comm, status, err));
    KI_CHECK(ki_comm_gather_each(comm, &own, sizeof own, all, err));
    KI_CHECK(ki_comm_agree(comm, compare(all, comm->size, err), err));
done:
    ki_free(all);
    return status;
}

static kith_status make_streams(nccl *n, kith_error *err) {
    int least = 0, greatest = 0;
    KI_CUDA(cudaSetDevice(ki_cuda_of(n->base.backend)->device));
    KI_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    KI_CUDA(cudaStreamCreateWithPriority(&n->stream, cudaStreamNonBlocking, greatest));
    KI_TRY(ki_cuda_event_new(n->base.backend, &n->ready, err));
    return ki_cuda_event_new(n->base.backend, &n->done, err);
}

static kith_status get_id(const ki_nccl *library, const ki_comm *comm, ki_nccl_id *ret_id, kith_error *err) {
    if (ki_comm_is_first(comm)) TRY_NCCL(library, get_id, (ret_id));
    return KITH_OK;
}

static kith_status join_ranks(nccl *n, const ki_nccl_id *id, kith_error *err) {
    KI_CUDA(cudaSetDevice(ki_cuda_of(n->base.backend)->device));
    if (setenv("NCCL_NVLS_ENABLE", "0", 0) != 0) return ki_fail_memory(err, 1, "the environment");
    TRY_NCCL(n->library, init, (&n->ranks, n->base.comm->size, *id, n->base.comm->rank));
    return KITH_OK;
}

kith_status ki_cuda_nccl_open(ki_backend *backend, ki_comm *comm, ki_device_comm **ret_device,
                              kith_error *err) {
    kith_status status;
    nccl *n = NULL;
    const ki_nccl *library = NULL;
    ki_nccl_id id = {{0}};
    KI_CHECK(ki_comm_agree(comm, ki_nccl_load(&library, err), err));
    KI_CHECK(check_ranks(backend, comm, library, err));
    status = ki_zalloc_or(&n, 1, sizeof *n, "NCCL", err);
    if (status == KITH_OK) {
        n->base = (ki_device_comm){.type = &type, .backend = backend, .comm = comm};
        n->library = library;
        status = make_streams(n, err);
    }
    if (status == KITH_OK) status = get_id(library, comm, &id, err);
    KI_CHECK(ki_comm_agree(comm, status, err));
    KI_CHECK(ki_comm_broadcast(comm, &id, sizeof id, err));
    KI_CHECK(ki_comm_agree(comm, join_ranks(n, &id, err), err));
    *ret_device = &n->base;
    n = NULL;
done:
    if (n && n->ranks) leave(n); /* another rank could not join */
    if (n) nccl_close(&n->base);
    return status;
}
