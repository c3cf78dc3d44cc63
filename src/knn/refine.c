/* Lists made in float32 put into the order of float64 scores. */
#include "knn/refine.h"

#include <math.h>
#include <stdlib.h>

int ki_ranked_compare(const void *a, const void *b) {
    const ki_ranked *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static void make_exact(const ki_refine *f, int64_t i, ki_ranked *r) {
    if (r->is_exact) return;
    r->score = ki_panels_score(f->query, i, f->gallery, r->index);
    r->is_exact = true;
}

/* Runs of neighbours in the list whose intervals overlap, as far as they reach into the first k. */
static void settle_runs(const ki_refine *f, int64_t i, double bound, ki_ranked *list, int64_t n, int64_t k) {
    for (int64_t begin = 0, end; begin < n && begin < k; begin = end) {
        end = begin + 1;
        while (end < n && list[end - 1].score - list[end].score <= 2 * bound) end++;
        if (end - begin == 1) continue;
        for (int64_t j = begin; j < end; j++) make_exact(f, i, list + j);
    }
}

static bool is_allowed(const ki_refine *f, int64_t j) {
    return !f->allowed || (f->allowed[j / 64] >> j % 64 & 1);
}

static int64_t score_all(const ki_refine *f, int64_t i, int64_t self, ki_ranked *ret_list) {
    int64_t n = 0;
    for (int64_t j = 0; j < f->gallery->rows.n; j++) {
        if (j == self || !is_allowed(f, j)) continue;
        ret_list[n] = (ki_ranked){0, (int32_t)j, false};
        make_exact(f, i, ret_list + n++);
    }
    qsort(ret_list, (size_t)n, sizeof *ret_list, ki_ranked_compare);
    return n;
}

int64_t ki_refine_row(const ki_refine *f, int64_t i, int64_t self, const ki_key *keys, int64_t n_keys,
                      int64_t k, ki_ranked *list) {
    const double bound = ki_panels_bound(f->query, i, f->gallery, -1);
    for (int64_t j = 0; j < n_keys; j++)
        list[j] = (ki_ranked){ki_key_score(keys[j]), ki_key_index(keys[j]), false};
    const double last = n_keys > 0 ? list[n_keys - 1].score : 0;
    settle_runs(f, i, bound, list, n_keys, k);
    qsort(list, (size_t)n_keys, sizeof *list, ki_ranked_compare);
    const int64_t n_others = f->n_allowed - (self >= 0 && is_allowed(f, self));
    if (n_keys < n_others && k <= n_keys) {
        /* Rows that were not kept score at most `last` in float32. */
        const double kth = list[k - 1].score - (list[k - 1].is_exact ? 0 : bound);
        if (last + bound >= kth) n_keys = score_all(f, i, self, list);
    }
    return n_keys < k ? n_keys : k;
}
