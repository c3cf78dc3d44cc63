/* Parts of rows judged as they are, after a PCA, whitened, and whitened each by itself before a PCA. */
#include "judge/variants.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "knn/pca.h"
#include "knn/whiten.h"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

void ki_variant_list_release(ki_variant_list *list) {
    ki_free(list->item);
    *list = (ki_variant_list){0};
}

/* ---- some columns of rows ---- */

/* Rows with the labels and roles of others. */
typedef struct view {
    ki_vectors rows;
    const ki_knn_device *device; /* that has rows.device, if this is not NULL */
    bool is_own;                 /* the rows are a copy */
} view;

static void view_release(view *v) {
    if (v->is_own && v->rows.device)
        v->device->backend->type->memory.free(v->device->backend, v->rows.device);
    if (v->is_own) ki_free(v->rows.host);
    *v = (view){0};
}

/* Rows that were made here, on the host. */
static ki_vectors rows_like(const ki_vectors *of, int64_t dim, float *rows) {
    ki_vectors v = *of;
    v.dim = dim;
    v.device = NULL;
    v.host = rows;
    return v;
}

/* A copy of columns where the rows lie: on the host, which decides what rounding cannot, and beside it on the device. */
static kith_status view_columns(ki_vectors *all, const ki_knn_device *device, int64_t from, int64_t width,
                                view *ret, kith_error *err) {
    const float *x = NULL;
    float *rows = NULL;
    KI_TRY(ki_vectors_host(all, &x, err));
    if (from == 0 && width == all->dim) return *ret = (view){.rows = *all}, KITH_OK;
    KI_TRY(ki_alloc_or(&rows, (size_t)all->n, (size_t)width * sizeof *rows, "parts of rows", err));
    for (int64_t i = 0; i < all->n; i++)
        memcpy(rows + i * width, x + i * all->dim + from, (size_t)width * sizeof *rows);
    view v = {.rows = rows_like(all, width, rows), .device = device, .is_own = true};
    kith_status status = KITH_OK;
    if (all->device && device->type) {
        const ki_rows there = {KITH_F32, all->n, all->dim, x, all->device};
        status = device->type->columns(device->backend, &there, from, width, &v.rows.device, err);
        if (status == KITH_ENOMEM) status = KITH_OK; /* ranking uploads what it needs */
    }
    if (status == KITH_OK)
        *ret = v;
    else
        view_release(&v);
    return status;
}

/* What all variants of a call share. */
typedef struct work {
    const ki_variants_options *o;
    ki_knn_device device;
    ki_vectors *from[2]; /* that a change is fitted on, that are judged */
} work;

static int64_t numbers_of(const ki_parts *parts, const ki_variant *v) {
    const int64_t all =
        ki_parts_before(parts, v->first_part + v->n_parts) - ki_parts_before(parts, v->first_part);
    return v->first > 0 ? least(v->first, all) : all;
}

static kith_status view_parts(const work *w, ki_vectors *all, const ki_variant *v, view *ret,
                              kith_error *err) {
    const int64_t from = ki_parts_before(&w->o->parts, v->first_part);
    return view_columns(all, &w->device, from, numbers_of(&w->o->parts, v), ret, err);
}

static kith_status check_rows(const ki_vectors *rows, const ki_parts *parts, kith_error *err) {
    const int64_t dim = ki_parts_before(parts, parts->n);
    if (dim == rows->dim) return KITH_OK;
    return ki_fail(err, KITH_EINTERNAL, "%d parts of %lld numbers, and rows of %lld", parts->n,
                   (long long)dim, (long long)rows->dim);
}

static kith_status open_device(const ki_vectors *rows, ki_knn_device *ret, kith_error *err) {
    return rows->backend ? ki_knn_device_beside(rows->backend, ret, err) : KITH_OK;
}

