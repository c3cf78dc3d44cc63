/* Odd ones out: images that are unlike every other of their class, and unlike everything else.
 *
 * A photo of something that does not belong to the set is far from its class. So is one with a wrong label, and that is near
 * another class. Odd ones may come in several (a dozen drawings among photos), which are near each other: they must not vouch for
 * one another. So first those that are far from their class are set aside, by the median of the class, and then an image is odd if
 * the nearest images that were not set aside are far, too. How far is far differs between sets, so that is said by the distances that
 * three of four images stay below, and nine of ten. Distances are 1 - cosine, to the three nearest. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "doctor/doctor.h"

enum { N_ASKED = 3, LEAST_JUDGED = 20 };
#define SET_ASIDE 1.7 /* times the median distance in the class */
#define MOST 0.75
#define NEARLY_ALL 0.9

typedef struct judged {
    double *own;      /* [n]: mean distance to the nearest of the class; NaN: too few */
    double *all;      /* [n]: to the nearest of those that were not set aside */
    int64_t *example; /* [n]: the nearest of the class, a row */
    bool *is_aside;   /* [n] */
    double *sorted;   /* [n] scratch */
} judged;

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The rows of one class, which are compared with each other. */
static kith_status ask_class(const ki_doctor *d, const ki_doctor_rows *r, const int64_t *row, int64_t n,
                             judged *j, kith_error *err) {
    kith_status status;
    kith_array own = {0};
    kith_neighbor *near = NULL;
    kith_gallery *gallery = NULL;
    KITH_OPTIONS(kith_knn_options, how);
    if (d->options->model) how.device = d->options->model->device;
    KI_CHECK(kith_array_init(KITH_F32, 2, (int64_t[]){n, r->dim}, &own, err));
    KI_CHECK(ki_alloc_or(&near, (size_t)n, N_ASKED * sizeof *near, "neighbours", err));
    for (int64_t i = 0; i < n; i++) {
        const float *from = (const float *)r->unit.data + row[i] * r->dim;
        for (int64_t k = 0; k < r->dim; k++) ((float *)own.data)[i * r->dim + k] = from[k];
    }
    KI_CHECK(kith_gallery_new(&own, &how, &gallery, err));
    KI_CHECK(kith_gallery_self(gallery, N_ASKED, near, err));
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int k = 0; k < N_ASKED; k++) sum += 1 - near[i * N_ASKED + k].score;
        j->sorted[i] = j->own[row[i]] = sum / N_ASKED;
        j->example[row[i]] = row[near[i * N_ASKED].index];
    }
    qsort(j->sorted, (size_t)n, sizeof *j->sorted, by_value);
    for (int64_t i = 0; i < n; i++) j->is_aside[row[i]] = j->own[row[i]] > SET_ASIDE * j->sorted[n / 2];
    /* The example is one that belongs there, where there is any. */
    for (int64_t i = 0; i < n; i++) {
        for (int k = N_ASKED - 1; k >= 0; k--) {
            const int64_t other = row[near[i * N_ASKED + k].index];
            if (!j->is_aside[other]) j->example[row[i]] = other;
        }
    }
done:
    kith_gallery_free(gallery);
    ki_free(near);
    kith_array_release(&own);
    return status;
}

/* Rows by class: those of class c are row[begin[c]] … */
static kith_status ask_classes(const ki_doctor *d, const ki_doctor_rows *r, judged *j, kith_error *err) {
    kith_status status;
    const size_t n_classes = d->set->n_classes;
    int64_t *row = NULL, *begin = NULL;
    KI_CHECK(ki_alloc_or(&row, (size_t)r->n, sizeof *row, "rows", err));
    KI_CHECK(ki_zalloc_or(&begin, n_classes + 1, sizeof *begin, "classes", err));
    for (size_t c = 0; c < n_classes; c++) begin[c + 1] = begin[c] + r->count[c];
    for (int64_t i = 0; i < r->n; i++) {
        if (r->label[i] >= 0) row[begin[r->label[i]]++] = i;
    }
    for (size_t c = 0; c < n_classes; c++) {
        if (r->count[c] > N_ASKED)
            KI_CHECK(ask_class(d, r, row + begin[c] - r->count[c], r->count[c], j, err));
    }
done:
    ki_free(row);
    ki_free(begin);
    return status;
}

