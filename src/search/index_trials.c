/* Trials of the labelled items of an index.
 *
 * A few thousand items are compared with each other. Of more, some are searched for in the whole index, by its own search: first for a
 * few more hits than wanted, and those that find too few with other labels again for four times as many. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "search/index_handle.h"
#include "search/labelled.h"

enum { MOST_QUERIES = 3000, N_SPARE = 64, MOST_HITS_AT_ONCE = 1 << 21 };

static kith_status check_labels(const kith_index *index, const ki_labelled *s, int64_t n_least,
                                kith_error *err) {
    int64_t n_labels = 0, *n_items = NULL;
    KI_TRY(ki_zalloc_or(&n_items, (size_t)s->n_classes, sizeof *n_items, "labels", err));
    for (int64_t i = 0; i < s->n; i++) n_labels += ++n_items[s->class_of[i]] == 2;
    ki_free(n_items);
    if (n_labels >= n_least) return KITH_OK;
    ki_fail(err, KITH_ENOTFOUND, "%s has %lld labels of two items or more; wanted %lld", ki_index_name(index),
            (long long)n_labels, (long long)n_least);
    return ki_hint(err, KITH_ENOTFOUND, "name more of the items");
}

/* ---- all with all ---- */

static kith_status try_all(const kith_index *index, const ki_labelled *s, int64_t k, ki_trials *ret,
                           kith_error *err) {
    const ki_manifest *m = ki_index_committed(index);
    float *rows = NULL;
    KI_TRY(ki_alloc_or(&rows, (size_t)s->n, (size_t)m->dim * sizeof *rows, "vectors", err));
    kith_status status = kith_index_vectors(index, s->id, s->n, rows, err);
    const kith_array array = {KITH_F32, 2, {s->n, m->dim}, rows};
    if (status == KITH_OK) status = ki_trials_run(&array, s->class_of, m->metric, k, ret, err);
    ki_free(rows);
    return status;
}

/* ---- some in all ---- */

typedef struct searcher {
    const kith_index *index;
    const ki_labelled *all;
    ki_trials *t;
    int64_t *row_of; /* [all->n]: the row of the item in the trials */
    int64_t *id;     /* [t->n] of the queries */
    int64_t *open;   /* [n_open] queries whose list of other labels is too short */
    int64_t n_open;
} searcher;

