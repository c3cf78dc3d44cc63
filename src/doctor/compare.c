/* The vectors of a data set, and what is found by them. What earlier passes leave out is not compared: a copy in another class
 * would be the nearest neighbour of its twin. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "doctor/doctor.h"
#include "kith/vectors.h"

typedef struct source {
    kith_model *model;
    kith_vectors *made;
    kith_array rows;      /* of the items below; borrowed */
    kith_array own;       /* rows that were read here */
    const int64_t *items; /* [n]; NULL: all in order */
    int64_t n;
} source;

static kith_status open_model(const ki_doctor *d, source *s, kith_error *err) {
    KITH_OPTIONS(kith_model_options, general);
    general.weights = "general";
    return kith_model_open(d->options->model ? d->options->model : &general, &s->model, err);
}

static kith_status embed(ki_doctor *d, source *s, kith_error *err) {
    kith_status status;
    int64_t *items = NULL, n = 0;
    KITH_OPTIONS(kith_embed_options, how);
    how.most_bad = -1;
    how.progress = ki_doctor_tell;
    how.user = d;
    KI_CHECK(ki_alloc_or(&items, (size_t)d->n_items, sizeof *items, "items", err));
    for (int64_t i = 0; i < d->n_items; i++) {
        if (d->why_out[i] < 0) items[n++] = i;
    }
    if (n == 0) goto done;
    KI_CHECK(open_model(d, s, err));
    KI_CHECK(kith_model_embed_items(s->model, d->set, items, n, &how, &s->made, err));
    KI_CHECK(kith_vectors_array(s->made, &s->rows, err));
    s->n = kith_vectors_count(s->made);
    s->items = kith_vectors_items(s->made);
done:
    ki_free(items);
    return status;
}

/* The vectors of features are the features. */
static kith_status read_rows(const ki_doctor *d, source *s, kith_error *err) {
    const int64_t dim = ki_npy_rows_dim(d->set->rows);
    KI_TRY(kith_array_init(KITH_F32, 2, (int64_t[]){d->n_items, dim}, &s->own, err));
    for (int64_t i = 0; i < d->n_items; i++) {
        float *row = (float *)s->own.data + i * dim;
        if (d->why_out[i] < 0) KI_TRY(ki_dataset_row(d->set, i, row, err));
    }
    s->rows = s->own;
    s->n = d->n_items;
    return KITH_OK;
}

static kith_status take_given(const ki_doctor *d, source *s, kith_error *err) {
    const kith_array *given = d->options->vectors;
    s->rows = *given;
    s->items = d->options->vector_items;
    s->n = given->dim[0];
    if (given->dtype == KITH_F32) return KITH_OK;
    KI_TRY(kith_array_convert(given, KITH_F32, &s->own, err));
    s->rows = s->own;
    return KITH_OK;
}

static void to_length_1(float *row, int64_t dim) {
    double sum = 0;
    for (int64_t k = 0; k < dim; k++) sum += (double)row[k] * row[k];
    const double scale = sum > 0 ? 1 / sqrt(sum) : 0;
    for (int64_t k = 0; k < dim; k++) row[k] = (float)(row[k] * scale);
}

static void rows_release(ki_doctor_rows *r) {
    kith_array_release(&r->unit);
    ki_free(r->item);
    ki_free(r->label);
    ki_free(r->count);
    ki_free(r->near);
    ki_free(r->is_named);
}

static kith_status fill_rows(const ki_doctor *d, const source *s, ki_doctor_rows *r, kith_error *err) {
    int64_t n = 0, at = 0;
    for (int64_t i = 0; i < s->n; i++) n += d->why_out[s->items ? s->items[i] : i] < 0;
    r->dim = s->rows.dim[1];
    KI_TRY(kith_array_init(KITH_F32, 2, (int64_t[]){n, r->dim}, &r->unit, err));
    KI_TRY(ki_alloc_or(&r->item, (size_t)n, sizeof *r->item, "rows", err));
    KI_TRY(ki_alloc_or(&r->label, (size_t)n, sizeof *r->label, "rows", err));
    KI_TRY(ki_zalloc_or(&r->is_named, (size_t)n, sizeof *r->is_named, "rows", err));
    KI_TRY(ki_zalloc_or(&r->count, d->set->n_classes, sizeof *r->count, "class counts", err));
    for (int64_t i = 0; i < s->n; i++) {
        const int64_t item = s->items ? s->items[i] : i;
        if (d->why_out[item] >= 0) continue;
        float *row = (float *)r->unit.data + at * r->dim;
        memcpy(row, (const float *)s->rows.data + i * r->dim, (size_t)r->dim * sizeof *row);
        to_length_1(row, r->dim);
        r->item[at] = item;
        r->label[at] = ki_doctor_label(d, item);
        if (r->label[at] >= 0) r->count[r->label[at]]++;
        at++;
    }
    r->n = n;
    return KITH_OK;
}

static kith_status find_nearest(const ki_doctor *d, ki_doctor_rows *r, kith_error *err) {
    kith_gallery *gallery = NULL;
    KITH_OPTIONS(kith_knn_options, how);
    if (d->options->model) how.device = d->options->model->device;
    KI_TRY(ki_alloc_or(&r->near, (size_t)r->n, KI_DOCTOR_NEAREST * sizeof *r->near, "neighbours", err));
    KI_TRY(kith_gallery_new(&r->unit, &how, &gallery, err));
    const kith_status status = kith_gallery_self(gallery, KI_DOCTOR_NEAREST, r->near, err);
    kith_gallery_free(gallery);
    return status;
}

static kith_status find(ki_doctor *d, source *s, ki_doctor_rows *r, kith_error *err) {
    const kith_doctor_options *o = d->options;
    KI_TRY(fill_rows(d, s, r, err));
    if (r->n < 2) return KITH_OK;
    KI_TRY(find_nearest(d, r, err));
    KI_TRY(ki_doctor_labels(d, r, err));
    KI_TRY(ki_doctor_odd(d, r, err));
    if (o->near <= 1 && (d->are_pictures || !d->set->rows)) KI_TRY(ki_doctor_near(d, r, err));
    if (ki_doctor_shortcut_room(d) == 0) return KITH_OK;
    if (!s->model) KI_TRY(open_model(d, s, err));
    return ki_doctor_shortcut(d, r, s->model, err);
}

kith_status ki_doctor_compare(ki_doctor *d, kith_error *err) {
    kith_status status;
    source s = {0};
    ki_doctor_rows rows = {0};
    if (d->options->vectors) {
        KI_CHECK(take_given(d, &s, err));
    } else {
        KI_CHECK(d->set->rows ? read_rows(d, &s, err) : embed(d, &s, err));
        if (!d->set->rows) d->n_done += d->n_items;
    }
    status = s.n < 2 ? KITH_OK : find(d, &s, &rows, err);
done:
    rows_release(&rows);
    kith_vectors_free(s.made);
    kith_model_free(s.model);
    kith_array_release(&s.own);
    return status;
}
