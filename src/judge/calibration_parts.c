/* The curve of pairs of several sets of rows, of which only those of one set are compared: flowers with flowers and products with products. Two
 * rows of different sets are nearly always nothing alike, and with them a threshold would look safer than it is for either set. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "judge/sides.h"
#include "judge/verification.h"

/* The rows of one set. KITH_EINVAL: they have no pair of one kind. */
static kith_status count(const float *rows, const int64_t *label, int64_t n, int64_t dim, ki_pair_counts *ret,
                         int64_t *ret_n_classes, kith_error *err) {
    kith_status status;
    ki_sides s = {0};
    ki_panels panels = {0};
    ki_judge_input input;
    const kith_array x = {KITH_F32, 2, {n, dim}, (void *)(uintptr_t)rows};
    const kith_retrieval_input given = {.embedding = &x, .labels = label, .n_labels = n};
    KI_CHECK(ki_judge_input_of(&given, &input, err));
    KI_CHECK(ki_sides_init(&input, &s, err));
    s.gallery.there = NULL; /* the host multiplies */
    KI_CHECK(ki_panels_init(&s.gallery, KITH_COSINE, NULL, &panels, err));
    const ki_pair_input pairs = {.query = &panels,
                                 .gallery = &panels,
                                 .query_class = s.query_class,
                                 .gallery_class = s.gallery_class,
                                 .n_classes = (int32_t)s.n_classes};
    KI_CHECK(ki_pair_counts_run(&pairs, NULL, 0, ret, err));
    *ret_n_classes = s.n_classes;
done:
    ki_panels_release(&panels);
    ki_sides_release(&s);
    return status;
}

static int fall(const void *left, const void *right) {
    const double a = ((const ki_pair_step *)left)->score, b = ((const ki_pair_step *)right)->score;
    return (a < b) - (a > b);
}

static kith_status add(ki_pair_counts *all, const ki_pair_counts *more, kith_error *err) {
    ki_pair_step *step = NULL;
    KI_TRY(ki_alloc_or(&step, (size_t)(all->n_steps + more->n_steps), sizeof *step, "steps of scores", err));
    if (all->n_steps) memcpy(step, all->step, (size_t)all->n_steps * sizeof *step);
    if (more->n_steps) memcpy(step + all->n_steps, more->step, (size_t)more->n_steps * sizeof *step);
    ki_free(all->step);
    all->step = step;
    all->n_steps += more->n_steps;
    all->n_same += more->n_same;
    all->n_different += more->n_different;
    return KITH_OK;
}

/* The rows of a set, one behind the other. */
static int64_t gather(const ki_vectors *v, const float *rows, const int32_t *part, int32_t p, float *ret_rows,
                      int64_t *ret_label) {
    int64_t n = 0;
    for (int64_t i = 0; i < v->n; i++) {
        if (part[i] != p) continue;
        memcpy(ret_rows + n * v->dim, rows + i * v->dim, (size_t)v->dim * sizeof *rows);
        ret_label[n++] = v->label[i];
    }
    return n;
}

kith_status ki_judge_calibrate_parts(ki_vectors *v, const int32_t *part, int32_t n_parts, const char *source,
                                     kith_calibration *ret, kith_error *err) {
    kith_status status;
    const float *rows = NULL;
    float *x = NULL;
    int64_t *label = NULL, n_classes = 0;
    ki_pair_counts all = {0}, one = {0};
    *ret = (kith_calibration){0};
    KI_CHECK(ki_vectors_host(v, &rows, err));
    KI_CHECK(ki_alloc_or(&x, (size_t)(v->n * v->dim), sizeof *x, "rows", err));
    KI_CHECK(ki_alloc_or(&label, (size_t)v->n, sizeof *label, "labels", err));
    for (int32_t p = 0; p < n_parts; p++) {
        int64_t n_here = 0;
        const int64_t n = gather(v, rows, part, p, x, label);
        if (n < 2) continue;
        status = count(x, label, n, v->dim, &one, &n_here, err);
        if (status == KITH_EINVAL) continue; /* of one class, or no two of the same: nothing to tell */
        if (status != KITH_OK) goto done;
        KI_CHECK(add(&all, &one, err));
        n_classes += n_here;
        ki_pair_counts_release(&one);
    }
    status = KITH_OK;
    if (all.n_steps == 0) goto done;
    qsort(all.step, (size_t)all.n_steps, sizeof *all.step, fall);
    ki_calibration_make(&all, KITH_COSINE, n_classes, ret);
    ki_snprintf(ret->source, sizeof ret->source, "%s", source);
done:
    ki_pair_counts_release(&all);
    ki_pair_counts_release(&one);
    ki_free(label);
    ki_free(x);
    return status;
}
