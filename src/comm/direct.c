/* A device comm of a backend whose memory is the host's: the comm's own calls, without a copy. Sums are made in the order of the
 * ranks. */
#include "base/alloc.h"
#include "comm/device.h"

static kith_status direct_gather(ki_device_comm *device, const void *own, void *all, const size_t *bytes,
                                 kith_error *err) {
    int64_t counts[KI_MOST_RANKS];
    for (int r = 0; r < device->comm->size; r++) counts[r] = (int64_t)bytes[r];
    return ki_comm_gather(device->comm, own, counts, 1, all, err);
}

static kith_status direct_sum(ki_device_comm *device, ki_real *x, int64_t n, kith_error *err) {
    return ki_comm_sum(device->comm, x, n, err);
}

static kith_status direct_settle(ki_device_comm *device, kith_error *err) {
    (void)device, (void)err;
    return KITH_OK;
}

static void direct_close(ki_device_comm *device) { ki_free(device); }

static const ki_device_comm_type type = {.name = "direct",
                                         .gather = direct_gather,
                                         .sum = direct_sum,
                                         .settle = direct_settle,
                                         .close = direct_close};

kith_status ki_direct_open(ki_backend *backend, ki_comm *comm, ki_device_comm **ret, kith_error *err) {
    ki_device_comm *device = NULL;
    KI_TRY(ki_zalloc_or(&device, 1, sizeof *device, "messages between ranks", err));
    *device = (ki_device_comm){.type = &type, .backend = backend, .comm = comm};
    *ret = device;
    return KITH_OK;
}
