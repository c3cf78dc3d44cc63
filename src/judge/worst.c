/* The worst queries by average precision, and the hardest negatives by margin.
 *
 * Average precision is of the whole ranking, so it is taken from retrieval. The lists are only looked at as far as they are shown.
 * Nearest rows of the own class are searched for where the first row is of another one: rows of one class are few. */
#include "judge/worst.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "judge/per_query.h"
#include "judge/rerank.h"
#include "judge/sides.h"

enum { MOST_NEAREST = 100 };

KI_OPTIONS_INIT(kith_worst_options, .most = 50, .n_nearest = 6)

/* A query's place in the list of queries, and what it is sorted by. */
typedef struct ranked {
    double key; /* smaller first */
    int64_t query;
} ranked;

typedef struct finder {
    const ki_judge_input *in;
    const kith_worst_options *options;
    const kith_retrieval *scores;
    ki_sides sides;
    double *query_length, *gallery_length; /* by cosine: 1 for rows of 0 */
    int64_t k;
    kith_neighbor *lists; /* [queries, k] */
    int64_t *member;      /* [gallery]: its rows by class, rising */
    int64_t *first;       /* [classes + 1]: where each class begins there */
    ranked *order;        /* [queries] */
    int64_t n_judged;
    kith_hard_negative *negative; /* [n_wrong], in the order of the queries */
    int64_t *wrong;               /* [n_wrong]: the queries */
    int64_t n_wrong;
} finder;

static void finder_release(finder *f) {
    ki_sides_release(&f->sides);
    ki_free(f->query_length);
    ki_free(f->gallery_length);
    ki_free(f->lists);
    ki_free(f->member);
    ki_free(f->first);
    ki_free(f->order);
    ki_free(f->negative);
    ki_free(f->wrong);
}

/* ---- scores ---- */

static kith_status make_lengths(const ki_rows *rows, double **ret, kith_error *err) {
    KI_TRY(ki_alloc_or(ret, (size_t)rows->n, sizeof **ret, "lengths of rows", err));
    for (int64_t i = 0; i < rows->n; i++) {
        const double square = ki_rows_dot(rows, i, rows, i);
        (*ret)[i] = square > 0 ? sqrt(square) : 1;
    }
    return KITH_OK;
}

static double score_of(const finder *f, int64_t query, int64_t place) {
    const ki_rows *q = &f->sides.query, *g = &f->sides.gallery;
    if (f->options->metric == KITH_SQEUCLIDEAN) return ki_rows_sqdist(q, query, g, place);
    const double dot = ki_rows_dot(q, query, g, place);
    return f->options->metric == KITH_COSINE ? dot / f->query_length[query] / f->gallery_length[place] : dot;
}

/* By how much the first score is nearer. */
static double nearer_by(const finder *f, double first, double second) {
    return f->options->metric == KITH_SQEUCLIDEAN ? second - first : first - second;
}

static int64_t row_of(const int64_t *list, int64_t i) { return list ? list[i] : i; }

static kith_worst_hit hit_at(const finder *f, int64_t query, int64_t place) {
    const int64_t row = row_of(f->in->gallery, place);
    return (kith_worst_hit){.row = row, .label = f->in->labels[row], .score = score_of(f, query, place)};
}

/* ---- what every query found ---- */

static kith_status find_lists(finder *f, kith_error *err) {
    kith_status status;
    int64_t *self = NULL;
    kith_gallery *gallery = NULL;
    const ki_rows *q = &f->sides.query, *g = &f->sides.gallery;
    const kith_array queries = {q->dtype, 2, {q->n, q->dim}, (void *)(uintptr_t)q->data};
    const kith_array rows = {g->dtype, 2, {g->n, g->dim}, (void *)(uintptr_t)g->data};
    const kith_knn_options how = {.size = sizeof how,
                                  .metric = f->options->metric,
                                  .exact = true,
                                  .progress = f->options->progress,
                                  .user = f->options->user,
                                  .device = f->options->device};
    f->k = f->options->n_nearest;
    KI_CHECK(ki_alloc_or(&f->lists, (size_t)q->n, (size_t)f->k * sizeof *f->lists, "lists", err));
    KI_CHECK(kith_gallery_new(&rows, &how, &gallery, err));
    if (!f->in->query && !f->in->gallery) {
        status = kith_gallery_self(gallery, f->k, f->lists, err);
        goto done;
    }
    KI_CHECK(ki_alloc_or(&self, (size_t)q->n, sizeof *self, "queries' rows", err));
    for (int64_t i = 0; i < q->n; i++) self[i] = f->sides.self[i];
    status = kith_gallery_search(gallery, &queries, self, f->k, f->lists, err);
done:
    kith_gallery_free(gallery);
    ki_free(self);
    return status;
}

