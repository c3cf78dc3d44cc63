/* Effort for a wanted recall, measured on rows of the set itself. */
#include "search/scan/scan.h"

#include <math.h>

#include "base/alloc.h"
#include "search/scan/look.h"
#include "search/scan/probe.h"

enum {
    SAMPLE = 500,
    LOOKS = 1000,
    SPAN = 16384,   /* rows compared with the sample at a time */
    LOOK_COST = 40, /* a look takes as long as the estimates of so many rows */
};

typedef struct tuning {
    const ki_scan_set *set;
    ki_scan_tune_options o;
    int64_t n; /* rows taken as queries */
    int64_t *row;
    float *query;         /* [n, dim] */
    double *least;        /* [n]: the score of the true k-th neighbour, larger is nearer */
    int64_t *n_true;      /* [n]: how many there are, at most k */
    kith_neighbor *found; /* [n, k] */
} tuning;

/* As in lists of neighbours, but larger is nearer. */
static double nearness(const tuning *t, double score) {
    return t->set->coder->metric == KITH_SQEUCLIDEAN ? -score : score;
}

/* Rows that are in a segment and allowed: all of them, thinned out evenly at random to those wanted. */
static kith_status draw(tuning *t, kith_error *err) {
    int64_t n = 0, n_there = 0;
    int64_t *place = NULL;
    for (int pass = 0; pass < 2; pass++) {
        int64_t at = 0, i_drawn = 0;
        for (int64_t s = 0; s < t->set->n_segments; s++) {
            const ki_scan_segment *segment = t->set->segments + s;
            for (int64_t i = segment->first; i < segment->first + segment->n; i++) {
                if (!ki_scan_is_allowed(t->o.allowed, i)) continue;
                if (pass == 1 && i_drawn < n && place[i_drawn] == at) t->row[i_drawn++] = i;
                at++;
            }
        }
        if (pass == 1) break;
        n_there = at;
        n = n_there < t->o.n_sample ? n_there : t->o.n_sample;
        if (n < 1) return ki_fail(err, KITH_EINVAL, "no rows to measure recall on; wanted at least 1");
        KI_TRY(ki_alloc_or(&t->row, (size_t)n, sizeof *t->row, "sample", err));
        KI_TRY(ki_alloc_or(&place, (size_t)n, sizeof *place, "sample", err));
        ki_coder_draw(n_there, n, t->o.seed, place);
    }
    t->n = n;
    ki_free(place);
    return KITH_OK;
}

/* Exact neighbours in rows first … first + n - 1, joined with those found before. */
static kith_status compare_span(tuning *t, int64_t first, int64_t n, float *scratch, ki_best *best,
                                kith_error *err) {
    kith_status status = KITH_OK;
    const ki_row_source *rows = &t->set->rows;
    const int64_t dim = rows->dim, k = t->o.k;
    kith_gallery *gallery = NULL;
    const float *x;
    int64_t *number = NULL, *self = NULL, n_here = 0;
    KI_CHECK(ki_alloc_or(&number, (size_t)n, sizeof *number, "rows", err));
    KI_CHECK(ki_alloc_or(&self, (size_t)t->n, sizeof *self, "rows", err));
    for (int64_t i = 0; i < n; i++) {
        if (ki_scan_is_allowed(t->o.allowed, first + i)) number[n_here++] = first + i;
    }
    if (n_here == 0) goto done;
    if (n_here == n) {
        KI_CHECK(ki_source_span(rows, first, n, scratch, &x, err));
    } else {
        KI_CHECK(ki_source_read(rows, number, n_here, scratch, err));
        x = scratch;
    }
    for (int64_t q = 0; q < t->n; q++) self[q] = -1;
    for (int64_t q = 0, i = 0; q < t->n; q++) { /* both rise */
        while (i < n_here && number[i] < t->row[q]) i++;
        if (i < n_here && number[i] == t->row[q]) self[q] = i;
    }
    kith_knn_options options;
    kith_knn_options_init(&options, sizeof options);
    options.metric = t->set->coder->metric;
    const kith_array here = {
        .dtype = KITH_F32, .n_dims = 2, .dim = {n_here, dim}, .data = (void *)(uintptr_t)x};
    const kith_array asked = {.dtype = KITH_F32, .n_dims = 2, .dim = {t->n, dim}, .data = t->query};
    KI_CHECK(kith_gallery_new(&here, &options, &gallery, err));
    KI_CHECK(kith_gallery_search(gallery, &asked, self, k, t->found, err));
    for (int64_t i = 0; i < t->n * k; i++) {
        const kith_neighbor *f = t->found + i;
        if (f->index >= 0) ki_best_add(best + i / k, nearness(t, f->score), number[f->index]);
    }
done:
    kith_gallery_free(gallery);
    ki_free(number);
    ki_free(self);
    return status;
}

static kith_status find_truth(tuning *t, kith_error *err) {
    kith_status status = KITH_OK;
    const int64_t k = t->o.k;
    float *scratch = NULL;
    ki_best *best = NULL;
    kith_neighbor *heap = NULL;
    KI_CHECK(ki_alloc_or(&scratch, SPAN, (size_t)t->set->rows.dim * sizeof *scratch, "rows", err));
    KI_CHECK(ki_zalloc_or(&best, (size_t)t->n, sizeof *best, "neighbours", err));
    KI_CHECK(ki_alloc_or(&heap, (size_t)t->n, (size_t)k * sizeof *heap, "neighbours", err));
    for (int64_t q = 0; q < t->n; q++) best[q] = (ki_best){.heap = heap + q * k, .k = k};
    for (int64_t s = 0; s < t->set->n_segments; s++) {
        const ki_scan_segment *segment = t->set->segments + s;
        for (int64_t i = 0; i < segment->n; i += SPAN) {
            const int64_t n = segment->n - i < SPAN ? segment->n - i : SPAN;
            KI_CHECK(compare_span(t, segment->first + i, n, scratch, best, err));
        }
    }
    for (int64_t q = 0; q < t->n; q++) {
        t->n_true[q] = best[q].n;
        /* Float32 scores differ from those of the search by their rounding. */
        t->least[q] = best[q].n ? heap[q * k].score - 4e-6 * fmax(1, fabs(heap[q * k].score)) : 0;
    }
done:
    ki_free(scratch);
    ki_free(best);
    ki_free(heap);
    return status;
}

