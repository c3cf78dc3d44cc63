/* Counting pairs. Every pass goes over the tiles of knn/; what a pass does with a run of scores is its `visit`.
 *
 * Pass 1 counts float32 scores in 2^20 bins. A crossing that lies in bin c by float32 scores lies within 2 bounds of it by
 * float64 ones, and pairs further away are on the right side of it already. So pass 2 scores the pairs in bins c - reach …
 * c + reach again. Only when these are more than may be held (embeddings that are all alike, or very many equal scores) are
 * they counted by their float64 keys first, in narrower and narrower windows, until they fit or are one score. */
#include "judge/pair_counts.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "core/alloc.h"
#include "judge/pair_keys.h"

enum { N_BINS = 1 << 20, MOST_HELD = 1 << 22 };

typedef struct walk walk;
/* n scores of `row` with the columns from `col` on. */
typedef void (*visit_fn)(walk *w, const ki_stripe *stripe, int64_t row, int64_t col, const float *s, int n);

struct walk {
    const ki_pair_input *in;
    bool is_square;
    int64_t most_held;
    float low, scale; /* a score's bin is (score - low) * scale */
    double width;     /* of a bin */
    double bound;     /* between a float64 score and the bin of its float32 score, at most */
    int reach;        /* two bounds, in bins */
    visit_fn visit;

    uint64_t *count;            /* [slots, 2, N_BINS] */
    uint8_t *wanted;            /* [N_BINS]: bins to look at; NULL: all */
    uint64_t first_key, n_keys; /* keys to look at begin here; 0: all */
    int shift;                  /* from keys to bins */
    ki_key *held[2];            /* same and different pairs, by key */
    atomic_int_least64_t n_held[2];
    double *least; /* [slots] */
    double above;

    uint8_t *group; /* [N_BINS] */
    uint32_t *query_counts, *gallery_counts;
};

/* ---- the walk ---- */

