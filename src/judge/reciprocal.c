/* k-reciprocal re-ranking (Zhong, Zheng, Cao and Li, "Re-ranking Person Re-identification with k-reciprocal Encoding", CVPR
 * 2017), with everything sparse. With R(i, k) row i and its k nearest:
 *   N(i, k)  = { j in R(i, k): i in R(j, k) }
 *   N*(i)    = N(i, k1), and N(c, k1 / 2) of every c in it that has more than 2/3 of its rows in N(i, k1)
 *   V(i, j)  = exp(cos(i, j) - 1) for j in N*(i), scaled to sum 1
 *   V'(i)    = mean of V over R(i, k2 - 1)
 *   J(q, g)  = S / (2 - S) with S = sum_j min(V'(q, j), V'(g, j)), since both sum to 1. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/parallel.h"
#include "judge/rerank.h"
#include "knn/panels.h"

KI_OPTIONS_INIT(kith_reciprocal_options, .k1 = 20, .k2 = 6, .lambda = 0.3)

/* Rows of few entries each. */
typedef struct sparse {
    int64_t *begin; /* [n + 1] */
    int32_t *item;
    float *weight;
} sparse;

/* What one thread needs for one row. */
typedef struct bench {
    uint8_t *mark;   /* [n], 0 between rows */
    double *sum;     /* [n], 0 between rows */
    int32_t *member; /* [n] */
    int64_t n_members;
    double *weight;       /* [n] of the members */
    int32_t *core, *near; /* [k1 + 1] */
} bench;

enum { IN_CORE = 1, IN_SET = 2 };

struct kith_reciprocal {
    kith_reciprocal_options options;
    ki_rows rows;
    double *norm;  /* [n] */
    int64_t k;     /* of the lists: k1, or k2 - 1 where that is more */
    int64_t half;  /* k1 / 2, to even */
    int32_t *list; /* [n, k]; -1: none */
    double *last;  /* [n]: the score of the k1-th; -INFINITY: there are fewer */
    sparse own;    /* V */
    sparse mean;   /* V' */
};

/* ---- sets ---- */

static bool has(const kith_reciprocal *r, int64_t j, int64_t i, int64_t k) {
    const int32_t *list = r->list + j * r->k;
    for (int64_t p = 0; p < k; p++) {
        if (list[p] == i) return true;
    }
    return false;
}

/* N(i, k), itself first. */
static int64_t find_core(const kith_reciprocal *r, int64_t i, int64_t k, int32_t *ret) {
    const int32_t *list = r->list + i * r->k;
    int64_t n = 0;
    ret[n++] = (int32_t)i;
    for (int64_t p = 0; p < k && list[p] >= 0; p++) {
        if (has(r, list[p], i, k)) ret[n++] = list[p];
    }
    return n;
}

static void put(bench *b, int32_t j, uint8_t how) {
    if (!(b->mark[j] & IN_SET)) b->member[b->n_members++] = j;
    b->mark[j] |= how | IN_SET;
}

static void clear(bench *b) {
    for (int64_t m = 0; m < b->n_members; m++) {
        b->mark[b->member[m]] = 0;
        b->sum[b->member[m]] = 0;
    }
}

/* N* of the bench's core. */
static void find_set(const kith_reciprocal *r, bench *b, int64_t n_core) {
    b->n_members = 0;
    for (int64_t c = 0; c < n_core; c++) put(b, b->core[c], IN_CORE);
    for (int64_t c = 0; c < n_core; c++) {
        const int64_t n = find_core(r, b->core[c], r->half, b->near);
        int64_t n_common = 0;
        for (int64_t p = 0; p < n; p++) n_common += b->mark[b->near[p]] & IN_CORE;
        for (int64_t p = 0; 3 * n_common > 2 * n && p < n; p++) put(b, b->near[p], 0);
    }
    clear(b);
}

/* V of a row of any matrix, over the bench's members. */
static void weigh(const kith_reciprocal *r, bench *b, const ki_rows *rows, int64_t i, double norm) {
    double sum = 0;
    for (int64_t m = 0; m < b->n_members; m++) {
        const int32_t j = b->member[m];
        const double cos = ki_rows_dot(rows, i, &r->rows, j) / (norm * r->norm[j]);
        b->weight[m] = exp(cos - 1);
        sum += b->weight[m];
    }
    for (int64_t m = 0; m < b->n_members; m++) b->weight[m] /= sum;
}

/* ---- the gallery's rows ---- */

typedef struct building {
    kith_reciprocal *r;
    bench *benches;
} building;