kith_status ki_judge_embedding(ki_vectors *rows, const ki_variants_options *o, ki_scores *ret,
                               kith_error *err) {
    ki_knn_device device = {0};
    view v = {0};
    KI_TRY(check_rows(rows, &o->parts, err));
    if (o->parts.width[0] == 0)
        return ki_fail(err, KITH_EINTERNAL, "the rows do not begin with an embedding");
    KI_TRY(open_device(rows, &device, err));
    kith_status status = view_columns(rows, &device, 0, o->parts.width[0], &v, err);
    if (status == KITH_OK) status = ki_judge_scores(&v.rows, o->k, o->n_k, NULL, ret, NULL, err);
    view_release(&v);
    ki_knn_device_close(&device);
    return status;
}

static kith_status score(const work *w, ki_vectors *rows, ki_variant_scores *r, kith_error *err) {
    kith_intervals *const intervals = r->variant.has & KI_VARIANT_INTERVALS ? &r->intervals : NULL;
    r->dim[1] = rows->dim;
    KI_TRY(ki_judge_scores(rows, w->o->k, w->o->n_k, NULL, &r->scores, intervals, err));
    if (!w->o->has_clustering || !(r->variant.has & KI_VARIANT_CLUSTERS)) return KITH_OK;
    return ki_judge_cluster(rows, &r->clustered, err);
}

static kith_status score_plain(const work *w, ki_variant_scores *r, kith_error *err) {
    view v = {0};
    KI_TRY(view_parts(w, w->from[1], &r->variant, &v, err));
    const kith_status status = score(w, &v.rows, r, err);
    view_release(&v);
    return status;
}

/* ---- parts whitened each by itself ---- */

/* Rows that are being put together: `at` numbers of each are there. */
typedef struct wide {
    float *rows; /* [n, dim] */
    int64_t dim, at;
} wide;

/* Behind what is there already, each of this length. */
static void put_beside(wide *to, const float *rows, int64_t n, int64_t width, double length) {
    for (int64_t i = 0; i < n; i++) {
        const float *x = rows + i * width;
        double sum = 0;
        for (int64_t k = 0; k < width; k++) sum += (double)x[k] * (double)x[k];
        const float factor = sum > 0 ? (float)(length / sqrt(sum)) : 0;
        for (int64_t k = 0; k < width; k++) to->rows[i * to->dim + to->at + k] = factor * x[k];
    }
    to->at += width;
}

static void whiten_softly(kith_pca *pca) {
    double *variance = pca->variance.data, sum = 0;
    const int64_t n = pca->variance.dim[0];
    for (int64_t j = 0; j < n; j++) sum += variance[j];
    for (int64_t j = 0; j < n; j++) variance[j] += KI_WHITEN_SOFTNESS * sum / (double)n;
    pca->whiten = true;
}

static int64_t most_components(const work *w, const ki_variant *v) {
    return least(v->width ? v->width : w->o->embedding, w->from[0]->n - 1);
}

static kith_status fit(const work *w, ki_vectors *rows, int64_t n, kith_pca *ret, kith_error *err) {
    ki_rows x;
    const kith_pca_options options = {.size = sizeof options, .n_components = n};
    KI_TRY(ki_judge_rows(rows, &w->device, &x, err));
    return ki_pca_fit(&x, &w->device, &options, ret, err);
}

static kith_status apply(const work *w, const kith_pca *pca, ki_vectors *rows, kith_array *ret,
                         kith_error *err) {
    ki_rows x;
    KI_TRY(ki_judge_rows(rows, &w->device, &x, err));
    return ki_pca_apply(pca, &x, &w->device, ret, err);
}

/* One part of all rows, those that it is fitted on and those that are judged. */
static kith_status whiten_part(const work *w, const ki_variant *part, int64_t n_components, double length,
                               wide to[2], kith_error *err) {
    kith_status status = KITH_OK;
    kith_pca pca = {0};
    kith_array white = {0};
    view v = {0};
    for (int i = 0; i < 2; i++) {
        KI_CHECK(view_parts(w, w->from[i], part, &v, err));
        if (i == 0) {
            KI_CHECK(fit(w, &v.rows, n_components, &pca, err));
            whiten_softly(&pca);
        }
        KI_CHECK(apply(w, &pca, &v.rows, &white, err));
        put_beside(&to[i], white.data, w->from[i]->n, n_components, length);
        kith_array_release(&white);
        view_release(&v);
    }
done:
    view_release(&v);
    kith_array_release(&white);
    kith_pca_release(&pca);
    return status;
}

