/* Hits from lists of neighbours. */
#include "search/hit_list.h"

#include "base/alloc.h"

enum {
    LIMIT_FIRST_K = 64, /* with a limit: hits that are looked for first … */
    LIMIT_FACTOR = 8,   /* … and so many times as many when all of them are within it */
};

kith_status ki_hit_list_init(ki_hit_list *l, const kith_search_options *o, kith_metric metric,
                             int64_t n_queries, int64_t n_allowed, kith_error *err) {
    *l = (ki_hit_list){.o = o, .is_distance = metric == KITH_SQEUCLIDEAN};
    l->most = o->k < n_allowed - o->offset ? o->k + o->offset : n_allowed;
    KI_TRY(ki_zalloc_or(&l->hits.begin, (size_t)n_queries + 1, sizeof *l->hits.begin, "hits", err));
    l->hits.n_queries = n_queries;
    l->hits.n_allowed = n_allowed;
    return KITH_OK;
}

void ki_hit_list_release(ki_hit_list *l) { kith_hits_release(&l->hits); }

static bool is_within(const ki_hit_list *l, double score) {
    if (!l->o->has_limit) return true;
    return l->is_distance ? score <= l->o->limit : score >= l->o->limit;
}

int64_t ki_hit_list_first_k(const ki_hit_list *l) {
    const int64_t few = LIMIT_FIRST_K + l->o->offset;
    return l->o->has_limit && l->most > few ? few : l->most;
}

bool ki_hit_list_is_cut(const ki_hit_list *l, const kith_neighbor *nearest, int64_t k) {
    const kith_neighbor *last = &nearest[k - 1];
    return k < l->most && last->index >= 0 && is_within(l, last->score);
}

int64_t ki_hit_list_next_k(const ki_hit_list *l, int64_t k) {
    return k > l->most / LIMIT_FACTOR ? l->most : k * LIMIT_FACTOR;
}

kith_status ki_hit_list_add(ki_hit_list *l, int64_t query, const kith_neighbor *nearest, int64_t k,
                            const int64_t *ids, kith_error *err) {
    KI_TRY(ki_grow(&l->hits.hits, &l->capacity, l->n + (size_t)k, sizeof *l->hits.hits, "hits", err));
    for (int64_t j = l->o->offset; j < k && nearest[j].index >= 0 && is_within(l, nearest[j].score); j++)
        l->hits.hits[l->n++] = (kith_hit){ids ? ids[nearest[j].index] : nearest[j].index, nearest[j].score};
    l->hits.begin[query + 1] = (int64_t)l->n;
    return KITH_OK;
}

void ki_hit_list_take(ki_hit_list *l, bool is_exact, kith_hits *ret_hits) {
    l->hits.is_exact = is_exact;
    *ret_hits = l->hits;
    l->hits = (kith_hits){0};
}
