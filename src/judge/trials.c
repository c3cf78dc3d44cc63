/* Trials of rows in memory.
 *
 * One search of all rows among themselves finds a few more than k neighbours of each. Where k of them have other labels, both lists
 * are there. The rows of a large label may have too many of their own before them: they are searched again, label by label,
 * with the label's rows left out. A label has to have more rows than the spare ones for that, so few labels do. */
#include "judge/trials.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "knn/gallery.h"
#include "knn/kernel.h"
#include "knn/rows.h"

enum { N_SPARE = 64, MOST_AT_ONCE = 4096 };

/* ---- labels as numbers ---- */

static int by_value(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

kith_status ki_trials_number(const int64_t *labels, int64_t n, int64_t *ret_number, int64_t *ret_n,
                             kith_error *err) {
    int64_t *sorted = NULL, n_labels = 0;
    KI_TRY(ki_alloc_or(&sorted, (size_t)n, sizeof *sorted, "labels", err));
    if (n > 0) memcpy(sorted, labels, (size_t)n * sizeof *sorted);
    if (n > 0) qsort(sorted, (size_t)n, sizeof *sorted, by_value);
    for (int64_t i = 0; i < n; i++) {
        if (n_labels == 0 || sorted[i] != sorted[n_labels - 1]) sorted[n_labels++] = sorted[i];
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t *at = bsearch(&labels[i], sorted, (size_t)n_labels, sizeof *sorted, by_value);
        ret_number[i] = at - sorted;
    }
    *ret_n = n_labels;
    ki_free(sorted);
    return KITH_OK;
}

/* ---- lists ---- */

static void clear(ki_trial_hit *list, int64_t n) {
    for (int64_t i = 0; i < n; i++) list[i] = (ki_trial_hit){NAN, -1};
}

static ki_trial_hit hit_of(const kith_neighbor *near) {
    return (ki_trial_hit){(float)near->score, (int32_t)near->index};
}

/* The first k of a list that have another label than `label` (-1: any); returns how many there are. */
static int64_t take(const ki_trials *t, int64_t label, const kith_neighbor *list, int64_t n,
                    ki_trial_hit *ret) {
    int64_t n_taken = 0;
    for (int64_t i = 0; i < n && n_taken < t->k && list[i].index >= 0; i++) {
        if (t->label[list[i].index] != label) ret[n_taken++] = hit_of(&list[i]);
    }
    clear(ret + n_taken, t->k - n_taken);
    return n_taken;
}

/* The rows of each label: its rows are row[begin[l] … begin[l + 1] - 1], ascending. */
typedef struct members {
    int64_t *begin, *row;
} members;

static kith_status members_init(const ki_trials *t, members *ret, kith_error *err) {
    KI_TRY(ki_zalloc_or(&ret->begin, (size_t)t->n_labels + 2, sizeof *ret->begin, "labels", err));
    KI_TRY(ki_alloc_or(&ret->row, (size_t)t->n, sizeof *ret->row, "labels", err));
    for (int64_t i = 0; i < t->n; i++) ret->begin[t->label[i] + 2]++;
    for (int64_t l = 0; l < t->n_labels; l++) ret->begin[l + 2] += ret->begin[l + 1];
    for (int64_t i = 0; i < t->n; i++) ret->row[ret->begin[t->label[i] + 1]++] = i;
    return KITH_OK;
}

static void members_release(members *m) {
    ki_free(m->begin);
    ki_free(m->row);
}

typedef struct trier {
    ki_trials *t;
    const kith_array *rows;
    kith_gallery *gallery;
    members members;
    bool *is_open;             /* [n]: the search for all has not found enough rows of other labels */
    kith_neighbor *list;       /* [n, n_list], and later [MOST_AT_ONCE, k] */
    int64_t n_list;            /* neighbours of the search for all */
    uint64_t *allowed;         /* rows of other labels */
    kith_array asked;          /* [MOST_AT_ONCE, dim] */
    int64_t who[MOST_AT_ONCE]; /* the rows that are asked for */
} trier;

static void trier_release(trier *r) {
    kith_gallery_free(r->gallery);
    members_release(&r->members);
    ki_free(r->is_open);
    ki_free(r->list);
    ki_free(r->allowed);
    kith_array_release(&r->asked);
    ki_free(r);
}

static kith_status search_all(trier *r, kith_error *err) {
    ki_trials *t = r->t;
    r->n_list = t->n - 1 < t->k + N_SPARE ? t->n - 1 : t->k + N_SPARE;
    KI_TRY(ki_alloc_or(&r->list, (size_t)t->n, (size_t)r->n_list * sizeof *r->list, "neighbours", err));
    KI_TRY(kith_gallery_self(r->gallery, r->n_list, r->list, err));
    for (int64_t i = 0; i < t->n; i++) {
        const kith_neighbor *list = r->list + i * r->n_list;
        take(t, -1, list, r->n_list, t->with + i * t->k);
        const int64_t n_found = take(t, t->label[i], list, r->n_list, t->without + i * t->k);
        r->is_open[i] = n_found < t->k && r->n_list < t->n - 1;
    }
    ki_free(r->list);
    r->list = NULL;
    return KITH_OK;
}

static void allow(trier *r, int64_t label, bool is_allowed) {
    for (int64_t m = r->members.begin[label]; m < r->members.begin[label + 1]; m++) {
        const int64_t row = r->members.row[m];
        const uint64_t bit = UINT64_C(1) << row % 64;
        if (is_allowed)
            r->allowed[row / 64] |= bit;
        else
            r->allowed[row / 64] &= ~bit;
    }
}

static kith_status search_some(trier *r, int64_t n, int64_t n_allowed, kith_error *err) {
    ki_trials *t = r->t;
    const size_t bytes = (size_t)r->rows->dim[1] * kith_dtype_bytes(r->rows->dtype);
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)r->asked.data + (size_t)i * bytes,
               (const char *)r->rows->data + (size_t)r->who[i] * bytes, bytes);
    const kith_array asked = {r->rows->dtype, 2, {n, r->rows->dim[1]}, r->asked.data};
    const ki_gallery_ask ask = {.allowed = r->allowed, .n_allowed = n_allowed};
    KI_TRY(ki_gallery_search(r->gallery, &asked, t->k, &ask, r->list, err));
    for (int64_t i = 0; i < n; i++) take(t, -1, r->list + i * t->k, t->k, t->without + r->who[i] * t->k);
    return KITH_OK;
}