static kith_status sort_classes(finder *f, kith_error *err) {
    const ki_sides *s = &f->sides;
    KI_TRY(ki_alloc_or(&f->member, (size_t)s->n_gallery, sizeof *f->member, "rows by class", err));
    KI_TRY(ki_zalloc_or(&f->first, (size_t)s->n_classes + 2, sizeof *f->first, "classes", err));
    /* first[c + 1] is where class c goes on while it is filled, and in the end where class c + 1 begins. */
    for (int64_t i = 0; i < s->n_gallery; i++) f->first[s->gallery_class[i] + 2]++;
    for (int64_t c = 2; c <= s->n_classes + 1; c++) f->first[c] += f->first[c - 1];
    for (int64_t i = 0; i < s->n_gallery; i++) f->member[f->first[s->gallery_class[i] + 1]++] = i;
    return KITH_OK;
}

static void find_positive(void *context, int slot, int64_t i) {
    (void)slot;
    finder *f = context;
    const int64_t query = f->wrong[i], class = f->sides.query_class[query], self = f->sides.self[query];
    kith_hard_negative *n = &f->negative[i];
    int64_t best = -1;
    double best_score = 0;
    for (int64_t m = f->first[class]; m < f->first[class + 1]; m++) {
        if (f->member[m] == self) continue;
        const double score = score_of(f, query, f->member[m]);
        if (best >= 0 && !(nearer_by(f, score, best_score) > 0)) continue;
        best = f->member[m];
        best_score = score;
    }
    n->row = row_of(f->in->query, query);
    n->label = f->in->labels[n->row];
    n->negative = hit_at(f, query, f->lists[query * f->k].index);
    n->positive = hit_at(f, query, best);
    n->margin = nearer_by(f, n->negative.score, n->positive.score);
}

/* ---- order ---- */

static int by_key(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->query > y->query) - (x->query < y->query);
}

