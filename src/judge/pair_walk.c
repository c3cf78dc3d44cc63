/* Passes over all pairs. */
#include "judge/pair_walk.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "judge/pair_keys.h"

/* ---- the walk ---- */

static void consume(void *context, const ki_stripe *stripe) {
    ki_pair_walk *w = context;
    for (int k = 0; k < stripe->n_rows; k++) {
        const int64_t row = stripe->row + k, col = stripe->col;
        const float *s = stripe->s + k * KI_BLOCK;
        int64_t begin = 0, self = -1;
        if (!w->is_square)
            self = w->in->self ? w->in->self[row] - col : -1;
        else if (!stripe->both) /* a block with itself: each two rows once */
            begin = row + 1 - col;
        if (self >= 0 && self < stripe->n_cols) {
            w->visit(w, stripe, row, col, s, (int)self);
            begin = self + 1;
        }
        if (begin < stripe->n_cols)
            w->visit(w, stripe, row, col + begin, s + begin, (int)(stripe->n_cols - begin));
    }
}

static kith_status go(ki_pair_walk *w, ki_pair_visit_fn visit, kith_error *err) {
    w->visit = visit;
    const ki_tiles tiles = {.rows = w->in->query,
                            .cols = w->in->gallery,
                            .kernel = ki_knn_kernel_best(),
                            .consume = consume,
                            .context = w,
                            .progress = w->in->progress,
                            .user = w->in->user};
    return ki_tiles_run(&tiles, err);
}

static void find_bins(const ki_pair_walk *w, const float *s, int n, int32_t *ret) {
    const float low = w->low, scale = w->scale, top = (float)(KI_PAIR_BINS - 1);
    for (int c = 0; c < n; c++) {
        float at = (s[c] - low) * scale;
        at = at > 0 ? at : 0;
        at = at < top ? at : top;
        ret[c] = (int32_t)at;
    }
}

/* The scores that can be, and how far float32 may be off. */
void ki_pair_walk_init(const ki_pair_input *in, ki_pair_walk *w) {
    *w = (ki_pair_walk){.in = in, .is_square = in->query == in->gallery};
    const ki_panels *a = in->query, *b = in->gallery;
    const ki_bound bound = ki_panels_bound_of(a);
    double low = -1.0001, high = 1.0001, size = 1;
    if (a->metric == KITH_INNER) {
        size = a->most_norm * b->most_norm;
        low = -1.0001 * size - 1e-30;
        high = 1.0001 * size + 1e-30;
    } else if (a->metric == KITH_SQEUCLIDEAN) {
        size = a->most_norm + b->most_norm; /* halves of squares: |x - y|^2 / 2 is at most 2 of these */
        low = -2.0002 * size - 1e-30;
        high = 0.0002 * size + 1e-30;
    }
    w->low = nextafterf((float)low, -INFINITY);
    w->width = (high - (double)w->low) / (double)KI_PAIR_BINS;
    w->scale = (float)(1 / w->width);
    /* Subtracting, scaling and the scale itself round to float: less than half a bin. */
    w->bound = bound.factor * size + bound.tiny + 0.5 * w->width;
    w->reach = (int)fmin(ceil(2 * w->bound / w->width) + 1, KI_PAIR_BINS);
}

/* ---- what a pass does ---- */

static void count_scores(ki_pair_walk *w, const ki_stripe *stripe, int64_t row, int64_t col, const float *s,
                         int n) {
    int32_t bin[KI_BLOCK];
    const int32_t mine = w->in->query_class[row], *other = w->in->gallery_class + col;
    uint64_t *count = w->count + (size_t)stripe->slot * 2 * KI_PAIR_BINS;
    find_bins(w, s, n, bin);
    for (int c = 0; c < n; c++) count[bin[c] + (other[c] != mine) * KI_PAIR_BINS]++;
}

/* The float64 score of a pair by its key, when it is one to look at. */
static bool take_key(const ki_pair_walk *w, int64_t row, int64_t col, int32_t bin, ki_key *ret) {
    if (w->wanted && !w->wanted[bin]) return false;
    *ret = ki_pair_key(ki_panels_score(w->in->query, row, w->in->gallery, col));
    return w->n_keys == 0 || *ret - w->first_key < w->n_keys;
}

static void hold_keys(ki_pair_walk *w, const ki_stripe *stripe, int64_t row, int64_t col, const float *s,
                      int n) {
    (void)stripe;
    int32_t bin[KI_BLOCK];
    ki_key key[2][KI_BLOCK];
    int64_t n_key[2] = {0, 0};
    const int32_t mine = w->in->query_class[row], *other = w->in->gallery_class + col;
    find_bins(w, s, n, bin);
    for (int c = 0; c < n; c++) {
        const int kind = other[c] != mine;
        n_key[kind] += take_key(w, row, col + c, bin[c], &key[kind][n_key[kind]]);
    }
    for (int kind = 0; kind < 2; kind++) { /* in any order: they are sorted later */
        if (n_key[kind] == 0) continue;
        const int64_t at = atomic_fetch_add(&w->n_held[kind], n_key[kind]);
        memcpy(w->held[kind] + at, key[kind], (size_t)n_key[kind] * sizeof(ki_key));
    }
}

