/* Counts of pairs, and crossings.
 *
 * Pass 1 counts float32 scores in 2^20 bins. A crossing that lies in bin c by float32 scores lies within 2 bounds of it by
 * float64 ones, and pairs further away are on the right side of it already. So pass 2 scores the pairs in bins c - reach …
 * c + reach again. Only when these are more than may be held (embeddings that are all alike, or very many equal scores) are
 * they counted by their float64 keys first, in narrower and narrower windows, until they fit or are one score. */
#include "judge/pair_counts.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "judge/pair_keys.h"
#include "judge/pair_walk.h"

enum { N_BINS = KI_PAIR_BINS, MOST_HELD = 1 << 22 };

static int64_t most_held(const ki_pair_walk *w) {
    return w->in->most_held > 0 ? w->in->most_held : MOST_HELD;
}

/* ---- steps and crossings ---- */

static bool is_reached(const ki_pair_counts *all, double far, int64_t n_same, int64_t n_different) {
    const double accepted = (double)n_different / (double)all->n_different;
    if (far >= 0) return accepted > far;
    return accepted + (double)n_same / (double)all->n_same >= 1;
}

void ki_pair_counts_cross(const ki_pair_counts *all, const ki_pair_step *step, int64_t n_steps,
                          const int64_t base[2], ki_crossing *x) {
    x->n_same[0] = x->n_same[1] = base[0];
    x->n_different[0] = x->n_different[1] = base[1];
    x->above = x->score = INFINITY;
    for (int64_t i = 0; i < n_steps; i++) {
        x->n_same[1] += step[i].n_same;
        x->n_different[1] += step[i].n_different;
        x->score = step[i].score;
        if (is_reached(all, x->far, x->n_same[1], x->n_different[1])) return;
        x->n_same[0] = x->n_same[1];
        x->n_different[0] = x->n_different[1];
        x->above = x->score;
    }
}

/* The held keys as steps, one for every score. */
static kith_status steps_of_held(ki_pair_walk *w, ki_pair_step **ret, int64_t *ret_n, kith_error *err) {
    int64_t n[2] = {w->n_held[0], w->n_held[1]}, n_steps = 0;
    ki_key *scratch = NULL;
    kith_status status;
    KI_CHECK(ki_alloc_or(&scratch, (size_t)(n[0] > n[1] ? n[0] : n[1]), sizeof *scratch, "scores", err));
    for (int kind = 0; kind < 2; kind++) ki_pair_keys_sort(w->held[kind], n[kind], scratch);
    ki_free(scratch);
    scratch = NULL;
    KI_CHECK(ki_alloc_or(ret, (size_t)(n[0] + n[1]), sizeof **ret, "steps of scores", err));
    for (int64_t i = 0, j = 0; i < n[0] || j < n[1];) {
        const ki_key a = i < n[0] ? w->held[0][i] : 0, b = j < n[1] ? w->held[1][j] : 0, key = a > b ? a : b;
        ki_pair_step step = {ki_pair_score(key), 0, 0};
        for (; i < n[0] && w->held[0][i] == key; i++) step.n_same++;
        for (; j < n[1] && w->held[1][j] == key; j++) step.n_different++;
        (*ret)[n_steps++] = step;
    }
    *ret_n = n_steps;
done:
    ki_free(scratch);
    return status;
}

static kith_status steps_of_bins(const ki_pair_walk *w, ki_pair_counts *p, kith_error *err) {
    int64_t n = 0;
    for (int64_t b = 0; b < N_BINS; b++) n += w->count[b] + w->count[N_BINS + b] > 0;
    KI_TRY(ki_alloc_or(&p->step, (size_t)n, sizeof *p->step, "steps of scores", err));
    for (int64_t b = N_BINS - 1; b >= 0; b--) {
        const int64_t same = (int64_t)w->count[b], different = (int64_t)w->count[N_BINS + b];
        if (same + different) p->step[p->n_steps++] = (ki_pair_step){ki_pair_edge(w, b), same, different};
    }
    return KITH_OK;
}

/* ---- crossings among more pairs than can be held ---- */

/* The pairs that may be on either side of a crossing: bins first … last, and what lies above them. */
typedef struct window {
    int64_t first, last, n[2], above[2];
} window;

static window window_of(const ki_pair_walk *w, const ki_pair_counts *p, double far) {
    ki_crossing x = {.far = far};
    int64_t sum[2] = {0, 0}, at = 0;
    ki_pair_counts_cross(p, p->step, p->n_steps, sum, &x);
    at = (int64_t)((x.score - (double)w->low) / w->width + 0.5);
    window v = {at - w->reach, at + w->reach, {0, 0}, {0, 0}};
    if (v.first < 0) v.first = 0;
    if (v.last > N_BINS - 1) v.last = N_BINS - 1;
    for (int64_t i = 0; i < p->n_steps && p->step[i].score > ki_pair_edge(w, v.first) - 0.5 * w->width; i++) {
        int64_t *to = p->step[i].score > ki_pair_edge(w, v.last) + 0.5 * w->width ? v.above : v.n;
        to[0] += p->step[i].n_same;
        to[1] += p->step[i].n_different;
    }
    return v;
}

