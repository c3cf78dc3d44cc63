/* Groups and proposals for photos without a name. */
#include "serve/search/name_queue.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "collection/decisions.h"
#include "collection/reliable.h"
#include "search/index_handle.h"

enum { N_MUTUAL = 2, N_NAMED = 12 };
/* Photos are taken together when so few pairs of different things look as similar. */
static const double TOGETHER = 1e-3;

/* Everything that is known while a queue is made. */
typedef struct making {
    const ki_catalog *catalog;
    const kith_index *index;
    ki_name_queue *queue;
    const char *unnamed;
    ki_decisions noted;
    int64_t *ids, n;               /* that are looked at */
    int64_t *parent;               /* [n] of the groups */
    int64_t *size;                 /* [n] of the group that this leads */
    kith_array rows;               /* their vectors */
    kith_hits near, named;         /* neighbours of each: any, and those with a name */
    const char **labels;           /* of the hits of `named` */
    kith_reliability *reliability; /* NULL: nothing is known of errors */
} making;

static double sign_of(const making *m) { return m->catalog->info.metric == KITH_SQEUCLIDEAN ? -1 : 1; }

/* ---- who has no name ---- */

static kith_status where_named(const making *m, ki_buffer *where) {
    ki_buffer_put(where, "label != ''");
    if (m->unnamed) {
        ki_buffer_put(where, " and label != '");
        for (const char *at = m->unnamed; *at; at++)
            ki_buffer_add(where, *at == '\'' ? "''" : at, *at == '\'' ? 2 : 1);
        ki_buffer_add(where, "'", 1);
    }
    ki_buffer_add(where, "", 1);
    return where->status;
}

/* All that the filter for names does not find; the first of them are looked at. */
static kith_status find_unnamed(making *m, const char *where, kith_error *err) {
    int64_t *all = NULL, *named = NULL, n_all = 0, n_named = 0;
    kith_status status;
    KI_CHECK(kith_index_ids(m->index, NULL, &all, &n_all, err));
    KI_CHECK(kith_index_ids(m->index, where, &named, &n_named, err));
    KI_CHECK(ki_alloc_or(&m->ids, KI_NAME_QUEUE_PART, sizeof *m->ids, "items", err));
    m->queue->n_unnamed = n_all - n_named;
    for (int64_t i = 0, k = 0; i < n_all && m->n < KI_NAME_QUEUE_PART; i++) {
        while (k < n_named && named[k] < all[i]) k++;
        if (k == n_named || named[k] != all[i]) m->ids[m->n++] = all[i];
    }
done:
    kith_ids_free(all);
    kith_ids_free(named);
    return status;
}

/* ---- neighbours ---- */

static kith_status find_neighbours(making *m, const char *where, kith_error *err) {
    KITH_OPTIONS(kith_search_options, o);
    KI_TRY(kith_array_init(KITH_F32, 2, (int64_t[]){m->n, m->catalog->info.dim}, &m->rows, err));
    KI_TRY(kith_index_vectors(m->index, m->ids, m->n, m->rows.data, err));
    o.self = m->ids;
    o.k = N_MUTUAL;
    KI_TRY(kith_index_search(m->index, &m->rows, &o, &m->near, err));
    o.k = N_NAMED;
    o.where = where;
    KI_TRY(kith_index_search(m->index, &m->rows, &o, &m->named, err));
    const int64_t n = m->named.begin[m->n];
    int64_t *ids = ki_arena_alloc(&m->queue->arena, (size_t)n + 1, sizeof *ids);
    m->labels = ki_arena_alloc(&m->queue->arena, (size_t)n + 1, sizeof *m->labels);
    if (!ids || !m->labels) return ki_fail_memory(err, (size_t)n * sizeof *ids, "neighbours");
    for (int64_t i = 0; i < n; i++) ids[i] = m->named.hits[i].id;
    return ki_index_labels(m->index, ids, n, &m->queue->arena, m->labels, err);
}

