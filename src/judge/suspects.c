/* Rows whose neighbours agree on another label.
 *
 * A class of three rows can give a row two neighbours of its label, not ten. So a row asks at most as many neighbours as its class
 * has other rows (as R-precision does), and parts are of those. */
#include "kith/suspects.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "kith/knn.h"

enum { MOST_NEIGHBOURS = 100 };

KI_OPTIONS_INIT(kith_suspects_options, .k = 10, .most = 100)

/* A suspect, and what decides between equals. */
typedef struct candidate {
    kith_suspect suspect;
    double nearest; /* the score of the nearest neighbour with the other label */
} candidate;

typedef struct finder {
    const kith_suspects_options *options;
    kith_array rows; /* those that have a label */
    int64_t n, dim;
    int64_t *row, *label;    /* [n]: the number of a row in the caller's, and its label */
    int64_t *sorted;         /* [n] labels, rising */
    kith_neighbor *neighbor; /* [n, k] */
    candidate *found;        /* [n_found] */
    int64_t n_found, n_judged;
} finder;

static void finder_release(finder *f) {
    kith_array_release(&f->rows);
    ki_free(f->row);
    ki_free(f->label);
    ki_free(f->sorted);
    ki_free(f->neighbor);
    ki_free(f->found);
}

static int by_value(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static kith_status take_labelled(finder *f, const kith_array *rows, const int64_t *labels, kith_error *err) {
    const int64_t n = rows->dim[0];
    const size_t bytes = (size_t)rows->dim[1] * kith_dtype_bytes(rows->dtype);
    for (int64_t i = 0; i < n; i++) f->n += labels[i] >= 0;
    if (f->n == 0) return ki_fail(err, KITH_EINVAL, "none of %lld rows has a label", (long long)n);
    KI_TRY(kith_array_init(rows->dtype, 2, (int64_t[]){f->n, rows->dim[1]}, &f->rows, err));
    KI_TRY(ki_alloc_or(&f->row, (size_t)f->n, sizeof *f->row, "rows", err));
    KI_TRY(ki_alloc_or(&f->label, (size_t)f->n, sizeof *f->label, "labels", err));
    KI_TRY(ki_alloc_or(&f->sorted, (size_t)f->n, sizeof *f->sorted, "labels", err));
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        if (labels[i] < 0) continue;
        memcpy((char *)f->rows.data + (size_t)at * bytes, (const char *)rows->data + (size_t)i * bytes,
               bytes);
        f->row[at] = i;
        f->sorted[at] = f->label[at] = labels[i];
        at++;
    }
    qsort(f->sorted, (size_t)f->n, sizeof *f->sorted, by_value);
    return KITH_OK;
}

/* How many rows have a label that is smaller than this. */
static int64_t count_below(const finder *f, int64_t label) {
    int64_t low = 0, high = f->n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (f->sorted[middle] < label)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static kith_status find_neighbours(finder *f, kith_error *err) {
    kith_gallery *gallery = NULL;
    KITH_OPTIONS(kith_knn_options, how);
    how.progress = f->options->progress;
    how.user = f->options->user;
    how.device = f->options->device;
    const size_t k = (size_t)f->options->k;
    KI_TRY(ki_alloc_or(&f->neighbor, (size_t)f->n, k * sizeof *f->neighbor, "neighbours", err));
    KI_TRY(kith_gallery_new(&f->rows, &how, &gallery, err));
    const kith_status status = kith_gallery_self(gallery, f->options->k, f->neighbor, err);
    kith_gallery_free(gallery);
    return status;
}

/* What the first n_asked neighbours of row i say. False: no label has more of them than the row's own. */
static bool ask(const finder *f, int64_t i, int64_t n_asked, candidate *ret) {
    const kith_neighbor *near = f->neighbor + i * f->options->k;
    int64_t own = 0, most = 0, first = -1;
    for (int64_t a = 0; a < n_asked; a++) {
        const int64_t label = f->label[near[a].index];
        int64_t count = 0;
        own += label == f->label[i];
        for (int64_t b = 0; b < n_asked; b++) count += f->label[near[b].index] == label;
        if (label == f->label[i] || count <= most) continue;
        most = count;
        first = a;
    }
    if (most <= own) return false;
    ret->suspect = (kith_suspect){.row = f->row[i],
                                  .label = f->label[i],
                                  .other = f->label[near[first].index],
                                  .agreement = (double)own / (double)n_asked,
                                  .other_agreement = (double)most / (double)n_asked};
    ret->nearest = near[first].score;
    return true;
}

static int by_doubt(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    const double p = x->suspect.other_agreement - x->suspect.agreement,
                 q = y->suspect.other_agreement - y->suspect.agreement;
    if (p != q) return p > q ? -1 : 1;
    if (x->nearest != y->nearest) return x->nearest > y->nearest ? -1 : 1;
    return (x->suspect.row > y->suspect.row) - (x->suspect.row < y->suspect.row);
}

static kith_status ask_all(finder *f, kith_error *err) {
    KI_TRY(ki_alloc_or(&f->found, (size_t)f->n, sizeof *f->found, "suspects", err));
    for (int64_t i = 0; i < f->n; i++) {
        const int64_t n_others = count_below(f, f->label[i] + 1) - count_below(f, f->label[i]) - 1;
        if (n_others == 0) continue;
        f->n_judged++;
        f->n_found += ask(f, i, n_others < f->options->k ? n_others : f->options->k, &f->found[f->n_found]);
    }
    qsort(f->found, (size_t)f->n_found, sizeof *f->found, by_doubt);
    return KITH_OK;
}

static kith_status hand_out(const finder *f, kith_suspects *ret, kith_error *err) {
    const int64_t most = f->options->most, n = most > 0 && most < f->n_found ? most : f->n_found;
    kith_suspects s = {.n = n, .n_found = f->n_found, .n_judged = f->n_judged};
    KI_TRY(ki_alloc_or(&s.suspects, (size_t)n, sizeof *s.suspects, "suspects", err));
    for (int64_t i = 0; i < n; i++) s.suspects[i] = f->found[i].suspect;
    *ret = s;
    return KITH_OK;
}

kith_status kith_suspects_find(const kith_array *rows, const int64_t *labels,
                               const kith_suspects_options *options, kith_suspects *ret_suspects,
                               kith_error *err) {
    KI_NEED(err, rows, labels, ret_suspects);
    KI_OPTIONS_TAKE(kith_suspects_options, o, options, err);
    kith_status status;
    finder f = {.options = &o};
    if (rows->n_dims != 2)
        return ki_fail(err, KITH_ESHAPE, "the rows have %d dimensions; wanted 2", rows->n_dims);
    if (o.k < 1 || o.k > MOST_NEIGHBOURS || o.most < 0)
        return ki_fail(err, KITH_EINVAL, "k is %lld and most %lld; wanted 1 to %d, and 0 or more",
                       (long long)o.k, (long long)o.most, MOST_NEIGHBOURS);
    KI_CHECK(take_labelled(&f, rows, labels, err));
    KI_CHECK(find_neighbours(&f, err));
    KI_CHECK(ask_all(&f, err));
    status = hand_out(&f, ret_suspects, err);
done:
    finder_release(&f);
    return status;
}

void kith_suspects_release(kith_suspects *suspects) {
    if (!suspects) return;
    ki_free(suspects->suspects);
    *suspects = (kith_suspects){0};
}