/* The rows of a label that are still open. */
static kith_status search_label(trier *r, int64_t label, kith_error *err) {
    kith_status status = KITH_OK;
    const int64_t begin = r->members.begin[label], end = r->members.begin[label + 1];
    int64_t n = 0;
    allow(r, label, false);
    for (int64_t m = begin; m < end; m++) {
        if (r->is_open[r->members.row[m]]) r->who[n++] = r->members.row[m];
        if (n == 0 || (n < MOST_AT_ONCE && m + 1 < end)) continue;
        KI_CHECK(search_some(r, n, r->t->n - (end - begin), err));
        n = 0;
    }
done:
    allow(r, label, true);
    return status;
}

static kith_status search_open(trier *r, kith_error *err) {
    ki_trials *t = r->t;
    const int64_t n_blocks = (t->n + KI_BLOCK - 1) / KI_BLOCK;
    const int64_t dims[] = {MOST_AT_ONCE, r->rows->dim[1]};
    KI_TRY(kith_array_init(r->rows->dtype, 2, dims, &r->asked, err));
    KI_TRY(ki_alloc_or(&r->list, MOST_AT_ONCE, (size_t)t->k * sizeof *r->list, "neighbours", err));
    KI_TRY(ki_zalloc_or(&r->allowed, (size_t)(n_blocks * KI_MASK_WORDS), sizeof *r->allowed, "rows", err));
    for (int64_t l = 0; l < t->n_labels; l++) allow(r, l, true);
    for (int64_t l = 0; l < t->n_labels; l++) {
        bool any = false;
        for (int64_t m = r->members.begin[l]; m < r->members.begin[l + 1]; m++)
            any |= r->is_open[r->members.row[m]];
        if (any) KI_TRY(search_label(r, l, err));
    }
    return KITH_OK;
}