static void consume(void *context, const ki_stripe *stripe) {
    walk *w = context;
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

static kith_status go(walk *w, visit_fn visit, kith_error *err) {
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

static void find_bins(const walk *w, const float *s, int n, int32_t *ret) {
    const float low = w->low, scale = w->scale, top = (float)(N_BINS - 1);
    for (int c = 0; c < n; c++) {
        float at = (s[c] - low) * scale;
        at = at > 0 ? at : 0;
        at = at < top ? at : top;
        ret[c] = (int32_t)at;
    }
}

static double edge_of(const walk *w, int64_t bin) { return (double)w->low + (double)bin * w->width; }

/* The scores that can be, and how far float32 may be off. */
static void set_scale(walk *w) {
    const ki_panels *a = w->in->query, *b = w->in->gallery;
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
    w->width = (high - (double)w->low) / N_BINS;
    w->scale = (float)(1 / w->width);
    /* Subtracting, scaling and the scale itself round to float: less than half a bin. */
    w->bound = bound.factor * size + bound.tiny + 0.5 * w->width;
    w->reach = (int)fmin(ceil(2 * w->bound / w->width) + 1, N_BINS);
}

/* ---- what a pass does ---- */

static void count_scores(walk *w, const ki_stripe *stripe, int64_t row, int64_t col, const float *s, int n) {
    int32_t bin[KI_BLOCK];
    const int32_t mine = w->in->query_class[row], *other = w->in->gallery_class + col;
    uint64_t *count = w->count + (size_t)stripe->slot * 2 * N_BINS;
    find_bins(w, s, n, bin);
    for (int c = 0; c < n; c++) count[bin[c] + (other[c] != mine) * N_BINS]++;
}

/* The float64 score of a pair by its key, when it is one to look at. */
static bool take_key(const walk *w, int64_t row, int64_t col, int32_t bin, ki_key *ret) {
    if (w->wanted && !w->wanted[bin]) return false;
    *ret = ki_pair_key(ki_panels_score(w->in->query, row, w->in->gallery, col));
    return w->n_keys == 0 || *ret - w->first_key < w->n_keys;
}

static void hold_keys(walk *w, const ki_stripe *stripe, int64_t row, int64_t col, const float *s, int n) {
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

static void count_keys(walk *w, const ki_stripe *stripe, int64_t row, int64_t col, const float *s, int n) {
    int32_t bin[KI_BLOCK];
    const int32_t mine = w->in->query_class[row], *other = w->in->gallery_class + col;
    uint64_t *count = w->count + (size_t)stripe->slot * 2 * N_BINS;
    find_bins(w, s, n, bin);
    for (int c = 0; c < n; c++) {
        ki_key key;
        if (take_key(w, row, col + c, bin[c], &key))
            count[((key - w->first_key) >> w->shift) + (uint64_t)(other[c] != mine) * N_BINS]++;
    }
}

static void find_least(walk *w, const ki_stripe *stripe, int64_t row, int64_t col, const float *s, int n) {
    int32_t bin[KI_BLOCK];
    find_bins(w, s, n, bin);
    for (int c = 0; c < n; c++) {
        ki_key key;
        if (!take_key(w, row, col + c, bin[c], &key)) continue;
        const double score = ki_pair_score(key);
        if (score > w->above && score < w->least[stripe->slot]) w->least[stripe->slot] = score;
    }
}

static void count_groups(walk *w, const ki_stripe *stripe, int64_t row, int64_t col, const float *s, int n) {
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
static kith_status steps_of_held(walk *w, ki_pair_step **ret, int64_t *ret_n, kith_error *err) {
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

static kith_status hold(walk *w, int64_t n_same, int64_t n_different, kith_error *err) {
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
static kith_status count(walk *w, visit_fn visit, kith_error *err) {
    const size_t n = (size_t)ki_tiles_slots() * 2 * N_BINS;
    if (!w->count)
        KI_TRY(ki_zalloc_or(&w->count, n, sizeof *w->count, "a histogram of scores", err));
    else
        memset(w->count, 0, n * sizeof *w->count);
    KI_TRY(go(w, visit, err));
    for (size_t slot = 1; slot < (size_t)ki_tiles_slots(); slot++)
        for (size_t b = 0; b < 2 * N_BINS; b++) w->count[b] += w->count[slot * 2 * N_BINS + b];
    return KITH_OK;
}

static kith_status steps_of_bins(const walk *w, ki_pair_counts *p, kith_error *err) {
    int64_t n = 0;
    for (int64_t b = 0; b < N_BINS; b++) n += w->count[b] + w->count[N_BINS + b] > 0;
    KI_TRY(ki_alloc_or(&p->step, (size_t)n, sizeof *p->step, "steps of scores", err));
    for (int64_t b = N_BINS - 1; b >= 0; b--) {
        const int64_t same = (int64_t)w->count[b], different = (int64_t)w->count[N_BINS + b];
        if (same + different) p->step[p->n_steps++] = (ki_pair_step){edge_of(w, b), same, different};
    }
    return KITH_OK;
}

/* ---- crossings among more pairs than can be held ---- */

/* The pairs that may be on either side of a crossing: bins first … last, and what lies above them. */
typedef struct window {
    int64_t first, last, n[2], above[2];
} window;

static window window_of(const walk *w, const ki_pair_counts *p, double far) {
    ki_crossing x = {.far = far};
    int64_t sum[2] = {0, 0}, at = 0;
    ki_pair_counts_cross(p, p->step, p->n_steps, sum, &x);
    at = (int64_t)((x.score - (double)w->low) / w->width + 0.5);
    window v = {at - w->reach, at + w->reach, {0, 0}, {0, 0}};
    if (v.first < 0) v.first = 0;
    if (v.last > N_BINS - 1) v.last = N_BINS - 1;
    for (int64_t i = 0; i < p->n_steps && p->step[i].score > edge_of(w, v.first) - 0.5 * w->width; i++) {
        int64_t *to = p->step[i].score > edge_of(w, v.last) + 0.5 * w->width ? v.above : v.n;
        to[0] += p->step[i].n_same;
        to[1] += p->step[i].n_different;
    }
    return v;
}

static void want(walk *w, const window *v) {
    memset(w->wanted + v->first, 1, (size_t)(v->last - v->first + 1));
}

/* The lowest score above the crossing, in a pass of its own: it may be far above. */
static kith_status find_above(walk *w, const ki_pair_counts *p, const window *v, ki_crossing *x,
                              kith_error *err) {
    window reach = *v;
    for (int64_t i = 0; i < p->n_steps && p->step[i].score > edge_of(w, v->last) + 0.5 * w->width; i++)
        reach.last = (int64_t)((p->step[i].score - (double)w->low) / w->width + 0.5) + w->reach;
    if (reach.last > N_BINS - 1) reach.last = N_BINS - 1;
    memset(w->wanted, 0, N_BINS);
    want(w, &reach);
    w->n_keys = 0;
    w->above = x->score;
    for (int i = 0; i < ki_tiles_slots(); i++) w->least[i] = INFINITY;
    KI_TRY(go(w, find_least, err));
    x->above = INFINITY;
    for (int i = 0; i < ki_tiles_slots(); i++) x->above = fmin(x->above, w->least[i]);
    return KITH_OK;
}

/* Pairs in bins above the window score more than this. */
static double sure_below(const walk *w, const window *v) { return edge_of(w, v->last + 1) - w->bound; }

static kith_status cross_held(walk *w, const ki_pair_counts *p, const window *v, const int64_t base[2],
                              const ki_pair_step *step, int64_t n_steps, ki_crossing *x, kith_error *err) {
    ki_pair_counts_cross(p, step, n_steps, base, x);
    return x->above < sure_below(w, v) ? KITH_OK : find_above(w, p, v, x, err);
}

/* Keys in a window of their own, which is narrowed until the pairs in it can be held or have one score. */
static kith_status cross_many(walk *w, const ki_pair_counts *p, const window *v, ki_crossing *x,
                              kith_error *err) {
    kith_status status = KITH_OK;
    ki_pair_step *step = NULL;
    int64_t n_steps = 0, n[2] = {v->n[0], v->n[1]}, base[2] = {v->above[0], v->above[1]};
    memset(w->wanted, 0, N_BINS);
    want(w, v);
    w->first_key = ki_pair_key(edge_of(w, v->first) - w->bound);
    w->n_keys = ki_pair_key(edge_of(w, v->last + 1) + w->bound) - w->first_key;
    while (n[0] + n[1] > w->most_held && w->n_keys > 1) {
        for (w->shift = 0; (w->n_keys - 1) >> w->shift >= N_BINS;) w->shift++;
        KI_CHECK(count(w, count_keys, err));
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
    if (n[0] + n[1] > w->most_held) { /* all have the same score */
        const ki_pair_step one = {ki_pair_score(w->first_key), n[0], n[1]};
        KI_CHECK(cross_held(w, p, v, base, &one, 1, x, err));
        goto done;
    }
    KI_CHECK(hold(w, n[0], n[1], err));
    KI_CHECK(steps_of_held(w, &step, &n_steps, err));
    KI_CHECK(cross_held(w, p, v, base, step, n_steps, x, err));
done:
    w->n_keys = 0;
    ki_free(step);
    return status;
}

/* All windows in one pass, when what lies in them can be held. */
static kith_status cross_all(walk *w, const ki_pair_counts *p, ki_crossing *x, int n_crossings,
                             kith_error *err) {
    kith_status status = KITH_OK;
    ki_pair_step *step = NULL;
    int64_t n_steps = 0, n[2] = {0, 0};
    KI_CHECK(ki_zalloc_or(&w->wanted, N_BINS, 1, "marks of bins", err));
    KI_CHECK(ki_alloc_or(&w->least, (size_t)ki_tiles_slots(), sizeof *w->least, "least scores", err));
    for (int i = 0; i < n_crossings; i++) {
        const window v = window_of(w, p, x[i].far);
        want(w, &v);
    }
    for (int64_t b = 0; b < N_BINS; b++) {
        if (!w->wanted[b]) continue;
        n[0] += (int64_t)w->count[b];
        n[1] += (int64_t)w->count[N_BINS + b];
    }
    if (n[0] + n[1] > w->most_held) {
        for (int i = 0; i < n_crossings; i++) {
            const window v = window_of(w, p, x[i].far);
            KI_CHECK(cross_many(w, p, &v, &x[i], err));
        }
        goto done;
    }
    KI_CHECK(hold(w, n[0], n[1], err));
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

static void walk_release(walk *w) {
    ki_free(w->count);
    ki_free(w->wanted);
    ki_free(w->held[0]);
    ki_free(w->held[1]);
    ki_free(w->least);
    ki_free(w->group);
}

kith_status ki_pair_counts_run(const ki_pair_input *in, ki_crossing *crossings, int n_crossings,
                               ki_pair_counts *ret, kith_error *err) {
    kith_status status;
    ki_pair_counts p = {0};
    walk w = {.in = in,
              .is_square = in->query == in->gallery,
              .most_held = in->most_held > 0 ? in->most_held : MOST_HELD};
    set_scale(&w);
    KI_CHECK(count_pairs(in, w.is_square, &p, err));
    if (p.n_same + p.n_different <= w.most_held) {
        p.is_exact = true;
        KI_CHECK(hold(&w, p.n_same, p.n_different, err));
        KI_CHECK(steps_of_held(&w, &p.step, &p.n_steps, err));
        for (int i = 0; i < n_crossings; i++)
            ki_pair_counts_cross(&p, p.step, p.n_steps, (int64_t[]){0, 0}, &crossings[i]);
    } else {
        KI_CHECK(count(&w, count_scores, err));
        KI_CHECK(steps_of_bins(&w, &p, err));
        KI_CHECK(cross_all(&w, &p, crossings, n_crossings, err));
    }
    *ret = p;
    p.step = NULL;
done:
    walk_release(&w);
    ki_pair_counts_release(&p);
    return status;
}

void ki_pair_counts_release(ki_pair_counts *pairs) {
    ki_free(pairs->step);
    *pairs = (ki_pair_counts){0};
}

kith_status ki_pair_counts_by_row(const ki_pair_input *in, const double *edge, uint32_t *ret_query,
                                  uint32_t *ret_gallery, kith_error *err) {
    walk w = {.in = in,
              .is_square = in->query == in->gallery,
              .query_counts = ret_query,
              .gallery_counts = ret_gallery};
    set_scale(&w);
    KI_TRY(ki_alloc_or(&w.group, N_BINS, 1, "groups of bins", err));
    int g = 0;
    for (int64_t b = N_BINS - 1; b >= 0; b--) {
        while (g < KI_PAIR_GROUPS - 1 && edge_of(&w, b) + 0.5 * w.width < edge[g]) g++;
        w.group[b] = (uint8_t)g;
    }
    const kith_status status = go(&w, count_groups, err);
    walk_release(&w);
    return status;
}
