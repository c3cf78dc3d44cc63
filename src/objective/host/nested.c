/* The loss on the first numbers of the embedding, on the host (objective/nested.h). */
#include <string.h>

#include "base/alloc.h"
#include "objective/host/host.h"

kith_status ki_rows_cut(ki_work *work, const ki_real *x, int64_t n, int64_t dim, int64_t width,
                        const ki_real **ret, kith_error *err) {
    ki_real *cut = NULL;
    *ret = x;
    if (width == dim) return KITH_OK;
    KI_TRY(ki_work_reals(work, n * width, "the first numbers of rows", &cut, err));
    for (int64_t i = 0; i < n; i++) memcpy(cut + i * width, x + i * dim, (size_t)width * sizeof *cut);
    *ret = cut;
    return KITH_OK;
}

void ki_rows_add_cut(const ki_real *src, ki_real scale, int64_t n, int64_t dim, int64_t width, ki_real *dst) {
    for (int64_t i = 0; i < n; i++) ki_add_scaled(dst + i * dim, src + i * width, scale, width);
}

/* Buffers for the gradients of what the loss learns: a width's share of them is added when it is known. */
static kith_status take_diffs(ki_evaluation *e, ki_real ***ret, kith_error *err) {
    ki_objective *o = e->o;
    KI_TRY(ki_work_take(&o->work, o->loss.n_params + 1, sizeof **ret, "parameter gradients", ret, err));
    for (size_t i = 0; i < o->loss.n_params; i++) {
        (*ret)[i] = NULL;
        if (o->loss.param[i]->diff)
            KI_TRY(ki_take_zeros(&o->work, o->loss.param[i]->count, "parameter gradients", &(*ret)[i], err));
    }
    return KITH_OK;
}

static void add_diffs(const ki_evaluation *e, ki_real *const *diff, ki_real share) {
    const ki_loss_use *loss = &e->o->loss;
    for (size_t i = 0; i < loss->n_params; i++)
        ki_add_scaled(e->diff_param[ki_param_index(e->o, loss->param[i])], diff[i], share,
                      loss->param[i]->count);
}

/* The first `width` numbers of the rows; *ret_norm: their lengths before they were normalised, or NULL. */
static kith_status cut_rows(ki_evaluation *e, int64_t width, ki_loss_rows *r, ki_real **ret_norm,
                            kith_error *err) {
    ki_work *work = &e->o->work;
    ki_real *unit = NULL;
    *ret_norm = NULL;
    if (width == r->dim) return KITH_OK;
    KI_TRY(ki_rows_cut(work, r->x, r->n, r->dim, width, &r->x, err));
    r->dim = width;
    if (!e->o->loss.normalize) return KITH_OK;
    KI_TRY(ki_work_reals(work, r->n * width, "normalised embeddings", &unit, err));
    KI_TRY(ki_work_reals(work, r->n, "norms", ret_norm, err));
    ki_rows_normalize(r->x, r->n, width, unit, *ret_norm);
    r->x = unit;
    return KITH_OK;
}

kith_status ki_loss_run_nested(ki_evaluation *e, size_t i, ki_slot to, kith_error *err) {
    ki_objective *o = e->o;
    const int64_t width = o->nested.width[i];
    const ki_work_mark mark = ki_work_here(&o->work);
    kith_status status = KITH_OK;
    double value = 0;
    ki_loss_rows rows;
    ki_real **diff_param = NULL, *norm = NULL, *diff = NULL, *diff_cut = NULL;
    KI_CHECK(ki_loss_rows_of(e, &rows, err));
    KI_CHECK(cut_rows(e, width, &rows, &norm, err));
    KI_CHECK(take_diffs(e, &diff_param, err));
    KI_CHECK(ki_work_reals(&o->work, rows.n * width, "the gradient of a width", &diff, err));
    KI_CHECK(ki_loss_run(e, &rows, o->loss.param, diff_param, true, &value, diff, err));
    diff_cut = diff;
    if (norm) {
        KI_CHECK(ki_work_reals(&o->work, rows.n * width, "the gradient of a width", &diff_cut, err));
        ki_rows_normalize_assign(rows.x, norm, diff, rows.n, width, diff_cut);
    }
    const double share = o->nested.share[i];
    ki_rows_add_cut(diff_cut, (ki_real)share, rows.n, e->dim, width, e->slot[to]);
    add_diffs(e, diff_param, (ki_real)share);
    o->term[0].value = share * value + (i > 0 ? o->term[0].value : 0);
    e->total += share * value;
done:
    ki_work_rewind(&o->work, mark);
    return status;
}