/* The part of the true neighbours that a search finds; rows as near as the k-th count, whichever they are. */
static kith_status recall_of(tuning *t, ki_scan_effort *effort, kith_error *err) {
    const int64_t k = t->o.k;
    const ki_scan_options options = {
        .effort = *effort, .allowed = t->o.allowed, .n_allowed = -1, .self = t->row};
    KI_TRY(ki_scan_search(t->set, t->query, t->n, k, &options, t->found, err));
    int64_t n_hits = 0, n_true = 0;
    for (int64_t i = 0; i < t->n * k; i++)
        n_hits += t->found[i].index >= 0 && nearness(t, t->found[i].score) >= t->least[i / k];
    for (int64_t q = 0; q < t->n; q++) n_true += t->n_true[q];
    effort->recall = n_true ? fmin(1, (double)n_hits / (double)n_true) : 1;
    return KITH_OK;
}

/* The least probes, or with `looks` the least looks, from `low` to `high` that reach the recall; high if none does. Effort holds
 * the other number. */
static kith_status least_of(tuning *t, ki_scan_effort *effort, bool looks, int64_t low, int64_t high,
                            kith_error *err) {
    while (true) {
        const int64_t middle = (int64_t)floor(sqrt((double)low * (double)high));
        int64_t *const number = looks ? &effort->n_looks : &effort->n_probes;
        /* To about a tenth: the sample does not say more. */
        const bool is_last = high - low <= low / 10;
        *number = is_last ? high : middle;
        KI_TRY(recall_of(t, effort, err));
        if (is_last) return KITH_OK;
        if (effort->recall >= t->o.recall)
            high = middle;
        else
            low = middle + 1;
    }
}

static double cost_of(const tuning *t, const ki_scan_effort *e) {
    int64_t n = 0;
    for (int64_t s = 0; s < t->set->n_segments; s++) n += t->set->segments[s].n;
    return (double)e->n_probes * (double)n / (double)t->set->coder->n_lists + LOOK_COST * (double)e->n_looks;
}

/* Fewer looks need more probes: a few points on that curve are tried. */
static kith_status find_effort(tuning *t, ki_scan_effort *ret_effort, kith_error *err) {
    const int64_t lists = t->set->coder->n_lists, k = t->o.k;
    ki_scan_effort effort = {.n_looks = t->o.most_looks, .k = k};
    KI_TRY(least_of(t, &effort, false, 1, lists, err));
    const int64_t least = effort.n_probes;
    ki_scan_effort best = effort;
    static const double MORE[] = {1, 1.15, 1.4, 1.8, 2.5};
    for (size_t i = 0; i < sizeof MORE / sizeof MORE[0] && best.recall >= t->o.recall; i++) {
        effort =
            (ki_scan_effort){.k = k, .n_probes = (int64_t)fmin(ceil((double)least * MORE[i]), (double)lists)};
        KI_TRY(least_of(t, &effort, true, k, t->o.most_looks, err));
        if (effort.recall >= t->o.recall && cost_of(t, &effort) < cost_of(t, &best)) best = effort;
        if (effort.n_probes == lists) break;
    }
    *ret_effort = best;
    return KITH_OK;
}

kith_status ki_scan_tune(const ki_scan_set *set, const ki_scan_tune_options *options,
                         ki_scan_effort *ret_effort, kith_error *err) {
    kith_status status = KITH_OK;
    tuning t = {.set = set};
    if (options) t.o = *options;
    if (!(t.o.recall >= 0 && t.o.recall <= 1))
        return ki_fail(err, KITH_EINVAL, "recall %g; wanted above 0 and up to 1", t.o.recall);
    if (t.o.recall == 0) t.o.recall = 0.99;
    if (t.o.k <= 0) t.o.k = 10;
    if (t.o.n_sample <= 0) t.o.n_sample = SAMPLE;
    if (t.o.most_looks <= 0) t.o.most_looks = LOOKS;
    if (t.o.most_looks < t.o.k) t.o.most_looks = t.o.k;
    KI_CHECK(draw(&t, err));
    KI_CHECK(ki_alloc_or(&t.query, (size_t)t.n, (size_t)set->rows.dim * sizeof(float), "sample", err));
    KI_CHECK(ki_alloc_or(&t.least, (size_t)t.n, sizeof *t.least, "sample", err));
    KI_CHECK(ki_alloc_or(&t.n_true, (size_t)t.n, sizeof *t.n_true, "sample", err));
    KI_CHECK(ki_alloc_or(&t.found, (size_t)t.n, (size_t)t.o.k * sizeof *t.found, "neighbours", err));
    KI_CHECK(ki_source_read(&set->rows, t.row, t.n, t.query, err));
    KI_CHECK(find_truth(&t, err));
    KI_CHECK(find_effort(&t, ret_effort, err));
done:
    ki_free(t.row);
    ki_free(t.query);
    ki_free(t.least);
    ki_free(t.n_true);
    ki_free(t.found);
    return status;
}