static void want(ki_pair_walk *w, const window *v) {
    memset(w->wanted + v->first, 1, (size_t)(v->last - v->first + 1));
}

/* The lowest score above the crossing, in a pass of its own: it may be far above. */
static kith_status find_above(ki_pair_walk *w, const ki_pair_counts *p, const window *v, ki_crossing *x,
                              kith_error *err) {
    window reach = *v;
    for (int64_t i = 0; i < p->n_steps && p->step[i].score > ki_pair_edge(w, v->last) + 0.5 * w->width; i++)
        reach.last = (int64_t)((p->step[i].score - (double)w->low) / w->width + 0.5) + w->reach;
    if (reach.last > N_BINS - 1) reach.last = N_BINS - 1;
    memset(w->wanted, 0, N_BINS);
    want(w, &reach);
    w->n_keys = 0;
    return ki_pair_walk_least(w, x->score, &x->above, err);
}

/* Pairs in bins above the window score more than this. */
static double sure_below(const ki_pair_walk *w, const window *v) {
    return ki_pair_edge(w, v->last + 1) - w->bound;
}

static kith_status cross_held(ki_pair_walk *w, const ki_pair_counts *p, const window *v,
                              const int64_t base[2], const ki_pair_step *step, int64_t n_steps,
                              ki_crossing *x, kith_error *err) {
    ki_pair_counts_cross(p, step, n_steps, base, x);
    return x->above < sure_below(w, v) ? KITH_OK : find_above(w, p, v, x, err);
}

/* Keys in a window of their own, which is narrowed until the pairs in it can be held or have one score. */
static kith_status cross_many(ki_pair_walk *w, const ki_pair_counts *p, const window *v, ki_crossing *x,
                              kith_error *err) {
    kith_status status = KITH_OK;
    ki_pair_step *step = NULL;
    int64_t n_steps = 0, n[2] = {v->n[0], v->n[1]}, base[2] = {v->above[0], v->above[1]};
    memset(w->wanted, 0, N_BINS);
    want(w, v);
    w->first_key = ki_pair_key(ki_pair_edge(w, v->first) - w->bound);
    w->n_keys = ki_pair_key(ki_pair_edge(w, v->last + 1) + w->bound) - w->first_key;
    while (n[0] + n[1] > most_held(w) && w->n_keys > 1) {
        for (w->shift = 0; (w->n_keys - 1) >> w->shift >= N_BINS;) w->shift++;
        KI_CHECK(ki_pair_walk_count_keys(w, err));
        int64_t b = N_BINS - 1;
        for (; b >= 0; b--) {
            n[0] = (int64_t)w->count[b];
            n[1] = (int64_t)w->count[N_BINS + b];
            if (is_reached(p, x->far, base[0] + n[0], base[1] + n[1])) break;
            base[0] += n[0];
            base[1] += n[1];
        }
        w->first_key += (uint64_t)b << w->shift;
        w->n_keys = UINT64_C(1) << w->shift;
    }
    if (n[0] + n[1] > most_held(w)) { /* all have the same score */
        const ki_pair_step one = {ki_pair_score(w->first_key), n[0], n[1]};
        KI_CHECK(cross_held(w, p, v, base, &one, 1, x, err));
        goto done;
    }
    KI_CHECK(ki_pair_walk_hold(w, n[0], n[1], err));
    KI_CHECK(steps_of_held(w, &step, &n_steps, err));
    KI_CHECK(cross_held(w, p, v, base, step, n_steps, x, err));
done:
    w->n_keys = 0;
    ki_free(step);
    return status;
}