/* Where all neighbours that are known were set aside, the others are no nearer than the last. */
static double nearest_of_all(const ki_doctor_rows *r, const judged *j, int64_t row) {
    const kith_neighbor *near = r->near + row * KI_DOCTOR_NEAREST;
    double sum = 0, last = 0;
    int n = 0;
    for (int k = 0; k < KI_DOCTOR_NEAREST && n < N_ASKED && near[k].index >= 0; k++) {
        last = 1 - near[k].score;
        if (j->is_aside[near[k].index]) continue;
        sum += last;
        n++;
    }
    return (sum + (N_ASKED - n) * last) / N_ASKED;
}

static kith_status say(ki_doctor *d, const ki_doctor_rows *r, const judged *j, double score,
                       double nearly_all, int64_t row, kith_error *err) {
    const int64_t item = r->item[row];
    KI_TRY(ki_doctor_add(
        d, KITH_FINDING_ODD, score, -1, err,
        "%s is unlike the rest: its distance to the nearest pictures is %.2f, and to those of %s "
        "%.2f; nine of ten pictures have less than %.2f",
        ki_dataset_item_name(d->set, (size_t)item), j->all[row], d->set->class_[r->label[row]].name,
        j->own[row], nearly_all));
    d->findings[d->n - 1].example = r->item[j->example[row]];
    return ki_doctor_item(d, item, false, err);
}

/* What is blurred was said to be, and is far from everything for that reason. */
static bool is_blurred(const ki_doctor *d, int64_t item) {
    for (size_t i = 0; i < d->n; i++) {
        if (d->findings[i].kind == KITH_FINDING_BLURRED && d->items[d->findings[i].begin] == item)
            return true;
    }
    return false;
}

static kith_status judge(ki_doctor *d, const ki_doctor_rows *r, judged *j, kith_error *err) {
    int64_t n = 0;
    for (int64_t i = 0; i < r->n; i++) j->own[i] = NAN;
    KI_TRY(ask_classes(d, r, j, err));
    for (int64_t i = 0; i < r->n; i++) j->sorted[i] = j->all[i] = nearest_of_all(r, j, i);
    for (int64_t i = 0; i < r->n; i++) n += !isnan(j->own[i]);
    if (n < LEAST_JUDGED) return KITH_OK;
    qsort(j->sorted, (size_t)r->n, sizeof *j->sorted, by_value);
    const double most = j->sorted[(int64_t)(MOST * (double)r->n)],
                 nearly_all = j->sorted[(int64_t)(NEARLY_ALL * (double)r->n)];
    for (int64_t i = 0; i < r->n && nearly_all > most; i++) {
        const double score = (j->all[i] - nearly_all) / (nearly_all - most);
        if (j->is_aside[i] && !r->is_named[i] && score > d->options->odd && !is_blurred(d, r->item[i]))
            KI_TRY(say(d, r, j, score, nearly_all, i, err));
    }
    return KITH_OK;
}

kith_status ki_doctor_odd(ki_doctor *d, const ki_doctor_rows *r, kith_error *err) {
    kith_status status;
    judged j = {0};
    const size_t n = (size_t)r->n;
    if (d->options->odd == 0 || r->n < LEAST_JUDGED) return KITH_OK;
    KI_CHECK(ki_alloc_or(&j.own, n, sizeof *j.own, "likenesses", err));
    KI_CHECK(ki_alloc_or(&j.all, n, sizeof *j.all, "likenesses", err));
    KI_CHECK(ki_alloc_or(&j.sorted, n, sizeof *j.sorted, "likenesses", err));
    KI_CHECK(ki_alloc_or(&j.example, n, sizeof *j.example, "likenesses", err));
    KI_CHECK(ki_zalloc_or(&j.is_aside, n, sizeof *j.is_aside, "likenesses", err));
    status = judge(d, r, &j, err);
done:
    ki_free(j.own);
    ki_free(j.all);
    ki_free(j.sorted);
    ki_free(j.example);
    ki_free(j.is_aside);
    return status;
}
