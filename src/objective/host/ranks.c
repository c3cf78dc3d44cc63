/* One batch over several ranks: every rank has some of its rows, and evaluates the whole.
 *
 * What terms read is gathered, except maps, which are large: the term that reads one gathers what it makes of its rows
 * (ki_reg_in.gather). Everything after that is computed by every rank from the same numbers, so it is the same bits
 * everywhere, and only gradients that come from maps must be summed (ki_state.sums_over_ranks). */
#include "objective/check.h"
#include "objective/state.h"

static kith_status gather_rows(ki_work *work, const ki_share *share, int64_t m, const ki_real *own,
                               int64_t cols, ki_real **ret, kith_error *err) {
    KI_TRY(ki_work_reals(work, m * cols, "rows of all ranks", ret, err));
    return ki_comm_gather(share->comm, own, share->counts, (size_t)cols * sizeof **ret, *ret, err);
}

static kith_status gather_taps(ki_objective *o, const ki_batch *own, ki_batch *whole, const ki_share *share,
                               kith_error *err) {
    for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) {
        const bool is_gathered = tap == KI_TAP_POOLED || tap == KI_TAP_EMBEDDING || ki_tap_is_teacher(tap);
        ki_real *rows = NULL;
        if (!is_gathered || !(o->taps & KI_TAP_BIT(tap))) continue;
        KI_TRY(gather_rows(&o->work, share, whole->m, own->tap[tap].data, own->tap[tap].cols, &rows, err));
        whole->tap[tap].data = rows;
        whole->tap[tap].rows = whole->m;
    }
    return KITH_OK;
}

kith_status ki_batch_gather(ki_objective *o, const ki_batch *own, ki_batch *ret_whole, ki_share *ret_share,
                            kith_error *err) {
    ki_comm *comm = own->comm;
    int64_t *counts = NULL;
    int32_t *label = NULL;
    ki_share share = {.n = own->m};
    *ret_whole = *own;
    *ret_share = share;
    kith_status status = ki_batch_check(o, own, err);
    if (ki_comm_is_alone(comm)) return status;
    KI_TRY(ki_comm_agree(comm, status, err));
    share.comm = comm;
    KI_TRY(ki_work_take(&o->work, (size_t)comm->size, sizeof *counts, "counts", &counts, err));
    KI_TRY(ki_comm_gather_counts(comm, own->m, counts, err));
    share.counts = counts;
    ret_whole->m = 0;
    for (int r = 0; r < comm->size; r++) {
        if (r == comm->rank) share.first = ret_whole->m;
        ret_whole->m += counts[r];
    }
    if (ret_whole->m < 1) return ki_fail(err, KITH_ESHAPE, "no rank has an item of the batch; wanted 1");
    KI_TRY(ki_work_take(&o->work, (size_t)ret_whole->m, sizeof *label, "labels", &label, err));
    KI_TRY(ki_comm_gather(comm, own->label, counts, sizeof *label, label, err));
    ret_whole->label = label;
    KI_TRY(ki_batch_check_classes(o, ret_whole, err));
    *ret_share = share;
    return gather_taps(o, own, ret_whole, &share, err);
}

kith_status ki_reg_gather(const ki_reg_in *in, ki_real *own, int64_t cols, ki_real **ret_all,
                          kith_error *err) {
    if (!in->share->comm) return *ret_all = own, KITH_OK;
    return gather_rows(in->work, in->share, in->m, own, cols, ret_all, err);
}

int64_t ki_reg_first(const ki_reg_in *in) { return in->share->first; }

kith_status ki_params_sum_shares(ki_objective *o, const ki_share *share, ki_real *const *diff,
                                 kith_error *err) {
    for (size_t i = 0; i < o->params.n && share->comm; i++) {
        const ki_state *param = o->params.item[i];
        if (param->sums_over_ranks && diff[i]) KI_TRY(ki_comm_sum(share->comm, diff[i], param->count, err));
    }
    return KITH_OK;
}
