/* The items of every group, and the one that represents them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "collection/group.h"

typedef struct member {
    int64_t number, id, n_in_group;
    double score; /* with the medoid; larger is nearer */
} member;

static int by_number(const void *a, const void *b) {
    const member *x = a, *y = b;
    if (x->number != y->number) return x->number > y->number ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

static int by_size(const void *a, const void *b) {
    const member *x = a, *y = b;
    if (x->n_in_group != y->n_in_group) return x->n_in_group < y->n_in_group ? 1 : -1;
    return by_number(a, b);
}

static int by_score(const void *a, const void *b) {
    const member *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

/* Larger is nearer, by every metric. */
static double score_of(const float *a, const double *b, int64_t dim, kith_metric metric) {
    double product = 0, a2 = 0, b2 = 0, distance = 0;
    for (int64_t j = 0; j < dim; j++) {
        product += a[j] * b[j];
        a2 += (double)a[j] * a[j];
        b2 += b[j] * b[j];
        distance += (a[j] - b[j]) * (a[j] - b[j]);
    }
    if (metric == KITH_SQEUCLIDEAN) return -distance;
    if (metric == KITH_INNER) return product;
    return a2 > 0 && b2 > 0 ? product / sqrt(a2) / sqrt(b2) : 0;
}

/* The mean of the rows; of directions where lengths do not count. */
static void mean_of(const float *rows, int64_t n, int64_t dim, kith_metric metric, double *ret_mean) {
    for (int64_t j = 0; j < dim; j++) ret_mean[j] = 0;
    for (int64_t i = 0; i < n; i++) {
        double length = 0;
        for (int64_t j = 0; j < dim; j++) length += (double)rows[i * dim + j] * rows[i * dim + j];
        const double scale = metric != KITH_COSINE ? 1 : length > 0 ? 1 / sqrt(length) : 0;
        for (int64_t j = 0; j < dim; j++) ret_mean[j] += rows[i * dim + j] * scale / (double)n;
    }
}

static kith_status represent(const kith_index *index, const kith_index_info *info, member *m, int64_t n,
                             kith_group *ret, kith_error *err) {
    kith_status status;
    int64_t *id = NULL, first = 0;
    float *rows = NULL;
    double *mean = NULL, sum = 0;
    KI_CHECK(ki_alloc_or(&id, (size_t)n, sizeof *id, "a group", err));
    KI_CHECK(ki_alloc_or(&rows, (size_t)n, (size_t)info->dim * sizeof *rows, "vectors", err));
    KI_CHECK(ki_alloc_or(&mean, (size_t)info->dim, sizeof *mean, "a mean", err));
    for (int64_t i = 0; i < n; i++) id[i] = m[i].id;
    KI_CHECK(kith_index_vectors(index, id, n, rows, err));
    mean_of(rows, n, info->dim, info->metric, mean);
    for (int64_t i = 0; i < n; i++) {
        m[i].score = score_of(rows + i * info->dim, mean, info->dim, info->metric);
        if (m[i].score > m[first].score) first = i;
    }
    for (int64_t j = 0; j < info->dim; j++) mean[j] = rows[first * info->dim + j];
    for (int64_t i = 0; i < n; i++) {
        m[i].score = score_of(rows + i * info->dim, mean, info->dim, info->metric);
        if (i != first) sum += m[i].score;
    }
    *ret = (kith_group){m[first].number, m[first].id, n > 1 ? sum / (double)(n - 1) : NAN};
    if (info->metric == KITH_SQEUCLIDEAN) ret->cohesion = -ret->cohesion;
    m[first].score = INFINITY;
    qsort(m, (size_t)n, sizeof *m, by_score);
done:
    ki_free(id);
    ki_free(rows);
    ki_free(mean);
    return status;
}

kith_status ki_groups_list(const kith_index *index, const int64_t *ids, const int64_t *number, int64_t n,
                           kith_groups *groups, kith_error *err) {
    kith_status status;
    member *m = NULL;
    int64_t n_members = 0, n_groups = 0;
    kith_index_info info;
    kith_index_info_get(index, &info);
    KI_CHECK(ki_alloc_or(&m, (size_t)n, sizeof *m, "groups", err));
    for (int64_t i = 0; i < n; i++) {
        if (number[i] > 0) m[n_members++] = (member){.number = number[i], .id = ids[i]};
    }
    if (n_members > 0) qsort(m, (size_t)n_members, sizeof *m, by_number);
    for (int64_t i = 0, end; i < n_members; i = end, n_groups++) {
        for (end = i; end < n_members && m[end].number == m[i].number;) end++;
        for (int64_t j = i; j < end; j++) m[j].n_in_group = end - i;
    }
    if (n_members > 0) qsort(m, (size_t)n_members, sizeof *m, by_size);
    KI_CHECK(ki_alloc_or(&groups->groups, (size_t)n_groups, sizeof *groups->groups, "groups", err));
    KI_CHECK(ki_alloc_or(&groups->begin, (size_t)n_groups + 1, sizeof *groups->begin, "groups", err));
    KI_CHECK(ki_alloc_or(&groups->ids, (size_t)n_members, sizeof *groups->ids, "groups", err));
    groups->n_groups = n_groups;
    groups->begin[0] = 0;
    for (int64_t g = 0, i = 0; g < n_groups; i = groups->begin[++g]) {
        const int64_t n_here = m[i].n_in_group;
        KI_CHECK(represent(index, &info, m + i, n_here, &groups->groups[g], err));
        for (int64_t j = i; j < i + n_here; j++) groups->ids[j] = m[j].id;
        groups->begin[g + 1] = i + n_here;
    }
done:
    ki_free(m);
    return status;
}