static int by_margin(const void *a, const void *b) {
    const kith_hard_negative *x = a, *y = b;
    if (x->margin != y->margin) return x->margin > y->margin ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static kith_status look_through(finder *f, kith_error *err) {
    const kith_retrieval *r = f->scores;
    const size_t n = (size_t)r->n_query;
    KI_TRY(ki_alloc_or(&f->order, n, sizeof *f->order, "queries", err));
    KI_TRY(ki_alloc_or(&f->wrong, n, sizeof *f->wrong, "queries", err));
    for (int64_t i = 0; i < r->n_query; i++) {
        if (isnan(r->query[i].map)) continue;
        f->order[f->n_judged++] = (ranked){r->query[i].map, i};
        const int64_t nearest = f->lists[i * f->k].index;
        if (f->sides.gallery_class[nearest] != f->sides.query_class[i]) f->wrong[f->n_wrong++] = i;
    }
    qsort(f->order, (size_t)f->n_judged, sizeof *f->order, by_key);
    KI_TRY(ki_zalloc_or(&f->negative, (size_t)f->n_wrong, sizeof *f->negative, "hard negatives", err));
    ki_rerank_each(f->n_wrong, find_positive, f);
    qsort(f->negative, (size_t)f->n_wrong, sizeof *f->negative, by_margin);
    return KITH_OK;
}

/* Is the other half of this pair there already, with a greater margin? listed[row] is the negative that it has there. */
static bool is_listed(const int64_t *listed, const kith_hard_negative *n) {
    return listed[n->negative.row] == n->row;
}

static kith_status take_negatives(const finder *f, int64_t most, kith_worst *w, kith_error *err) {
    int64_t *listed = NULL;
    const int64_t room = most > 0 && most < f->n_wrong ? most : f->n_wrong;
    KI_TRY(ki_alloc_or(&w->negatives, (size_t)room, sizeof *w->negatives, "hard negatives", err));
    KI_TRY(ki_alloc_or(&listed, (size_t)f->in->rows.n, sizeof *listed, "rows", err));
    for (int64_t i = 0; i < f->in->rows.n; i++) listed[i] = -1;
    for (int64_t i = 0; i < f->n_wrong && w->n_negatives < room; i++) {
        const kith_hard_negative *n = &f->negative[i];
        if (is_listed(listed, n)) continue;
        listed[n->row] = n->negative.row;
        w->negatives[w->n_negatives++] = *n;
    }
    ki_free(listed);
    return KITH_OK;
}

static kith_status take_queries(const finder *f, int64_t most, kith_worst *w, kith_error *err) {
    const int64_t n = most > 0 && most < f->n_judged ? most : f->n_judged;
    KI_TRY(ki_alloc_or(&w->queries, (size_t)n, sizeof *w->queries, "the worst queries", err));
    KI_TRY(ki_alloc_or(&w->nearest, (size_t)n, (size_t)f->k * sizeof *w->nearest, "their lists", err));
    w->n_nearest = f->k;
    for (; w->n < n; w->n++) {
        const int64_t query = f->order[w->n].query, row = row_of(f->in->query, query);
        w->queries[w->n] = (kith_worst_query){.row = row,
                                              .label = f->in->labels[row],
                                              .average_precision = f->scores->query[query].map,
                                              .first_hit = (int64_t)lround(1 / f->scores->query[query].mrr)};
        for (int64_t j = 0; j < f->k; j++) {
            const int64_t place = f->lists[query * f->k + j].index;
            w->nearest[w->n * f->k + j] =
                place >= 0 ? hit_at(f, query, place) : (kith_worst_hit){-1, -1, NAN};
        }
    }
    return KITH_OK;
}

/* ---- all of it ---- */

static kith_status check(const finder *f, kith_error *err) {
    const kith_worst_options *o = f->options;
    if (o->most < 0 || o->n_nearest < 1 || o->n_nearest > MOST_NEAREST)
        return ki_fail(err, KITH_EINVAL, "most is %lld and n_nearest %lld; wanted 0 or more, and 1 to %d",
                       (long long)o->most, (long long)o->n_nearest, MOST_NEAREST);
    if (!o->scores) return KITH_OK;
    char hash[65];
    KI_TRY(ki_queries_hash(&f->sides, hash, err));
    if (!o->scores->query || strcmp(hash, o->scores->queries_sha256) != 0)
        return ki_fail(err, KITH_EINVAL, "the scores are of other queries or another gallery");
    return KITH_OK;
}

static kith_status rank(finder *f, kith_retrieval *made, kith_error *err) {
    KITH_OPTIONS(kith_retrieval_options, how);
    how.metric = f->options->metric;
    how.device = f->options->device;
    how.progress = f->options->progress;
    how.user = f->options->user;
    f->scores = f->options->scores;
    if (f->scores) return KITH_OK;
    f->scores = made;
    return ki_retrieval_run(f->in, &how, made, err);
}

kith_status ki_worst_find(const ki_judge_input *in, const kith_worst_options *options, kith_worst *ret,
                          kith_error *err) {
    kith_status status;
    kith_retrieval made = {0};
    kith_worst w = {0};
    finder f = {.in = in, .options = options};
    KI_CHECK(ki_sides_init(in, &f.sides, err));
    KI_CHECK(check(&f, err));
    KI_CHECK(rank(&f, &made, err));
    if (options->metric == KITH_COSINE) {
        KI_CHECK(make_lengths(&f.sides.query, &f.query_length, err));
        KI_CHECK(make_lengths(&f.sides.gallery, &f.gallery_length, err));
    }
    KI_CHECK(find_lists(&f, err));
    KI_CHECK(sort_classes(&f, err));
    KI_CHECK(look_through(&f, err));
    KI_CHECK(take_queries(&f, options->most, &w, err));
    KI_CHECK(take_negatives(&f, options->most, &w, err));
    w.n_judged = f.n_judged;
    w.n_wrong = f.n_wrong;
    *ret = w;
    w = (kith_worst){0};
done:
    kith_worst_release(&w);
    kith_retrieval_release(&made);
    finder_release(&f);
    return status;
}

kith_status kith_worst_find(const kith_retrieval_input *given, const kith_worst_options *options,
                            kith_worst *ret_worst, kith_error *err) {
    KI_NEED(err, given, ret_worst);
    ki_judge_input in;
    KI_OPTIONS_TAKE(kith_worst_options, o, options, err);
    KI_TRY(ki_judge_input_of(given, &in, err));
    return ki_worst_find(&in, &o, ret_worst, err);
}

void kith_worst_release(kith_worst *worst) {
    if (!worst) return;
    ki_free(worst->queries);
    ki_free(worst->nearest);
    ki_free(worst->negatives);
    *worst = (kith_worst){0};
}