/* ---- groups ---- */

static int64_t place_of(const making *m, int64_t id) {
    int64_t low = 0, high = m->n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (m->ids[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < m->n && m->ids[low] == id ? low : -1;
}

static int64_t leader(making *m, int64_t i) {
    while (m->parent[i] != i) i = m->parent[i] = m->parent[m->parent[i]];
    return i;
}

/* Pairs that are told apart: only those of items that are looked at. */
static void keep_pairs(making *m) {
    int64_t n = 0;
    for (int64_t i = 0; i < m->noted.n_apart; i++) {
        const ki_name_pair pair = m->noted.apart[i];
        if (place_of(m, pair.a) >= 0 && place_of(m, pair.b) >= 0) m->noted.apart[n++] = pair;
    }
    m->noted.n_apart = n;
}

/* Somebody said that one of the one is not one of the other. */
static bool are_apart(making *m, int64_t a, int64_t b) {
    for (int64_t i = 0; i < m->noted.n_apart; i++) {
        const int64_t x = place_of(m, m->noted.apart[i].a), y = place_of(m, m->noted.apart[i].b);
        const int64_t one = leader(m, x), other = leader(m, y);
        if ((one == a && other == b) || (one == b && other == a)) return true;
    }
    return false;
}

static void join(making *m, int64_t i, int64_t k) {
    const int64_t a = leader(m, i), b = leader(m, k);
    if (a == b || m->size[a] + m->size[b] > KI_NAME_GROUP_MOST || are_apart(m, a, b)) return;
    const int64_t to = a < b ? a : b, from = a < b ? b : a;
    m->parent[from] = to;
    m->size[to] += m->size[from];
}

/* Is the one of `id` among the nearest of the other? */
static bool is_near(const making *m, int64_t of, int64_t id) {
    for (int64_t h = m->near.begin[of]; h < m->near.begin[of + 1] && h < m->near.begin[of] + N_MUTUAL; h++) {
        if (m->near.hits[h].id == id) return true;
    }
    return false;
}

/* Each is among the nearest of the other, and few pairs of different things look as similar, where that is known. */
static void group_by_likeness(making *m) {
    const kith_calibration *curve = kith_index_calibration(m->index);
    for (int64_t i = 0; i < m->n; i++) {
        for (int64_t h = m->near.begin[i]; h < m->near.begin[i + 1] && h < m->near.begin[i] + N_MUTUAL; h++) {
            const kith_hit *hit = &m->near.hits[h];
            const int64_t k = place_of(m, hit->id);
            if (k < 0 || !is_near(m, k, m->ids[i])) continue;
            if (!curve || kith_calibration_false_match_rate(curve, hit->score) <= TOGETHER) join(m, i, k);
        }
    }
}

/* The number of an item's group, if somebody has found groups (the column `group`); -1: none. */
static kith_status group_of(const making *m, int64_t column, int64_t id, int64_t *ret, kith_error *err) {
    kith_index_item item;
    KI_TRY(kith_index_item_get(m->index, id, &item, err));
    *ret = item.values && item.values[column].type == KITH_VALUE_INT ? item.values[column].integer : -1;
    kith_index_item_release(&item);
    return KITH_OK;
}

typedef struct member {
    int64_t group, i;
} member;

static int by_group(const void *a, const void *b) {
    const member *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    return (x->i > y->i) - (x->i < y->i);
}

static kith_status group_by_column(making *m, int64_t column, kith_error *err) {
    member *members = ki_arena_alloc(&m->queue->arena, (size_t)m->n, sizeof *members);
    if (!members) return ki_fail_memory(err, (size_t)m->n * sizeof *members, "groups");
    for (int64_t i = 0; i < m->n; i++) {
        members[i].i = i;
        KI_TRY(group_of(m, column, m->ids[i], &members[i].group, err));
    }
    qsort(members, (size_t)m->n, sizeof *members, by_group);
    for (int64_t i = 1; i < m->n; i++) {
        if (members[i].group >= 0 && members[i].group == members[i - 1].group)
            join(m, members[i - 1].i, members[i].i);
    }
    return KITH_OK;
}

static kith_status find_groups(making *m, kith_error *err) {
    KI_TRY(ki_alloc_or(&m->parent, (size_t)m->n, sizeof *m->parent, "groups", err));
    KI_TRY(ki_alloc_or(&m->size, (size_t)m->n, sizeof *m->size, "groups", err));
    for (int64_t i = 0; i < m->n; i++) {
        m->parent[i] = i;
        m->size[i] = 1;
    }
    kith_column c;
    for (int64_t i = 0; (c = kith_index_column(m->index, i)).name; i++) {
        if (strcmp(c.name, "group") == 0 && c.type == KITH_VALUE_INT) return group_by_column(m, i, err);
    }
    group_by_likeness(m);
    return KITH_OK;
}

/* ---- proposals ---- */

static bool is_rejected(const making *m, const ki_name_question *q, const char *name) {
    for (int64_t i = 0; i < q->n; i++) {
        if (ki_decisions_is_rejected(&m->noted, q->ids[i], name)) return true;
    }
    return false;
}

/* How often such a hit is wrong: the first named neighbour of a photo, by its lead over the next one with another name. */
static void tell_error(const making *m, int64_t at, ki_name_question *q) {
    const int64_t begin = m->named.begin[at], end = m->named.begin[at + 1];
    const kith_hit *first = &m->named.hits[begin];
    int64_t next = begin + 1;
    if (!m->reliability) return;
    while (next < end && m->labels[next] && strcmp(m->labels[next], m->labels[begin]) == 0) next++;
    /* All have that name: the lead is at least that over the last. */
    if (next == end) next = end - 1;
    const double margin = sign_of(m) * (first->score - m->named.hits[next].score);
    const double evidence = kith_reliability_evidence(m->reliability, first->score, 1, margin);
    const kith_error_rate rate = kith_reliability_error_rate(m->reliability, evidence, KITH_UNKNOWN_DEFAULT);
    q->error_rate = rate.rate;
    q->error_rate_low = rate.low;
    q->error_rate_high = rate.high;
}

/* The nearest named neighbour of any of them whose name nobody has turned down. */
static void propose(making *m, ki_name_question *q) {
    const double sign = sign_of(m);
    q->error_rate = q->error_rate_low = q->error_rate_high = (double)NAN;
    for (int64_t i = 0; i < q->n; i++) {
        const int64_t at = place_of(m, q->ids[i]);
        for (int64_t h = m->named.begin[at]; h < m->named.begin[at + 1]; h++) {
            const double score = m->named.hits[h].score;
            const bool is_better = !q->proposal || sign * score > sign * q->score;
            if (!is_better || !m->labels[h] || is_rejected(m, q, m->labels[h])) continue;
            q->proposal = m->labels[h];
            q->score = score;
            q->error_rate = q->error_rate_low = q->error_rate_high = (double)NAN;
            if (h == m->named.begin[at]) tell_error(m, at, q);
        }
    }
}

static bool has_evidence(const ki_name_question *q, int64_t id) {
    for (int64_t i = 0; i < q->n_evidence; i++) {
        if (q->evidence[i] == id) return true;
    }
    return false;
}

/* The nearest photos with that name, the best first. */
static void find_evidence(making *m, ki_name_question *q) {
    const double sign = sign_of(m);
    while (q->proposal && q->n_evidence < KI_NAME_EVIDENCE) {
        const kith_hit *best = NULL;
        for (int64_t i = 0; i < q->n; i++) {
            const int64_t at = place_of(m, q->ids[i]);
            for (int64_t h = m->named.begin[at]; h < m->named.begin[at + 1]; h++) {
                const kith_hit *hit = &m->named.hits[h];
                if (!m->labels[h] || strcmp(m->labels[h], q->proposal) != 0 || has_evidence(q, hit->id))
                    continue;
                if (!best || sign * hit->score > sign * best->score) best = hit;
            }
        }
        if (!best) return;
        q->evidence[q->n_evidence++] = best->id;
    }
}

/* ---- the order ---- */

typedef struct ranked {
    ki_name_question question;
    double sign;
} ranked;

/* Groups, the largest first; then proposals, the surest first; then the rest. */
static int by_use(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    const ki_name_question *p = &x->question, *q = &y->question;
    if (p->n != q->n) return p->n > q->n ? -1 : 1;
    if (!p->proposal != !q->proposal) return p->proposal ? -1 : 1;
    if (p->proposal && p->score != q->score) return x->sign * p->score > x->sign * q->score ? -1 : 1;
    return (p->ids[0] > q->ids[0]) - (p->ids[0] < q->ids[0]);
}

static kith_status list_questions(making *m, kith_error *err) {
    ki_arena *arena = &m->queue->arena;
    ranked *all = ki_arena_alloc(arena, (size_t)m->n + 1, sizeof *all);
    int64_t *ids = ki_arena_alloc(arena, (size_t)m->n + 1, sizeof *ids), n = 0, used = 0;
    if (!all || !ids) return ki_fail_memory(err, (size_t)m->n * sizeof *all, "questions");
    for (int64_t i = 0; i < m->n; i++) {
        if (leader(m, i) != i) continue;
        ranked *one = &all[n++];
        one->sign = sign_of(m);
        one->question.ids = ids + used;
        for (int64_t k = i; k < m->n; k++) {
            if (leader(m, k) == i) one->question.ids[one->question.n++] = m->ids[k];
        }
        used += one->question.n;
        propose(m, &one->question);
        find_evidence(m, &one->question);
    }
    if (n > 0) qsort(all, (size_t)n, sizeof *all, by_use);
    m->queue->questions = ki_arena_alloc(arena, (size_t)n + 1, sizeof *m->queue->questions);
    if (!m->queue->questions) return ki_fail_memory(err, (size_t)n * sizeof *all, "questions");
    for (int64_t i = 0; i < n; i++) m->queue->questions[i] = all[i].question;
    m->queue->n = n;
    return KITH_OK;
}

static kith_status read_reliability(making *m, kith_error *err) {
    KI_TRY(ki_alloc_or(&m->reliability, 1, sizeof *m->reliability, "the reliability of hits", err));
    if (ki_reliable_read(m->index, m->reliability, NULL) == KITH_OK) return KITH_OK;
    ki_free(m->reliability);
    m->reliability = NULL;
    return KITH_OK;
}

static kith_status make(making *m, ki_buffer *where, kith_error *err) {
    KI_TRY(where_named(m, where));
    KI_TRY(find_unnamed(m, where->data, err));
    if (m->n == 0) return KITH_OK;
    KI_TRY(ki_decisions_read(&m->noted, m->index, err));
    keep_pairs(m);
    KI_TRY(read_reliability(m, err));
    KI_TRY(find_neighbours(m, where->data, err));
    KI_TRY(find_groups(m, err));
    return list_questions(m, err);
}

kith_status ki_name_queue_find(const ki_catalog *catalog, const char *unnamed, ki_name_queue *queue,
                               kith_error *err) {
    making m = {.catalog = catalog, .index = catalog->index, .queue = queue, .unnamed = unnamed};
    ki_buffer where = {.err = err};
    const kith_status status = make(&m, &where, err);
    ki_buffer_release(&where);
    kith_hits_release(&m.near);
    kith_hits_release(&m.named);
    kith_array_release(&m.rows);
    ki_decisions_drop(&m.noted);
    ki_free(m.reliability);
    ki_free(m.ids);
    ki_free(m.parent);
    ki_free(m.size);
    return status;
}

void ki_name_queue_release(ki_name_queue *queue) {
    ki_arena_release(&queue->arena);
    *queue = (ki_name_queue){0};
}
