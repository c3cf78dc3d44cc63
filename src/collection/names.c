/* The curve of names of an index. Queries are drawn where there are many items, but always ask all of them: among fewer items there are
 * fewer that look alike. */
#include "collection/names.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "collection/collection.h"
#include "search/index_handle.h"
#include "search/notes.h"

enum {
    MOST_IN_MEMORY = 20000,      /* items that are all asked for, with their vectors in memory */
    MOST_NUMBERS = 32 * 1000000, /* of these vectors */
    MOST_ASKED = 10000,          /* of more items */
    N_SPARE = 96,                /* hits of one's own label that a list has room for */
    AT_A_TIME = 1000
};

/* Items with a label. */
typedef struct labelled {
    int64_t n, *id;     /* ascending … */
    int64_t *label;     /* [n]: the number of its label */
    const char **text;  /* [n] … until they are drawn */
    ki_arena arena;
} labelled;

static void labelled_release(labelled *l) {
    kith_ids_free(l->id);
    ki_free(l->label);
    ki_free(l->text);
    ki_arena_release(&l->arena);
}

typedef struct ordered {
    const char *text;
    int64_t at;
} ordered;

static int by_text(const void *a, const void *b) {
    const ordered *x = a, *y = b;
    const int order = strcmp(x->text, y->text);
    return order != 0 ? order : (x->at > y->at) - (x->at < y->at);
}

static kith_status labelled_init(labelled *l, const kith_index *index, kith_error *err) {
    kith_status status;
    ordered *order = NULL;
    KI_CHECK(kith_index_ids(index, KI_NAMED, &l->id, &l->n, err));
    KI_CHECK(ki_zalloc_or(&l->text, (size_t)l->n, sizeof *l->text, "labels", err));
    KI_CHECK(ki_alloc_or(&l->label, (size_t)l->n, sizeof *l->label, "labels", err));
    KI_CHECK(ki_alloc_or(&order, (size_t)l->n, sizeof *order, "labels", err));
    KI_CHECK(ki_index_labels(index, l->id, l->n, &l->arena, l->text, err));
    for (int64_t i = 0; i < l->n; i++) order[i] = (ordered){l->text[i] ? l->text[i] : "", i};
    if (l->n > 0) qsort(order, (size_t)l->n, sizeof *order, by_text);
    for (int64_t i = 0, number = -1; i < l->n; i++) {
        number += i == 0 || strcmp(order[i].text, order[i - 1].text) != 0;
        l->label[order[i].at] = number;
    }
done:
    ki_free(order);
    return status;
}

/* ---- all of them, in memory ---- */

static kith_status try_all(const kith_index *index, const labelled *l, ki_trials *ret, kith_error *err) {
    const ki_manifest *m = ki_index_committed(index);
    float *rows = NULL;
    KI_TRY(ki_alloc_or(&rows, (size_t)(l->n * m->dim), sizeof *rows, "vectors", err));
    kith_status status = kith_index_vectors(index, l->id, l->n, rows, err);
    const kith_array array = {KITH_F32, 2, {l->n, m->dim}, rows};
    if (status == KITH_OK) status = ki_trials_run(&array, l->label, m->metric, KI_EVIDENCE_HITS, ret, err);
    ki_free(rows);
    return status;
}

/* ---- some of them, by searches ---- */

/* Move those that are drawn to the front, by a hash of the id: the same in a folder and at a server. */
static int64_t draw(labelled *l) {
    int64_t n = 0;
    for (int64_t i = 0; i < l->n && n < MOST_ASKED; i++) {
        ki_rng rng = ki_rng_at(0, KI_RNG_SEARCH, (uint32_t)l->id[i], (uint32_t)((uint64_t)l->id[i] >> 32));
        if (ki_rng_double(&rng) * (double)l->n >= MOST_ASKED) continue;
        const labelled first = {.id = &l->id[n], .label = &l->label[n], .text = &l->text[n]};
        const int64_t id = l->id[i], label = l->label[i];
        const char *text = l->text[i];
        l->id[i] = *first.id, *first.id = id;
        l->label[i] = *first.label, *first.label = label;
        l->text[i] = *first.text, *first.text = text;
        n++;
    }
    return n;
}

typedef struct place {
    int64_t id, row;
} place;