/* All parts of a variant; to[i].rows are the caller's to free. The embedding is as long as all others together. */
static kith_status whiten_parts(const work *w, const ki_variant *v, wide to[2], kith_error *err) {
    const int64_t *width = w->o->parts.width, most = most_components(w, v);
    const int end = v->first_part + v->n_parts;
    int64_t dim = 0;
    for (int p = v->first_part; p < end; p++) dim += least(width[p], most);
    for (int i = 0; i < 2; i++) {
        to[i] = (wide){.dim = dim};
        KI_TRY(ki_alloc_or(&to[i].rows, (size_t)w->from[i]->n, (size_t)dim * sizeof *to[i].rows,
                           "whitened parts", err));
    }
    for (int p = v->first_part; p < end; p++) {
        const ki_variant part = {.first_part = p, .n_parts = 1};
        const double length = p == 0 && v->n_parts > 1 ? sqrt(v->n_parts - 1) : 1;
        if (width[p] > 0) KI_TRY(whiten_part(w, &part, least(width[p], most), length, to, err));
    }
    return KITH_OK;
}

static kith_status score_white(const work *w, ki_variant_scores *r, kith_error *err) {
    wide to[2] = {{0}};
    kith_status status = whiten_parts(w, &r->variant, to, err);
    ki_vectors rows = rows_like(w->from[1], to[1].dim, to[1].rows);
    if (status == KITH_OK) status = score(w, &rows, r, err);
    for (int i = 0; i < 2; i++) ki_free(to[i].rows);
    return status;
}

/* ---- after a PCA ---- */

/* The last one that was fitted, for the variant that follows. */
typedef struct fitted {
    ki_variant by; /* without a name: there is none */
    view rows;     /* that are judged */
    kith_pca pca;
} fitted;

static void fitted_release(fitted *f) {
    view_release(&f->rows);
    kith_pca_release(&f->pca);
    *f = (fitted){0};
}

static bool is_same_fit(const fitted *f, const ki_variant *v) {
    return f->by.name && f->by.first_part == v->first_part && f->by.n_parts == v->n_parts &&
           f->by.fitted_on == v->fitted_on && f->by.width == v->width &&
           f->by.change != KI_CHANGE_EACH_WHITE_PCA && v->change != KI_CHANGE_EACH_WHITE_PCA;
}

static kith_status view_whitened(const work *w, const ki_variant *v, view ret[2], kith_error *err) {
    wide to[2] = {{0}};
    const kith_status status = whiten_parts(w, v, to, err);
    for (int i = 0; i < 2; i++) {
        if (status == KITH_OK)
            ret[i] = (view){.rows = rows_like(w->from[i], to[i].dim, to[i].rows), .is_own = true};
        else
            ki_free(to[i].rows);
    }
    return status;
}

static kith_status fit_variant(const work *w, const ki_variant *v, fitted *f, kith_error *err) {
    kith_status status = KITH_OK;
    view rows[2] = {{.is_own = false}, {.is_own = false}};
    fitted_release(f);
    if (v->change == KI_CHANGE_EACH_WHITE_PCA) KI_CHECK(view_whitened(w, v, rows, err));
    for (int i = 0; i < 2 && v->change != KI_CHANGE_EACH_WHITE_PCA; i++)
        KI_CHECK(view_parts(w, w->from[i], v, &rows[i], err));
    KI_CHECK(fit(w, &rows[0].rows, least(most_components(w, v), rows[0].rows.dim), &f->pca, err));
    f->rows = rows[1];
    rows[1] = (view){0};
    f->by = *v;
done:
    for (int i = 0; i < 2; i++) view_release(&rows[i]);
    return status;
}