/* A gallery's squared distances depend on the mean of its rows in their last bits. A search shows them without it. */
static kith_status measure(const trier *r, ki_trial_hit *hits, kith_error *err) {
    ki_rows rows;
    if (r->t->metric != KITH_SQEUCLIDEAN) return KITH_OK;
    KI_TRY(ki_rows_init(r->rows, "trials", &rows, err));
    for (int64_t i = 0; i < r->t->n * r->t->k; i++) {
        if (hits[i].row >= 0) hits[i].score = (float)ki_rows_sqdist(&rows, i / r->t->k, &rows, hits[i].row);
    }
    return KITH_OK;
}

static kith_status run(trier *r, kith_error *err) {
    ki_trials *t = r->t;
    KITH_OPTIONS(kith_knn_options, how);
    how.metric = t->metric;
    KI_TRY(members_init(t, &r->members, err));
    KI_TRY(ki_zalloc_or(&r->is_open, (size_t)t->n, sizeof *r->is_open, "rows", err));
    KI_TRY(kith_gallery_new(r->rows, &how, &r->gallery, err));
    KI_TRY(search_all(r, err));
    KI_TRY(search_open(r, err));
    KI_TRY(measure(r, r->t->with, err));
    return measure(r, r->t->without, err);
}

static kith_status check(const kith_array *rows, const int64_t *labels, int64_t k, kith_error *err) {
    if (rows->n_dims != 2)
        return ki_fail(err, KITH_EINVAL, "the rows have %d dimensions; wanted 2", rows->n_dims);
    if (k < 1 || k > KI_TRIALS_MOST_K)
        return ki_fail(err, KITH_EINVAL, "k is %lld; wanted 1 to %d", (long long)k, KI_TRIALS_MOST_K);
    for (int64_t i = 0; i < rows->dim[0]; i++) {
        if (labels[i] < 0)
            return ki_fail(err, KITH_EINVAL, "row %lld has label %lld; wanted 0 or more", (long long)i,
                           (long long)labels[i]);
    }
    return KITH_OK;
}

static kith_status take_labels(ki_trials *t, const int64_t *labels, kith_error *err) {
    KI_TRY(ki_alloc_or(&t->label, (size_t)t->n, sizeof *t->label, "labels", err));
    KI_TRY(ki_trials_number(labels, t->n, t->label, &t->n_labels, err));
    if (t->n_labels >= 2) return KITH_OK;
    return ki_fail(err, KITH_ENOTFOUND, "%lld rows have %lld labels; wanted at least 2", (long long)t->n,
                   (long long)t->n_labels);
}

kith_status ki_trials_run(const kith_array *rows, const int64_t *labels, kith_metric metric, int64_t k,
                          ki_trials *ret, kith_error *err) {
    KI_NEED(err, rows, labels, ret);
    KI_TRY(check(rows, labels, k, err));
    kith_status status;
    trier *r = NULL;
    ki_trials t = {.n = rows->dim[0], .n_rows = rows->dim[0], .k = k, .metric = metric};
    const size_t row_bytes = (size_t)k * sizeof(ki_trial_hit);
    KI_CHECK(take_labels(&t, labels, err));
    KI_CHECK(ki_alloc_or(&t.with, (size_t)t.n, row_bytes, "trials", err));
    KI_CHECK(ki_alloc_or(&t.without, (size_t)t.n, row_bytes, "trials", err));
    KI_CHECK(ki_zalloc_or(&r, 1, sizeof *r, "trials", err));
    r->t = &t;
    r->rows = rows;
    KI_CHECK(run(r, err));
    *ret = t;
    t = (ki_trials){0};
done:
    if (r) trier_release(r);
    ki_trials_release(&t);
    return status;
}

void ki_trials_release(ki_trials *trials) {
    if (!trials) return;
    ki_free(trials->label);
    ki_free(trials->with);
    ki_free(trials->without);
    *trials = (ki_trials){0};
}