static int by_id(const void *a, const void *b) {
    const place *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

typedef struct asker {
    const kith_index *index;
    const labelled *l;
    place *place; /* [l->n] by id */
    float *rows;  /* [AT_A_TIME, dim] */
    ki_trials *t;
} asker;

static int64_t row_of(const asker *a, int64_t id) {
    const place key = {.id = id}, *found = bsearch(&key, a->place, (size_t)a->l->n, sizeof key, by_id);
    return found ? found->row : -1;
}

/* The hits that have another label than `label` (-1: any); returns how many there are. */
static int64_t take(const asker *a, const kith_hits *hits, int64_t q, int64_t label, ki_trial_hit *ret) {
    int64_t n = 0;
    for (int64_t i = hits->begin[q]; i < hits->begin[q + 1] && n < a->t->k; i++) {
        const int64_t row = row_of(a, hits->hits[i].id);
        if (row >= 0 && a->t->label[row] != label) ret[n++] = (ki_trial_hit){(float)hits->hits[i].score, (int32_t)row};
    }
    for (int64_t i = n; i < a->t->k; i++) ret[i] = (ki_trial_hit){(float)NAN, -1};
    return n;
}

static kith_status search(const asker *a, int64_t first, int64_t n, int64_t k, const char *where, kith_hits *ret,
                          kith_error *err) {
    const int64_t dim = ki_index_committed(a->index)->dim;
    KITH_OPTIONS(kith_search_options, o);
    o.k = k;
    o.where = where;
    o.self = a->l->id + first;
    KI_TRY(kith_index_vectors(a->index, a->l->id + first, n, a->rows, err));
    const kith_array rows = {KITH_F32, 2, {n, dim}, a->rows};
    return kith_index_search(a->index, &rows, &o, ret, err);
}

/* A list full of one's own label: once more without it. Quotes inside a text are doubled. */
static kith_status search_others(const asker *a, int64_t q, kith_error *err) {
    static const char before[] = KI_NAMED " and label != '";
    const char *text = a->l->text[q];
    char *where = NULL;
    kith_hits hits = {0};
    KI_TRY(ki_alloc_or(&where, sizeof before + 2 * strlen(text) + 1, 1, "a filter", err));
    size_t n = sizeof before - 1;
    memcpy(where, before, n);
    for (const char *at = text; *at; at++) {
        if (*at == '\'') where[n++] = '\'';
        where[n++] = *at;
    }
    memcpy(where + n, "'", 2);
    const kith_status status = search(a, q, 1, a->t->k, where, &hits, err);
    if (status == KITH_OK) take(a, &hits, 0, a->t->label[q], a->t->without + q * a->t->k);
    kith_hits_release(&hits);
    ki_free(where);
    return status;
}

static kith_status ask(const asker *a, int64_t first, int64_t n, kith_error *err) {
    kith_status status;
    ki_trials *t = a->t;
    kith_hits hits = {0};
    KI_CHECK(search(a, first, n, t->k + N_SPARE, KI_NAMED, &hits, err));
    for (int64_t i = 0; i < n; i++) {
        const int64_t q = first + i;
        take(a, &hits, i, -1, t->with + q * t->k);
        const int64_t n_others = take(a, &hits, i, t->label[q], t->without + q * t->k);
        if (n_others < t->k && hits.begin[i + 1] - hits.begin[i] == t->k + N_SPARE) KI_CHECK(search_others(a, q, err));
    }
done:
    kith_hits_release(&hits);
    return status;
}

static kith_status try_some(const kith_index *index, labelled *l, ki_trials *ret, kith_error *err) {
    kith_status status;
    asker a = {.index = index, .l = l, .t = ret};
    *ret = (ki_trials){.k = KI_EVIDENCE_HITS, .metric = ki_index_committed(index)->metric, .n_rows = l->n};
    ret->n = draw(l);
    KI_CHECK(ki_alloc_or(&a.place, (size_t)l->n, sizeof *a.place, "items", err));
    KI_CHECK(ki_alloc_or(&a.rows, AT_A_TIME * (size_t)ki_index_committed(index)->dim, sizeof *a.rows, "vectors", err));
    KI_CHECK(ki_alloc_or(&ret->label, (size_t)l->n, sizeof *ret->label, "labels", err));
    KI_CHECK(ki_alloc_or(&ret->with, (size_t)(ret->n * ret->k), sizeof *ret->with, "trials", err));
    KI_CHECK(ki_alloc_or(&ret->without, (size_t)(ret->n * ret->k), sizeof *ret->without, "trials", err));
    for (int64_t i = 0; i < l->n; i++) {
        a.place[i] = (place){l->id[i], i};
        ret->label[i] = l->label[i];
        if (l->label[i] >= ret->n_labels) ret->n_labels = l->label[i] + 1;
    }
    qsort(a.place, (size_t)l->n, sizeof *a.place, by_id);
    for (int64_t i = 0; i < ret->n; i += AT_A_TIME)
        KI_CHECK(ask(&a, i, ret->n - i < AT_A_TIME ? ret->n - i : AT_A_TIME, err));
done:
    ki_free(a.place);
    ki_free(a.rows);
    if (status != KITH_OK) ki_trials_release(ret);
    return status;
}

/* ---- the curve ---- */

static kith_status measure(const kith_index *index, ki_name_curve *ret, kith_error *err) {
    kith_status status;
    labelled l = {0};
    ki_trials trials = {0};
    const int64_t dim = ki_index_committed(index)->dim;
    KI_CHECK(labelled_init(&l, index, err));
    if (l.n == 0) {
        status = ki_fail(err, KITH_ENOTFOUND, "no item of %s has a label, so there are no names to give",
                         ki_index_name(index));
        goto done;
    }
    const bool all = l.n <= MOST_IN_MEMORY && l.n <= MOST_NUMBERS / dim;
    KI_CHECK(all ? try_all(index, &l, &trials, err) : try_some(index, &l, &trials, err));
    KI_CHECK(ki_naming_make(&trials, ret, err));
done:
    ki_trials_release(&trials);
    labelled_release(&l);
    return status;
}

static kith_status note(kith_index *index, const ki_name_curve *curve, kith_error *err) {
    kith_json *json = NULL;
    const char *text = NULL;
    KI_TRY(kith_json_new(&json, err));
    kith_status status = ki_naming_write(curve, json, &text, err);
    if (status == KITH_OK) status = ki_index_note_set(index, KI_NOTE_NAMES, text, err);
    kith_json_free(json);
    return status;
}

kith_status ki_measure_names(kith_index *index, kith_error *err) {
    ki_name_curve *curve = NULL;
    KI_TRY(ki_zalloc_or(&curve, 1, sizeof *curve, "a curve", err));
    kith_status status = measure(index, curve, err);
    const char *there = ki_index_note(index, KI_NOTE_NAMES);
    if (status == KITH_OK)
        status = note(index, curve, err);
    else if (status == KITH_ENOTFOUND)
        status = there && *there ? ki_index_note_set(index, KI_NOTE_NAMES, "", err) : KITH_OK;
    ki_free(curve);
    return status;
}

/* Have fewer than a tenth of the labelled items come or gone? */
static kith_status is_recent(const kith_index *index, const ki_name_curve *curve, bool *ret, kith_error *err) {
    int64_t *ids = NULL, n = 0;
    const kith_status status = kith_index_ids(index, KI_NAMED, &ids, &n, err);
    kith_ids_free(ids);
    const int64_t change = n > curve->n_rows ? n - curve->n_rows : curve->n_rows - n;
    *ret = change * 10 <= curve->n_rows;
    return status;
}

static kith_status find(const kith_collection *c, ki_name_curve *ret, kith_error *err) {
    const char *text = ki_index_note(c->index, KI_NOTE_NAMES);
    bool recent = false;
    if (text && *text) {
        KI_TRY(ki_naming_read(text, ret, err));
        if (ret->metric == ki_index_committed(c->index)->metric) KI_TRY(is_recent(c->index, ret, &recent, err));
    }
    return recent ? KITH_OK : measure(c->index, ret, err);
}

kith_status ki_collection_names(kith_collection *c, const ki_name_curve **ret, kith_error *err) {
    kith_index_info info;
    kith_index_info_get(c->index, &info);
    if (!c->naming || c->naming_of != info.generation) {
        ki_name_curve *curve = NULL;
        KI_TRY(ki_zalloc_or(&curve, 1, sizeof *curve, "a curve", err));
        const kith_status status = find(c, curve, err);
        if (status != KITH_OK) {
            ki_free(curve);
            return status;
        }
        ki_free(c->naming);
        c->naming = curve;
        c->naming_of = info.generation;
    }
    *ret = c->naming;
    return KITH_OK;
}