static kith_status score_pca(const work *w, fitted *f, ki_variant_scores *r, kith_error *err) {
    kith_array projected = {0};
    if (!is_same_fit(f, &r->variant)) KI_TRY(fit_variant(w, &r->variant, f, err));
    f->pca.whiten = r->variant.change == KI_CHANGE_PCA_WHITE;
    KI_TRY(apply(w, &f->pca, &f->rows.rows, &projected, err));
    r->dim[0] = f->rows.rows.dim;
    ki_vectors rows = rows_like(w->from[1], projected.dim[1], projected.data);
    const kith_status status = score(w, &rows, r, err);
    kith_array_release(&projected);
    return status;
}

/* ---- all ---- */

static kith_status score_variant(const work *w, fitted *f, ki_variant_scores *r, kith_error *err) {
    switch (r->variant.change) {
    case KI_CHANGE_NONE: return score_plain(w, r, err);
    case KI_CHANGE_WHITE: return score_white(w, r, err);
    default: return score_pca(w, f, r, err);
    }
}

kith_status ki_judge_variants(ki_vectors *fitted_on, ki_vectors *test, const ki_variants_options *o,
                              const ki_variant *list, size_t n, ki_variant_list *ret, kith_error *err) {
    kith_status status = KITH_OK;
    ki_variant_list found = {.n = n};
    work w = {.o = o};
    fitted f = {0};
    KI_CHECK(check_rows(test, &o->parts, err));
    KI_CHECK(ki_zalloc_or(&found.item, n ? n : 1, sizeof *found.item, "variants", err));
    KI_CHECK(open_device(test, &w.device, err));
    for (size_t i = 0; i < n; i++) {
        ki_variant_scores *r = &found.item[i];
        *r = (ki_variant_scores){.variant = list[i], .dim = {numbers_of(&o->parts, &list[i])}};
        w.from[0] = list[i].fitted_on == KI_FITTED_TEST ? test : fitted_on;
        w.from[1] = test;
        if (list[i].change != KI_CHANGE_NONE && !w.from[0])
            KI_CHECK(ki_fail(err, KITH_EINTERNAL, "variant %s has nothing to be fitted on", list[i].name));
        if (r->dim[0] > 0) KI_CHECK(score_variant(&w, &f, r, err));
    }
    *ret = found;
    found = (ki_variant_list){0};
done:
    fitted_release(&f);
    ki_knn_device_close(&w.device);
    ki_variant_list_release(&found);
    return status;
}

const char *ki_variant_note(const ki_variant_scores *v, char note[KI_VARIANT_NOTE]) {
    const ki_change change = v->variant.change;
    const bool on_test = v->variant.fitted_on == KI_FITTED_TEST;
    const char *on = on_test ? "the test images themselves; not comparable with the other blocks"
                             : "training images",
               *each = change == KI_CHANGE_EACH_WHITE_PCA ? ", each whitened by itself" : "",
               *pca = change == KI_CHANGE_PCA_WHITE ? "a whitening PCA" : "a PCA";
    if (change == KI_CHANGE_NONE)
        ki_snprintf(note, KI_VARIANT_NOTE, "%s, %lld numbers", v->variant.about, (long long)v->dim[0]);
    else if (change == KI_CHANGE_WHITE)
        ki_snprintf(note, KI_VARIANT_NOTE, "%s%s, whitened on %s", on_test ? "transductive: " : "",
                    v->variant.about, on);
    else
        ki_snprintf(note, KI_VARIANT_NOTE, "%s%s%s, %lld numbers, after %s to %lld fitted on %s",
                    on_test ? "transductive: " : "", v->variant.about, each, (long long)v->dim[0], pca,
                    (long long)v->dim[1], on);
    return note;
}

kith_status ki_judge_normalize(ki_vectors *v, int64_t heads, kith_error *err) {
    const float *x = NULL;
    KI_TRY(ki_vectors_host(v, &x, err));
    wide unit = {.rows = v->host, .dim = v->dim / heads};
    put_beside(&unit, x, v->n * heads, unit.dim, 1);
    if (v->device) v->backend->type->memory.free(v->backend, v->device);
    v->device = NULL; /* those are not normalised */
    return KITH_OK;
}
