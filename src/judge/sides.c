/* Queries and gallery from lists of rows, checked; classes numbered from 0. */
#include "judge/sides.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* Row numbers of one side: in range, each at most once. place[row] receives the position, else -1. */
static kith_status check_list(const char *what, const int64_t *list, int64_t n_list, int64_t n,
                              int32_t *place, kith_error *err) {
    for (int64_t i = 0; i < n; i++) place[i] = list ? -1 : (int32_t)i;
    if (!list) return KITH_OK;
    for (int64_t i = 0; i < n_list; i++) {
        if (list[i] < 0 || list[i] >= n)
            return ki_fail(err, KITH_EINVAL, "%s: entry %lld is row %lld; the embedding has rows 0 to %lld",
                           what, (long long)i, (long long)list[i], (long long)n - 1);
        if (place[list[i]] >= 0)
            return ki_fail(err, KITH_EINVAL, "%s: row %lld is given twice (entries %d and %lld)", what,
                           (long long)list[i], (int)place[list[i]], (long long)i);
        place[list[i]] = (int32_t)i;
    }
    return KITH_OK;
}

/* The listed rows as a matrix of their own; the whole matrix itself when there is no list. */
static kith_status pick(const ki_rows *all, const int64_t *list, int64_t n, void **ret_copy,
                        ki_rows *ret_rows, kith_error *err) {
    *ret_rows = *all;
    if (!list) return KITH_OK;
    const size_t bytes = (size_t)all->dim * kith_dtype_bytes(all->dtype);
    KI_TRY(ki_alloc_or(ret_copy, (size_t)n, bytes, "picked rows", err));
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)*ret_copy + (size_t)i * bytes, (const char *)all->data + (size_t)list[i] * bytes,
               bytes);
    ret_rows->n = n;
    ret_rows->data = *ret_copy;
    ret_rows->there = NULL; /* not in this order */
    return KITH_OK;
}

static int compare_label(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int32_t class_of(const int64_t *labels, int64_t n, int64_t label) {
    const int64_t *found = bsearch(&label, labels, (size_t)n, sizeof *labels, compare_label);
    return (int32_t)(found - labels);
}

void ki_sides_release(ki_sides *s) {
    ki_free(s->query_copy);
    ki_free(s->gallery_copy);
    ki_free(s->label);
    ki_free(s->query_class);
    ki_free(s->gallery_class);
    ki_free(s->self);
    ki_free(s->place);
}

static int64_t row_of(const int64_t *list, int64_t i) { return list ? list[i] : i; }

kith_status ki_sides_init(const ki_judge_input *in, ki_sides *s, kith_error *err) {
    const ki_rows *all = &in->rows;
    const int64_t n = all->n;
    if (in->n_labels != n)
        return ki_fail(err, KITH_ESHAPE, "%lld labels for %lld rows of the embedding",
                       (long long)in->n_labels, (long long)n);
    s->n_query = in->query ? in->n_query : n;
    s->n_gallery = in->gallery ? in->n_gallery : n;
    kith_status status = KITH_OK;
    if (s->n_query < 1)
        status = ki_fail(err, KITH_EINVAL, "there are no queries; wanted at least 1");
    else if (s->n_gallery < 1)
        status = ki_fail(err, KITH_EINVAL, "the gallery is empty; wanted at least 1 row");
    if (status != KITH_OK)
        return ki_hint(err, status,
                       "give the rows of queries and gallery, or neither: then all rows are both");
    const size_t nq = (size_t)s->n_query, ng = (size_t)s->n_gallery;
    KI_TRY(ki_alloc_or(&s->place, (size_t)n, sizeof *s->place, "row places", err));
    KI_TRY(check_list("query", in->query, in->n_query, n, s->place, err));
    KI_TRY(check_list("gallery", in->gallery, in->n_gallery, n, s->place, err));
    KI_TRY(pick(all, in->query, s->n_query, &s->query_copy, &s->query, err));
    KI_TRY(pick(all, in->gallery, s->n_gallery, &s->gallery_copy, &s->gallery, err));
    KI_TRY(ki_alloc_or(&s->label, nq + ng, sizeof *s->label, "labels", err));
    KI_TRY(ki_alloc_or(&s->query_class, nq, sizeof *s->query_class, "labels", err));
    KI_TRY(ki_alloc_or(&s->gallery_class, ng, sizeof *s->gallery_class, "labels", err));
    KI_TRY(ki_alloc_or(&s->self, nq, sizeof *s->self, "self matches", err));
    for (int64_t i = 0; i < s->n_query; i++) s->label[i] = in->labels[row_of(in->query, i)];
    for (int64_t i = 0; i < s->n_gallery; i++) s->label[s->n_query + i] = in->labels[row_of(in->gallery, i)];
    qsort(s->label, nq + ng, sizeof *s->label, compare_label);
    for (size_t i = 0; i < nq + ng; i++) {
        if (i == 0 || s->label[i] != s->label[s->n_classes - 1]) s->label[s->n_classes++] = s->label[i];
    }
    for (int64_t i = 0; i < s->n_query; i++) {
        const int64_t row = row_of(in->query, i);
        s->query_class[i] = class_of(s->label, s->n_classes, in->labels[row]);
        s->self[i] = s->place[row];
    }
    for (int64_t i = 0; i < s->n_gallery; i++)
        s->gallery_class[i] = class_of(s->label, s->n_classes, in->labels[row_of(in->gallery, i)]);
    return KITH_OK;
}