static void count_own(void *context, int slot, int64_t i) {
    const building *g = context;
    bench *b = g->benches + slot;
    find_set(g->r, b, find_core(g->r, i, g->r->options.k1, b->core));
    g->r->own.begin[i + 1] = b->n_members;
}

static void fill_own(void *context, int slot, int64_t i) {
    const building *g = context;
    bench *b = g->benches + slot;
    const int64_t at = g->r->own.begin[i];
    find_set(g->r, b, find_core(g->r, i, g->r->options.k1, b->core));
    weigh(g->r, b, &g->r->rows, i, g->r->norm[i]);
    for (int64_t m = 0; m < b->n_members; m++) {
        g->r->own.item[at + m] = b->member[m];
        g->r->own.weight[at + m] = (float)b->weight[m];
    }
}

static void add_row(const sparse *from, int64_t i, bench *b) {
    for (int64_t e = from->begin[i]; e < from->begin[i + 1]; e++) {
        put(b, from->item[e], 0);
        b->sum[from->item[e]] += (double)from->weight[e];
    }
}

/* Sums of V over R(i, k2 - 1) in the bench, which is cleared by the caller. Returns how many rows that are. */
static int64_t sum_rows(const kith_reciprocal *r, int64_t i, bench *b) {
    const int32_t *list = r->list + i * r->k;
    int64_t n = 1;
    b->n_members = 0;
    add_row(&r->own, i, b);
    for (int64_t p = 0; p < r->options.k2 - 1 && list[p] >= 0; p++, n++) add_row(&r->own, list[p], b);
    return n;
}

static void count_mean(void *context, int slot, int64_t i) {
    const building *g = context;
    bench *b = g->benches + slot;
    sum_rows(g->r, i, b);
    g->r->mean.begin[i + 1] = b->n_members;
    clear(b);
}

static void fill_mean(void *context, int slot, int64_t i) {
    const building *g = context;
    bench *b = g->benches + slot;
    const double n = (double)sum_rows(g->r, i, b);
    const int64_t at = g->r->mean.begin[i];
    for (int64_t m = 0; m < b->n_members; m++) {
        g->r->mean.item[at + m] = b->member[m];
        g->r->mean.weight[at + m] = (float)(b->sum[b->member[m]] / n);
    }
    clear(b);
}

static void find_norm(void *context, int slot, int64_t i) {
    (void)slot;
    const building *g = context;
    const ki_rows *rows = &g->r->rows;
    g->r->norm[i] = fmax(sqrt(ki_rows_dot(rows, i, rows, i)), KI_LEAST_NORM);
}

/* Counts become places, and room for the entries. */
static kith_status make_room(sparse *s, int64_t n, kith_error *err) {
    for (int64_t i = 0; i < n; i++) s->begin[i + 1] += s->begin[i];
    KI_TRY(ki_alloc_or(&s->item, (size_t)s->begin[n], sizeof *s->item, "reciprocal neighbours", err));
    return ki_alloc_or(&s->weight, (size_t)s->begin[n], sizeof *s->weight, "reciprocal neighbours", err);
}

static kith_status build(kith_reciprocal *r, bench *benches, kith_error *err) {
    building g = {r, benches};
    const int64_t n = r->rows.n;
    KI_TRY(ki_zalloc_or(&r->own.begin, (size_t)n + 1, sizeof *r->own.begin, "reciprocal neighbours", err));
    KI_TRY(ki_zalloc_or(&r->mean.begin, (size_t)n + 1, sizeof *r->mean.begin, "reciprocal neighbours", err));
    ki_rerank_each(n, find_norm, &g);
    ki_rerank_each(n, count_own, &g);
    KI_TRY(make_room(&r->own, n, err));
    ki_rerank_each(n, fill_own, &g);
    ki_rerank_each(n, count_mean, &g);
    KI_TRY(make_room(&r->mean, n, err));
    ki_rerank_each(n, fill_mean, &g);
    return KITH_OK;
}

static void take_lists(kith_reciprocal *r, const kith_neighbor *lists, int64_t list_size) {
    for (int64_t i = 0; i < r->rows.n; i++) {
        const kith_neighbor *from = lists + i * list_size;
        for (int64_t p = 0; p < r->k; p++)
            r->list[i * r->k + p] = p < list_size ? (int32_t)from[p].index : -1;
        const bool is_full = r->options.k1 <= list_size && from[r->options.k1 - 1].index >= 0;
        r->last[i] = is_full ? from[r->options.k1 - 1].score : -INFINITY;
    }
}

/* ---- benches ---- */

static void benches_free(bench *benches) {
    for (int i = 0; benches && i < ki_threads(); i++) {
        ki_free(benches[i].mark);
        ki_free(benches[i].sum);
        ki_free(benches[i].member);
        ki_free(benches[i].weight);
        ki_free(benches[i].core);
        ki_free(benches[i].near);
    }
    ki_free(benches);
}

