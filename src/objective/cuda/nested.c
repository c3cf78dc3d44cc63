/* The loss on the first numbers of the embedding, on the device: host/nested.c is the same on the host. */
#include "objective/cuda/inside.h"
#include "objective/cuda/rows.h"

static kith_status take_floats(ki_engine *e, int64_t n, float **ret, kith_error *err) {
    return ki_engine_take(e, (size_t)n * sizeof **ret, "first numbers of embeddings", ret, err);
}

static kith_status open_rows(ki_engine *e, ki_cuda_nested *w, kith_error *err) {
    const int64_t n = e->n_labelled;
    KI_TRY(take_floats(e, n * w->width, &w->diff, err));
    if (w->width == e->dim) return KITH_OK;
    KI_TRY(take_floats(e, n * w->width, &w->cut, err));
    KI_TRY(take_floats(e, n, &w->sq, err));
    if (!e->objective->loss.normalize) return KITH_OK;
    KI_TRY(take_floats(e, n * w->width, &w->unit, err));
    KI_TRY(take_floats(e, n, &w->norm, err));
    return take_floats(e, n * w->width, &w->diff_cut, err);
}

kith_status ki_cuda_nested_open(ki_engine *e, const ki_cuda_param *param, kith_error *err) {
    const ki_nested *nested = &e->objective->nested;
    float share[KI_NESTED_MOST], *shares = NULL;
    KI_TRY(ki_zalloc_or(&e->nested, (size_t)nested->n, sizeof *e->nested, "widths", err));
    KI_TRY(take_floats(e, nested->n, &shares, err));
    for (int i = 0; i < nested->n; i++) share[i] = (float)nested->share[i];
    KI_TRY(
        e->backend->type->memory.upload(e->backend, shares, share, (size_t)nested->n * sizeof *share, err));
    KI_TRY(e->backend->type->memory.sync(e->backend, err));
    for (int i = 0; i < nested->n; i++) {
        ki_cuda_nested *w = &e->nested[i];
        w->width = nested->width[i];
        KI_TRY(open_rows(e, w, err));
        KI_TRY(ki_cuda_site_open(e, param, w->width, true, shares + i, &w->site, err));
        w->site->weighs_value = true;
    }
    return KITH_OK;
}

/* The site scales what it gives by the width's share. */
kith_status ki_cuda_nested_run(ki_engine *e, size_t i, const float *x, float *diff_x, kith_error *err) {
    const ki_cuda_nested *w = &e->nested[i];
    const int64_t n = e->n_labelled;
    const float *rows = x, *sq = e->loss_sq, *diff = w->diff;
    if (w->cut) {
        KI_CUDA(ki_cuda_rows_cut(x, n, e->dim, w->width, w->cut, e->stream));
        KI_CUDA(ki_cuda_rows_normalize(w->cut, n, w->width, w->unit, w->norm, w->sq, NULL, e->stream));
        rows = w->unit ? w->unit : w->cut;
        sq = w->sq;
    }
    int64_t *pairs = i + 1 == (size_t)e->objective->nested.n ? e->values->pairs : NULL;
    KI_TRY(ki_cuda_site_run(w->site, rows, sq, &e->values->value[0], pairs, w->diff, err));
    if (w->unit) {
        KI_CUDA(ki_cuda_rows_normalize_backward(w->unit, w->norm, w->diff, NULL, n, w->width, false,
                                                w->diff_cut, e->stream));
        diff = w->diff_cut;
    }
    KI_CUDA(ki_cuda_rows_add_cut(diff, n, w->width, diff_x, e->dim, e->stream));
    return KITH_OK;
}