static int by_id(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t place_of(const searcher *s, int64_t id) {
    const int64_t *at = bsearch(&id, s->all->id, (size_t)s->all->n, sizeof id, by_id);
    return at ? at - s->all->id : -1;
}

/* Queries come first among the rows. */
static kith_status number_rows(searcher *s, kith_error *err) {
    const int64_t n = s->all->n;
    KI_TRY(ki_alloc_or(&s->row_of, (size_t)n, sizeof *s->row_of, "items", err));
    KI_TRY(ki_alloc_or(&s->t->label, (size_t)n, sizeof *s->t->label, "labels", err));
    KI_TRY(ki_alloc_or(&s->open, (size_t)s->t->n, sizeof *s->open, "queries", err));
    for (int64_t i = 0; i < n; i++) s->row_of[i] = -1;
    for (int64_t q = 0; q < s->t->n; q++) s->row_of[place_of(s, s->id[q])] = q;
    int64_t next = s->t->n;
    for (int64_t i = 0; i < n; i++) {
        if (s->row_of[i] < 0) s->row_of[i] = next++;
        s->t->label[s->row_of[i]] = s->all->class_of[i];
    }
    for (int64_t q = 0; q < s->t->n; q++) s->open[q] = q;
    s->n_open = s->t->n;
    return KITH_OK;
}

static int64_t take(const searcher *s, const kith_hit *hits, int64_t n, int64_t label, ki_trial_hit *ret) {
    int64_t n_taken = 0;
    for (int64_t i = 0; i < n && n_taken < s->t->k; i++) {
        const int64_t place = place_of(s, hits[i].id);
        if (place >= 0 && s->all->class_of[place] != label)
            ret[n_taken++] = (ki_trial_hit){(float)hits[i].score, (int32_t)s->row_of[place]};
    }
    for (int64_t i = n_taken; i < s->t->k; i++) ret[i] = (ki_trial_hit){(float)NAN, -1};
    return n_taken;
}

/* The n open queries from `from` on, each for `wanted` hits; those that are open still move to `to`. */
static kith_status search_some(searcher *s, int64_t from, int64_t n, int64_t wanted, int64_t *to,
                               kith_error *err) {
    kith_status status;
    float *rows = NULL;
    int64_t *self = NULL;
    kith_hits hits = {0};
    ki_trials *t = s->t;
    const int64_t dim = ki_index_committed(s->index)->dim;
    KITH_OPTIONS(kith_search_options, o);
    KI_CHECK(ki_alloc_or(&self, (size_t)n, sizeof *self, "queries", err));
    KI_CHECK(ki_alloc_or(&rows, (size_t)n, (size_t)dim * sizeof *rows, "queries", err));
    for (int64_t i = 0; i < n; i++) self[i] = s->id[s->open[from + i]];
    KI_CHECK(kith_index_vectors(s->index, self, n, rows, err));
    const kith_array query = {KITH_F32, 2, {n, dim}, rows};
    o.k = wanted;
    o.where = "label != ''";
    o.self = self;
    KI_CHECK(kith_index_search(s->index, &query, &o, &hits, err));
    for (int64_t i = 0; i < n; i++) {
        const int64_t q = s->open[from + i], n_hits = hits.begin[i + 1] - hits.begin[i];
        const kith_hit *list = hits.hits + hits.begin[i];
        take(s, list, n_hits, -1, t->with + q * t->k);
        const int64_t n_found = take(s, list, n_hits, t->label[q], t->without + q * t->k);
        if (n_found < t->k && wanted < s->all->n - 1) s->open[(*to)++] = q;
    }
done:
    kith_hits_release(&hits);
    ki_free(self);
    ki_free(rows);
    return status;
}

static kith_status search_all(searcher *s, kith_error *err) {
    int64_t wanted = s->t->k + N_SPARE;
    while (s->n_open > 0) {
        if (wanted > s->all->n - 1) wanted = s->all->n - 1;
        const int64_t many = MOST_HITS_AT_ONCE / wanted > 1 ? MOST_HITS_AT_ONCE / wanted : 1;
        int64_t n_left = 0;
        for (int64_t from = 0; from < s->n_open; from += many) {
            const int64_t n = s->n_open - from < many ? s->n_open - from : many;
            KI_TRY(search_some(s, from, n, wanted, &n_left, err));
        }
        s->n_open = n_left;
        wanted *= 4;
    }
    return KITH_OK;
}

static kith_status try_some(const kith_index *index, const ki_labelled *all, int64_t k, ki_trials *ret,
                            kith_error *err) {
    kith_status status;
    ki_labelled sample = {0};
    const size_t bytes = (size_t)k * sizeof(ki_trial_hit);
    ki_trials t = {.k = k, .n_rows = all->n, .n_labels = all->n_classes};
    searcher s = {.index = index, .all = all, .t = &t};
    t.metric = ki_index_committed(index)->metric;
    KI_CHECK(ki_labelled_take(index, MOST_QUERIES, &sample, err));
    t.n = sample.n;
    s.id = sample.id;
    KI_CHECK(ki_alloc_or(&t.with, (size_t)t.n, bytes, "trials", err));
    KI_CHECK(ki_alloc_or(&t.without, (size_t)t.n, bytes, "trials", err));
    KI_CHECK(number_rows(&s, err));
    KI_CHECK(search_all(&s, err));
    *ret = t;
    t = (ki_trials){0};
done:
    ki_trials_release(&t);
    ki_labelled_release(&sample);
    ki_free(s.row_of);
    ki_free(s.open);
    return status;
}

kith_status ki_index_trials(const kith_index *index, int64_t k, int64_t n_least, ki_trials *ret,
                            kith_error *err) {
    kith_status status;
    ki_labelled all = {0};
    KI_CHECK(ki_labelled_take(index, INT32_MAX, &all, err));
    KI_CHECK(check_labels(index, &all, n_least, err));
    status = all.n <= ki_labelled_most(ki_index_committed(index)->dim) ? try_all(index, &all, k, ret, err)
                                                                       : try_some(index, &all, k, ret, err);
done:
    ki_labelled_release(&all);
    return status;
}