static kith_status benches_new(const kith_reciprocal *r, bench **ret, kith_error *err) {
    const size_t n = (size_t)r->rows.n, n_near = (size_t)r->options.k1 + 1;
    KI_TRY(ki_zalloc_or(ret, (size_t)ki_threads(), sizeof **ret, "re-ranking scratch", err));
    for (int i = 0; i < ki_threads(); i++) {
        bench *b = *ret + i;
        KI_TRY(ki_zalloc_or(&b->mark, n, sizeof *b->mark, "re-ranking scratch", err));
        KI_TRY(ki_zalloc_or(&b->sum, n, sizeof *b->sum, "re-ranking scratch", err));
        KI_TRY(ki_alloc_or(&b->member, n, sizeof *b->member, "re-ranking scratch", err));
        KI_TRY(ki_alloc_or(&b->weight, n, sizeof *b->weight, "re-ranking scratch", err));
        KI_TRY(ki_alloc_or(&b->core, n_near, sizeof *b->core, "re-ranking scratch", err));
        KI_TRY(ki_alloc_or(&b->near, n_near, sizeof *b->near, "re-ranking scratch", err));
    }
    return KITH_OK;
}

/* ---- the public object ---- */

static kith_status check_options(const kith_reciprocal_options *o, kith_error *err) {
    if (o->k1 < 1 || o->k1 > 10000)
        return ki_fail(err, KITH_EINVAL, "k1 is %lld; wanted 1 to 10000", (long long)o->k1);
    if (o->k2 < 1 || o->k2 > 10000)
        return ki_fail(err, KITH_EINVAL, "k2 is %lld; wanted 1 to 10000", (long long)o->k2);
    if (!(o->lambda >= 0 && o->lambda <= 1))
        return ki_fail(err, KITH_EINVAL, "lambda is %g; wanted 0 to 1", o->lambda);
    return KITH_OK;
}

/* Long enough for k1 and k2, or with all that there are. */
static kith_status check_size(int64_t list_size, int64_t wanted, int64_t n_others, kith_error *err) {
    if (list_size >= wanted || list_size >= n_others) return KITH_OK;
    return ki_fail(err, KITH_EINVAL, "lists of %lld neighbours; k1 and k2 want at least %lld",
                   (long long)list_size, (long long)wanted);
}

kith_status kith_reciprocal_new(const kith_array *gallery, const kith_neighbor *lists, int64_t list_size,
                                const kith_reciprocal_options *options, kith_reciprocal **ret_reciprocal,
                                kith_error *err) {
    KI_NEED(err, gallery, lists, ret_reciprocal);
    KI_NEED_COUNT(err, list_size);
    kith_status status;
    kith_reciprocal *r = NULL;
    bench *benches = NULL;
    KI_OPTIONS_TAKE(kith_reciprocal_options, o, options, err);
    KI_TRY(check_options(&o, err));
    KI_TRY(ki_zalloc_or(&r, 1, sizeof *r, "re-ranking", err));
    r->options = o;
    r->k = o.k1 > o.k2 - 1 ? o.k1 : o.k2 - 1;
    r->half = (int64_t)rint((double)o.k1 / 2);
    KI_CHECK(ki_rows_init(gallery, "gallery", &r->rows, err));
    const int64_t n = r->rows.n;
    KI_CHECK(check_size(list_size, r->k, n - 1, err));
    KI_CHECK(ki_rerank_check_lists(lists, n, list_size, n, err));
    KI_CHECK(ki_alloc_or(&r->norm, (size_t)n, sizeof *r->norm, "row norms", err));
    KI_CHECK(ki_alloc_or(&r->last, (size_t)n, sizeof *r->last, "last scores", err));
    KI_CHECK(ki_alloc_or(&r->list, (size_t)n, (size_t)r->k * sizeof *r->list, "lists", err));
    take_lists(r, lists, list_size);
    KI_CHECK(benches_new(r, &benches, err));
    KI_CHECK(build(r, benches, err));
    *ret_reciprocal = r;
    r = NULL;
done:
    benches_free(benches);
    kith_reciprocal_free(r);
    return status;
}

void kith_reciprocal_free(kith_reciprocal *r) {
    if (!r) return;
    sparse *const both[] = {&r->own, &r->mean};
    for (int i = 0; i < 2; i++) {
        ki_free(both[i]->begin);
        ki_free(both[i]->item);
        ki_free(both[i]->weight);
    }
    ki_free(r->norm);
    ki_free(r->list);
    ki_free(r->last);
    ki_free(r);
}