static void count_keys(ki_pair_walk *w, const ki_stripe *stripe, int64_t row, int64_t col, const float *s,
                       int n) {
    int32_t bin[KI_BLOCK];
    const int32_t mine = w->in->query_class[row], *other = w->in->gallery_class + col;
    uint64_t *count = w->count + (size_t)stripe->slot * 2 * KI_PAIR_BINS;
    find_bins(w, s, n, bin);
    for (int c = 0; c < n; c++) {
        ki_key key;
        if (take_key(w, row, col + c, bin[c], &key))
            count[((key - w->first_key) >> w->shift) + (uint64_t)(other[c] != mine) * KI_PAIR_BINS]++;
    }
}

static void find_least(ki_pair_walk *w, const ki_stripe *stripe, int64_t row, int64_t col, const float *s,
                       int n) {
    int32_t bin[KI_BLOCK];
    find_bins(w, s, n, bin);
    for (int c = 0; c < n; c++) {
        ki_key key;
        if (!take_key(w, row, col + c, bin[c], &key)) continue;
        const double score = ki_pair_score(key);
        if (score > w->above && score < w->least[stripe->slot]) w->least[stripe->slot] = score;
    }
}

static void count_groups(ki_pair_walk *w, const ki_stripe *stripe, int64_t row, int64_t col, const float *s,
                         int n) {
    enum { WIDE = 2 * KI_PAIR_GROUPS };
    int32_t bin[KI_BLOCK];
    const int32_t mine = w->in->query_class[row], *other = w->in->gallery_class + col;
    uint32_t *left = w->query_counts + row * WIDE;
    uint32_t *right = (w->gallery_counts ? w->gallery_counts : w->query_counts) + col * WIDE;
    (void)stripe;
    find_bins(w, s, n, bin);
    for (int c = 0; c < n; c++) {
        const int at = w->group[bin[c]] + (other[c] != mine) * KI_PAIR_GROUPS;
        left[at]++;
        if (w->is_square) /* this block is the thread's own, too */
            right[c * WIDE + at]++;
        else
            __atomic_fetch_add(&right[c * WIDE + at], 1, __ATOMIC_RELAXED);
    }
}

/* ---- passes ---- */

kith_status ki_pair_walk_hold(ki_pair_walk *w, int64_t n_same, int64_t n_different, kith_error *err) {
    const int64_t n[2] = {n_same, n_different};
    for (int kind = 0; kind < 2; kind++) {
        ki_free(w->held[kind]);
        w->held[kind] = NULL;
        atomic_store(&w->n_held[kind], 0);
        KI_TRY(ki_alloc_or(&w->held[kind], (size_t)n[kind], sizeof(ki_key), "scores", err));
    }
    return go(w, hold_keys, err);
}

/* Counts of all slots together, in the first one's place. */
static kith_status count(ki_pair_walk *w, ki_pair_visit_fn visit, kith_error *err) {
    const size_t n = (size_t)ki_tiles_slots() * 2 * KI_PAIR_BINS;
    if (!w->count)
        KI_TRY(ki_zalloc_or(&w->count, n, sizeof *w->count, "a histogram of scores", err));
    else
        memset(w->count, 0, n * sizeof *w->count);
    KI_TRY(go(w, visit, err));
    for (size_t slot = 1; slot < (size_t)ki_tiles_slots(); slot++)
        for (size_t b = 0; b < 2 * KI_PAIR_BINS; b++) w->count[b] += w->count[slot * 2 * KI_PAIR_BINS + b];
    return KITH_OK;
}

kith_status ki_pair_walk_count(ki_pair_walk *w, kith_error *err) { return count(w, count_scores, err); }

kith_status ki_pair_walk_count_keys(ki_pair_walk *w, kith_error *err) { return count(w, count_keys, err); }

kith_status ki_pair_walk_least(ki_pair_walk *w, double score, double *ret_least, kith_error *err) {
    const size_t n_slots = (size_t)ki_tiles_slots();
    if (!w->least) KI_TRY(ki_alloc_or(&w->least, n_slots, sizeof *w->least, "least scores", err));
    for (size_t i = 0; i < n_slots; i++) w->least[i] = INFINITY;
    w->above = score;
    KI_TRY(go(w, find_least, err));
    *ret_least = INFINITY;
    for (size_t i = 0; i < n_slots; i++) *ret_least = fmin(*ret_least, w->least[i]);
    return KITH_OK;
}

kith_status ki_pair_walk_groups(ki_pair_walk *w, kith_error *err) { return go(w, count_groups, err); }

void ki_pair_walk_release(ki_pair_walk *w) {
    ki_free(w->count);
    ki_free(w->wanted);
    ki_free(w->held[0]);
    ki_free(w->held[1]);
    ki_free(w->least);
    ki_free(w->group);
}
