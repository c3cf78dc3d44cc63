/* Which device comm a job gets, and what is the same for all of them. */
#include "comm/device.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"

static ki_comm alone = {.size = 1, .n_here = 1};

typedef enum way { EITHER, OWN, HOST } way;

static kith_status read_way(way *ret, kith_error *err) {
    const char *told = getenv("KITH_COMM");
    *ret = EITHER;
    if (!told || !*told) return KITH_OK;
    *ret = strcmp(told, "nccl") == 0 ? OWN : HOST;
    if (*ret == OWN || strcmp(told, "host") == 0) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "KITH_COMM is '%.40s'; wanted nccl or host", told);
    return ki_hint(err, KITH_EINVAL, "without it kith takes NCCL where it can");
}

/* A device's kind, in words. */
typedef struct kind {
    char name[96];
} kind;

static kith_status compare_kinds(const kind *all, int size, kith_error *err) {
    for (int r = 1; r < size; r++) {
        if (strcmp(all[r].name, all[0].name) == 0) continue;
        ki_fail(err, KITH_EUNSUPPORTED, "rank 0 has device %.90s, rank %d has %.90s; wanted one kind",
                all[0].name, r, all[r].name);
        return ki_hint(err, KITH_EUNSUPPORTED,
                       "take machines that are equal, or choose devices with CUDA_VISIBLE_DEVICES");
    }
    return KITH_OK;
}

/* Every rank computes the objective from the same numbers, and must get the same bits. */
static kith_status check_kinds(ki_backend *backend, ki_comm *comm, kith_error *err) {
    kith_status status;
    kind own = {""}, *all = NULL;
    status = ki_alloc_or(&all, (size_t)comm->size, sizeof *all, "names of devices", err);
    if (status == KITH_OK && backend->type->identify)
        status = backend->type->identify(backend, own.name, NULL, sizeof own.name, err);
    KI_CHECK(ki_comm_agree(comm, status, err));
    KI_CHECK(ki_comm_gather_each(comm, &own, sizeof own, all, err));
    KI_CHECK(ki_comm_agree(comm, compare_kinds(all, comm->size, err), err));
done:
    ki_free(all);
    return status;
}

static kith_status open_own(ki_backend *backend, ki_comm *comm, ki_device_comm **ret, kith_error *err) {
    if (backend->type->comm_open) return backend->type->comm_open(backend, comm, ret, err);
    ki_fail(err, KITH_EUNSUPPORTED, "backend %s has no way of its own between ranks", backend->type->name);
    return ki_comm_agree(comm, KITH_EUNSUPPORTED, err);
}

kith_status ki_device_comm_open(ki_backend *backend, ki_comm *comm, ki_device_comm **ret_device,
                                kith_error *err) {
    way asked = EITHER;
    kith_error why;
    *ret_device = NULL;
    if (!comm) comm = &alone;
    /* mpirun does not hand variables on to other machines: the first rank's counts. */
    KI_TRY(ki_comm_agree(comm, read_way(&asked, err), err));
    KI_TRY(ki_comm_broadcast(comm, &asked, sizeof asked, err));
    if (comm->size == 1 && (asked == EITHER || backend->type->is_host)) return KITH_OK;
    if (backend->type->is_host)
        return ki_comm_agree(comm, ki_direct_open(backend, comm, ret_device, err), err);
    KI_TRY(check_kinds(backend, comm, err));
    if (asked != HOST) {
        const kith_status status = open_own(backend, comm, ret_device, &why);
        if (status == KITH_OK) return KITH_OK;
        if (asked == OWN || status != KITH_EUNSUPPORTED) {
            if (err) *err = why;
            return status;
        }
        comm->has_agreed = false; /* not a failure of the job */
        if (ki_comm_is_first(comm))
            ki_log(KITH_LOG_WARNING, "ranks exchange numbers through host memory, which is slower: %s (%s)",
                   why.message, why.hint);
    }
    return ki_comm_agree(comm, ki_staged_open(backend, comm, ret_device, err), err);
}

void ki_device_comm_close(ki_device_comm *device) {
    if (device) device->type->close(device);
}

kith_status ki_device_comm_gather(ki_device_comm *device, const void *own, void *all, int64_t n, size_t bytes,
                                  kith_error *err) {
    size_t each[KI_MOST_RANKS];
    for (int r = 0; r < device->comm->size; r++) {
        int64_t first = 0, n_there = 0;
        ki_comm_part(n, r, device->comm->size, &first, &n_there);
        each[r] = (size_t)n_there * bytes;
    }
    return device->type->gather(device, own, all, each, err);
}

kith_status ki_device_comm_sum(ki_device_comm *device, ki_real *x, int64_t n, kith_error *err) {
    return n > 0 ? device->type->sum(device, x, n, err) : KITH_OK;
}

kith_status ki_device_comm_settle(ki_device_comm *device, kith_error *err) {
    return device->type->settle(device, err);
}