/* ---- lists ---- */

typedef struct reranking {
    const kith_reciprocal *r;
    bench *benches;
    ki_rows query;
    const int64_t *self;
    kith_neighbor *lists;
    int64_t list_size;
} reranking;

/* V' of a query from outside, summed in the bench: its core are the rows of its list that would have it in theirs. */
static void sum_query(const reranking *k, bench *b, int64_t i) {
    const kith_reciprocal *r = k->r;
    const kith_neighbor *list = k->lists + i * k->list_size;
    const double norm = fmax(sqrt(ki_rows_dot(&k->query, i, &k->query, i)), KI_LEAST_NORM);
    int64_t n_core = 0, n = 0;
    for (int64_t p = 0; p < r->options.k1 && p < k->list_size && list[p].index >= 0; p++) {
        if (list[p].score >= r->last[list[p].index]) b->core[n_core++] = (int32_t)list[p].index;
    }
    find_set(r, b, n_core);
    weigh(r, b, &k->query, i, norm);
    const int64_t n_own = b->n_members;
    b->n_members = 0;
    for (int64_t m = 0; m < n_own; m++) { /* the members stay where they are */
        put(b, b->member[m], 0);
        b->sum[b->member[m]] = b->weight[m];
    }
    n += n_own > 0;
    for (int64_t p = 0; p < r->options.k2 - 1 && p < k->list_size && list[p].index >= 0; p++, n++)
        add_row(&r->own, list[p].index, b);
    for (int64_t m = 0; m < b->n_members; m++) b->sum[b->member[m]] /= (double)n;
}

/* V' of a query that is row i of the gallery. */
static void take_mean(const kith_reciprocal *r, bench *b, int64_t i) {
    b->n_members = 0;
    for (int64_t e = r->mean.begin[i]; e < r->mean.begin[i + 1]; e++) {
        put(b, r->mean.item[e], 0);
        b->sum[r->mean.item[e]] = (double)r->mean.weight[e];
    }
}

static int compare_neighbor(const void *a, const void *b) {
    const kith_neighbor *x = a, *y = b;
    if ((x->index < 0) != (y->index < 0)) return x->index < 0 ? 1 : -1;
    if (x->index < 0) return 0;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static void rerank_one(void *context, int slot, int64_t i) {
    const reranking *k = context;
    const kith_reciprocal *r = k->r;
    bench *b = k->benches + slot;
    kith_neighbor *list = k->lists + i * k->list_size;
    const double lambda = r->options.lambda;
    if (k->self && k->self[i] >= 0)
        take_mean(r, b, k->self[i]);
    else
        sum_query(k, b, i);
    for (int64_t p = 0; p < k->list_size; p++) {
        if (list[p].index < 0) continue;
        const int64_t begin = r->mean.begin[list[p].index], end = r->mean.begin[list[p].index + 1];
        double common = 0;
        for (int64_t e = begin; e < end; e++)
            common += fmin(b->sum[r->mean.item[e]], (double)r->mean.weight[e]);
        list[p].score = lambda * list[p].score + (1 - lambda) * common / (2 - common);
    }
    clear(b);
    qsort(list, (size_t)k->list_size, sizeof *list, compare_neighbor);
}

kith_status kith_reciprocal_rerank(const kith_reciprocal *r, const kith_array *query, const int64_t *self,
                                   kith_neighbor *lists, int64_t list_size, kith_error *err) {
    KI_NEED(err, r, query, lists);
    KI_NEED_COUNT(err, list_size);
    kith_status status;
    reranking k = {.r = r, .self = self, .lists = lists, .list_size = list_size};
    KI_CHECK(ki_rows_init(query, "query", &k.query, err));
    if (k.query.dim != r->rows.dim)
        return ki_fail(err, KITH_ESHAPE, "query rows have %lld values, gallery rows %lld",
                       (long long)k.query.dim, (long long)r->rows.dim);
    KI_CHECK(ki_rerank_check_lists(lists, k.query.n, list_size, r->rows.n, err));
    for (int64_t i = 0; i < k.query.n; i++) {
        if (self && (self[i] < -1 || self[i] >= r->rows.n))
            return ki_fail(err, KITH_EINVAL, "self[%lld] is %lld; wanted -1 or a row below %lld",
                           (long long)i, (long long)self[i], (long long)r->rows.n);
        if (!self || self[i] < 0) KI_CHECK(check_size(list_size, r->k, r->rows.n, err));
    }
    KI_CHECK(benches_new(r, &k.benches, err));
    ki_rerank_each(k.query.n, rerank_one, &k);
done:
    benches_free(k.benches);
    return status;
}
