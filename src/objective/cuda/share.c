/* One batch over several ranks on the device: what objective/host/ranks.c does on the host.
 *
 * `own` is the batch as the caller gave it, with this rank's rows. The engine works on `batch`, where labels, embeddings and
 * pooled features are those of all ranks, in memory of the engine. Maps stay where they are: a term that reads one gathers what
 * it makes of its rows (ki_cuda_reg_gather). */
#include "objective/cuda/inside.h"

static bool is_shared(ki_tap tap) {
    return tap == KI_TAP_POOLED || tap == KI_TAP_EMBEDDING || ki_tap_is_teacher(tap);
}

static bool is_read(const ki_engine *e, ki_tap tap) { return (e->objective->taps & KI_TAP_BIT(tap)) != 0; }
static bool is_shared_here(const ki_engine *e, ki_tap tap) { return is_shared(tap) && is_read(e, tap); }

static size_t row_bytes(const ki_engine *e, ki_tap tap) {
    return (size_t)e->own.tap_edge[tap].shape.dim[1] * sizeof(float);
}

static kith_status open_tap(ki_engine *e, ki_tap tap, kith_error *err) {
    const size_t bytes = (size_t)e->m * row_bytes(e, tap);
    void *all = NULL;
    ki_edge *edge = &e->batch.tap_edge[tap];
    if (!e->own.tap[tap] || (!e->own.diff[tap] && !ki_tap_is_teacher(tap)))
        return KITH_OK; /* refused by the check of the batch */
    if (edge->shape.dim[0] != e->n_own)
        return ki_fail(err, KITH_ESHAPE, "%s has %lld rows; this rank has %lld of the %lld items",
                       ki_tap_name(tap), (long long)edge->shape.dim[0], (long long)e->n_own, (long long)e->m);
    edge->shape.dim[0] = e->m;
    edge->bytes = bytes;
    KI_TRY(ki_engine_take(e, bytes, "rows of all ranks", &all, err));
    if (!ki_tap_is_teacher(tap))
        KI_TRY(ki_engine_take(e, bytes, "gradients of all ranks' rows", &e->batch.diff[tap], err));
    e->batch.tap[tap] = all;
    return KITH_OK;
}

kith_status ki_engine_share_open(ki_engine *e, kith_error *err) {
    ki_device_comm *device = e->batch.comm;
    e->own = e->batch;
    e->n_own = e->m;
    if (!device) return KITH_OK;
    ki_comm_own(device->comm, e->m, &e->first, &e->n_own);
    for (ki_tap tap = (ki_tap)0; tap < KI_N_TAPS; tap++) {
        if (is_shared_here(e, tap)) KI_TRY(open_tap(e, tap, err));
    }
    KI_TRY(ki_engine_take(e, (size_t)e->m * sizeof *e->label, "labels of all ranks", &e->all_label, err));
    e->batch.label = e->all_label;
    if (e->own.diff_stopped)
        KI_TRY(ki_engine_take(e, (size_t)e->m * row_bytes(e, KI_TAP_EMBEDDING),
                              "gradients of all ranks' rows", &e->batch.diff_stopped, err));
    /* Every rank has the whole gradient of the weights. */
    if (!is_read(e, KI_TAP_WEIGHT) || ki_comm_is_first(device->comm)) return KITH_OK;
    const size_t bytes = e->own.tap_edge[KI_TAP_WEIGHT].bytes;
    KI_TRY(ki_engine_take(e, bytes, "a gradient", &e->batch.diff[KI_TAP_WEIGHT], err));
    return ki_engine_zero(e, e->batch.diff[KI_TAP_WEIGHT], bytes, err);
}

kith_status ki_engine_share_gather(ki_engine *e, kith_error *err) {
    ki_device_comm *device = e->batch.comm;
    if (!device) return KITH_OK;
    KI_TRY(ki_device_comm_gather(device, e->own.label, e->all_label, e->m, sizeof *e->all_label, err));
    for (ki_tap tap = (ki_tap)0; tap < KI_N_TAPS; tap++) {
        if (is_shared_here(e, tap))
            KI_TRY(ki_device_comm_gather(device, e->own.tap[tap], (void *)e->batch.tap[tap], e->m,
                                         row_bytes(e, tap), err));
    }
    return KITH_OK;
}

/* The own rows of a gradient of all rows. */
static kith_status keep(ki_engine *e, const void *all, void *own, size_t bytes, kith_error *err) {
    KI_CUDA(cudaMemcpyAsync(own, (const char *)all + (size_t)e->first * bytes, (size_t)e->n_own * bytes,
                            cudaMemcpyDeviceToDevice, e->stream));
    return KITH_OK;
}

kith_status ki_engine_share_keep(ki_engine *e, kith_error *err) {
    if (!e->batch.comm) return KITH_OK;
    for (ki_tap tap = (ki_tap)0; tap < KI_N_TAPS; tap++) {
        if (is_shared_here(e, tap) && !ki_tap_is_teacher(tap))
            KI_TRY(keep(e, e->batch.diff[tap], e->own.diff[tap], row_bytes(e, tap), err));
    }
    if (!e->own.diff_stopped) return KITH_OK;
    return keep(e, e->batch.diff_stopped, e->own.diff_stopped, row_bytes(e, KI_TAP_EMBEDDING), err);
}

kith_status ki_engine_sum_diffs(ki_engine *e, kith_error *err) {
    for (size_t i = 0; e->batch.comm && i < e->objective->params.n; i++) {
        const ki_cuda_param *param = &e->param[i];
        if (param->state->sums_over_ranks && param->diff)
            KI_TRY(ki_device_comm_sum(e->batch.comm, param->diff, param->state->count, err));
    }
    return KITH_OK;
}

kith_status ki_cuda_reg_gather(const ki_cuda_reg_in *in, const float *own, int64_t cols, float *all,
                               kith_error *err) {
    return ki_device_comm_gather(in->engine->batch.comm, own, all, in->m, (size_t)cols * sizeof *own, err);
}