/* All windows in one pass, when what lies in them can be held. */
static kith_status cross_all(ki_pair_walk *w, const ki_pair_counts *p, ki_crossing *x, int n_crossings,
                             kith_error *err) {
    kith_status status = KITH_OK;
    ki_pair_step *step = NULL;
    int64_t n_steps = 0, n[2] = {0, 0};
    KI_CHECK(ki_zalloc_or(&w->wanted, N_BINS, 1, "marks of bins", err));
    for (int i = 0; i < n_crossings; i++) {
        const window v = window_of(w, p, x[i].far);
        want(w, &v);
    }
    for (int64_t b = 0; b < N_BINS; b++) {
        if (!w->wanted[b]) continue;
        n[0] += (int64_t)w->count[b];
        n[1] += (int64_t)w->count[N_BINS + b];
    }
    if (n[0] + n[1] > most_held(w)) {
        for (int i = 0; i < n_crossings; i++) {
            const window v = window_of(w, p, x[i].far);
            KI_CHECK(cross_many(w, p, &v, &x[i], err));
        }
        goto done;
    }
    KI_CHECK(ki_pair_walk_hold(w, n[0], n[1], err));
    KI_CHECK(steps_of_held(w, &step, &n_steps, err));
    for (int i = 0; i < n_crossings; i++) {
        const window v = window_of(w, p, x[i].far);
        /* Windows above this one are among the steps, too. */
        int64_t base[2] = {v.above[0], v.above[1]};
        for (int64_t b = v.last + 1; b < N_BINS; b++) {
            if (!w->wanted[b]) continue;
            base[0] -= (int64_t)w->count[b];
            base[1] -= (int64_t)w->count[N_BINS + b];
        }
        ki_pair_counts_cross(p, step, n_steps, base, &x[i]);
    }
    for (int i = 0; i < n_crossings; i++) { /* last: it marks other bins */
        const window v = window_of(w, p, x[i].far);
        if (!(x[i].above < sure_below(w, &v))) KI_CHECK(find_above(w, p, &v, &x[i], err));
    }
done:
    ki_free(step);
    return status;
}

/* ---- all of it ---- */

static kith_status count_pairs(const ki_pair_input *in, bool is_square, ki_pair_counts *p, kith_error *err) {
    int64_t *size = NULL;
    const int64_t n_query = in->query->rows.n, n_gallery = in->gallery->rows.n;
    KI_TRY(ki_zalloc_or(&size, (size_t)in->n_classes, sizeof *size, "class sizes", err));
    for (int64_t i = 0; i < n_gallery; i++) size[in->gallery_class[i]]++;
    int64_t n_all = n_query * n_gallery;
    for (int64_t i = 0; i < n_query; i++) {
        const int64_t self = is_square ? i : in->self ? in->self[i] : -1;
        p->n_same += size[in->query_class[i]] - (self >= 0 && in->gallery_class[self] == in->query_class[i]);
        n_all -= self >= 0;
    }
    if (is_square) {
        p->n_same /= 2;
        n_all /= 2;
    }
    p->n_different = n_all - p->n_same;
    ki_free(size);
    if (p->n_same > 0 && p->n_different > 0) return KITH_OK;
    const kith_status status =
        ki_fail(err, KITH_EINVAL, "%lld pairs of one class and %lld of two; wanted some of each",
                (long long)p->n_same, (long long)p->n_different);
    return ki_hint(err, status, "verification needs at least two classes, and one with two items");
}

kith_status ki_pair_counts_run(const ki_pair_input *in, ki_crossing *crossings, int n_crossings,
                               ki_pair_counts *ret, kith_error *err) {
    kith_status status;
    ki_pair_counts p = {0};
    ki_pair_walk w;
    ki_pair_walk_init(in, &w);
    KI_CHECK(count_pairs(in, w.is_square, &p, err));
    if (p.n_same + p.n_different <= most_held(&w)) {
        p.is_exact = true;
        KI_CHECK(ki_pair_walk_hold(&w, p.n_same, p.n_different, err));
        KI_CHECK(steps_of_held(&w, &p.step, &p.n_steps, err));
        for (int i = 0; i < n_crossings; i++)
            ki_pair_counts_cross(&p, p.step, p.n_steps, (int64_t[]){0, 0}, &crossings[i]);
    } else {
        KI_CHECK(ki_pair_walk_count(&w, err));
        KI_CHECK(steps_of_bins(&w, &p, err));
        KI_CHECK(cross_all(&w, &p, crossings, n_crossings, err));
    }
    *ret = p;
    p.step = NULL;
done:
    ki_pair_walk_release(&w);
    ki_pair_counts_release(&p);
    return status;
}

void ki_pair_counts_release(ki_pair_counts *pairs) {
    ki_free(pairs->step);
    *pairs = (ki_pair_counts){0};
}

kith_status ki_pair_counts_by_row(const ki_pair_input *in, const double *edge, uint32_t *ret_query,
                                  uint32_t *ret_gallery, kith_error *err) {
    ki_pair_walk w;
    ki_pair_walk_init(in, &w);
    w.query_counts = ret_query;
    w.gallery_counts = ret_gallery;
    KI_TRY(ki_alloc_or(&w.group, N_BINS, 1, "groups of bins", err));
    int g = 0;
    for (int64_t b = N_BINS - 1; b >= 0; b--) {
        while (g < KI_PAIR_GROUPS - 1 && ki_pair_edge(&w, b) + 0.5 * w.width < edge[g]) g++;
        w.group[b] = (uint8_t)g;
    }
    const kith_status status = ki_pair_walk_groups(&w, err);
    ki_pair_walk_release(&w);
    return status;
}
