/* Counting the hits of trials by their evidence, with intervals.
 *
 * Photos of one thing are alike, and so are their errors: intervals come from drawing labels, not photos (a Bayesian bootstrap: every
 * label weighs an exponential number). A bootstrap alone says "never" of what did not happen. So each draw adds one wrong hit
 * that weighs an exponential number too, times as many as come together: of n hits without an error its 95 % quantile is 3 / n, the rule of
 * three, and of e independent errors it is that of a Gamma distribution with e + 1, Poisson's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "judge/reliability.h"

enum {
    N = KITH_RELIABILITY_KNOTS,
    N_SHARES = KITH_RELIABILITY_SHARES,
    N_DRAWS = 400,
    SEED = 20,
    LEAST_ERRORS = 64
};

const double ki_reliability_shares[N_SHARES] = {0, 0.03, 0.1, 0.5};

typedef struct measurer {
    const ki_trials *t;
    kith_reliability *r;
    ki_counted_hit *hits;
    int64_t n_hits;
    float *sorted;  /* [n_hits] evidence, rising */
    uint8_t *knot;  /* [n_hits] */
    int16_t *first; /* [n]: the best knot with a right hit of a query, -1: none, -2: its label is not there */
    double *gain;   /* [n_labels]: see count */
    double *weight; /* [n_labels] */
    float *rate;    /* [N_SHARES, N, N_DRAWS] */
    float *wrong;   /* [N_SHARES, N, N_DRAWS] */
    float *found;   /* [N, N_DRAWS] */
} measurer;

static void measurer_release(measurer *m) {
    ki_free(m->hits);
    ki_free(m->sorted);
    ki_free(m->knot);
    ki_free(m->first);
    ki_free(m->weight);
    ki_free(m->gain);
    ki_free(m->rate);
    ki_free(m->wrong);
    ki_free(m->found);
}

static int by_value(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* ---- knots ---- */

static kith_status check_enough(const measurer *m, kith_error *err) {
    int64_t n_right = 0, n_labels = 0, *n_rows = NULL;
    KI_TRY(ki_zalloc_or(&n_rows, (size_t)m->t->n_labels, sizeof *n_rows, "labels", err));
    for (int64_t i = 0; i < m->t->n_rows; i++) n_labels += ++n_rows[m->t->label[i]] == 2;
    ki_free(n_rows);
    if (n_labels < KI_RELIABILITY_LEAST_LABELS) {
        ki_fail(err, KITH_ENOTFOUND, "%lld labels have two items or more; wanted %d", (long long)n_labels,
                KI_RELIABILITY_LEAST_LABELS);
        return ki_hint(err, KITH_ENOTFOUND, "name more of the items");
    }
    for (int64_t i = 0; i < m->n_hits; i++) n_right += m->hits[i].kind == KI_HIT_RIGHT;
    if (n_right > 0) return KITH_OK;
    return ki_fail(err, KITH_ENOTFOUND, "no item finds another one with its label");
}

/* Edges between knots, so that each has as much of the right hits as of the others; a hit belongs to the last edge at or below it. */
static kith_status find_edges(measurer *m, float edge[N], int64_t *ret_n, kith_error *err) {
    int64_t n_of[2] = {0, 0}, n[2] = {0, 0};
    float *side[2] = {NULL, NULL};
    for (int64_t i = 0; i < m->n_hits; i++) n[m->hits[i].kind != KI_HIT_RIGHT]++;
    KI_TRY(ki_alloc_or(&m->sorted, (size_t)m->n_hits, sizeof *m->sorted, "evidence", err));
    side[0] = m->sorted;
    side[1] = m->sorted + n[0];
    for (int64_t i = 0; i < m->n_hits; i++) {
        const int which = m->hits[i].kind != KI_HIT_RIGHT;
        side[which][n_of[which]++] = m->hits[i].evidence;
    }
    float all[N];
    int n_all = 0;
    for (int s = 0; s < 2; s++) {
        if (n[s] > 0) qsort(side[s], (size_t)n[s], sizeof *side[s], by_value);
        for (int64_t k = 0; n[s] > 0 && k < N / 2; k++) all[n_all++] = side[s][k * n[s] / (N / 2)];
    }
    qsort(all, (size_t)n_all, sizeof *all, by_value);
    *ret_n = 0;
    for (int i = 0; i < n_all; i++) {
        if (*ret_n == 0 || all[i] > edge[*ret_n - 1]) edge[(*ret_n)++] = all[i];
    }
    return KITH_OK;
}

static int knot_of(const float *edge, int64_t n, float evidence) {
    int64_t low = 0, high = n;
    while (low + 1 < high) {
        const int64_t middle = low + (high - low) / 2;
        if (edge[middle] <= evidence)
            low = middle;
        else
            high = middle;
    }
    return (int)low;
}

static kith_status place(measurer *m, kith_error *err) {
    float edge[N];
    double sum[N] = {0}, count[N] = {0};
    KI_TRY(find_edges(m, edge, &m->r->n, err));
    KI_TRY(ki_alloc_or(&m->knot, (size_t)m->n_hits, sizeof *m->knot, "knots", err));
    KI_TRY(ki_alloc_or(&m->first, (size_t)m->t->n, sizeof *m->first, "queries", err));
    for (int64_t i = 0; i < m->t->n; i++) m->first[i] = -2;
    for (int64_t i = 0; i < m->n_hits; i++) {
        const ki_counted_hit *hit = &m->hits[i];
        const int knot = knot_of(edge, m->r->n, hit->evidence);
        int16_t *first = &m->first[hit->query];
        m->knot[i] = (uint8_t)knot;
        sum[knot] += (double)hit->evidence;
        count[knot]++;
        if (hit->kind != KI_HIT_ABSENT && *first < -1) *first = -1;
        if (hit->kind == KI_HIT_RIGHT && *first < knot) *first = (int16_t)knot;
    }
    for (int64_t k = 0; k < m->r->n; k++) m->r->evidence[k] = sum[k] / count[k];
    return KITH_OK;
}

/* ---- counts ---- */

typedef struct counts {
    double kind[3][N]; /* hits for each query */
    double found[N];   /* the part of the queries whose best right hit is here */
} counts;

/* A trial has one right item fewer to find than a new picture has, because it is one of them: of 10 photos of a thing 9 were there, and
 * 10 will be. Every one of them is as likely a hit of some evidence. */
static void count(const measurer *m, counts *ret) {
    double present = 0, absent = 0;
    *ret = (counts){0};
    for (int64_t i = 0; i < m->n_hits; i++) {
        const ki_counted_hit *hit = &m->hits[i];
        const double gain = hit->kind == KI_HIT_RIGHT ? m->gain[hit->label] : 1;
        ret->kind[hit->kind][m->knot[i]] += gain * m->weight[hit->label];
    }
    for (int64_t i = 0; i < m->t->n; i++) {
        const double weight = m->weight[m->t->label[i]];
        absent += weight;
        if (m->first[i] > -2) present += weight;
        if (m->first[i] >= 0) ret->found[m->first[i]] += weight;
    }
    for (int64_t k = 0; k < m->r->n; k++) {
        ret->kind[KI_HIT_RIGHT][k] /= present;
        ret->kind[KI_HIT_WRONG][k] /= present;
        ret->kind[KI_HIT_ABSENT][k] /= absent;
        ret->found[k] /= present;
    }
}

static kith_status find_gains(measurer *m, kith_error *err) {
    const ki_trials *t = m->t;
    KI_TRY(ki_zalloc_or(&m->gain, (size_t)t->n_labels, sizeof *m->gain, "labels", err));
    for (int64_t i = 0; i < t->n_rows; i++) m->gain[t->label[i]]++;
    for (int64_t l = 0; l < t->n_labels; l++) m->gain[l] = m->gain[l] > 1 ? m->gain[l] / (m->gain[l] - 1) : 1;
    return KITH_OK;
}

/* How many errors come together, seen from one of them: of one label, among the errors with the most evidence, as many as there are
 * labels, because it is among the best hits that errors are few. Where there are none at all, a query that goes wrong would have as many
 * as it has right hits. */
static kith_status find_together(measurer *m, kith_error *err) {
    const int64_t n_labels = m->t->n_labels;
    int64_t n_of[3][N] = {{0}};
    double *errors = NULL, n_right = 0;
    KI_TRY(ki_alloc_or(&errors, (size_t)n_labels, sizeof *errors, "labels", err));
    for (int64_t i = 0; i < m->n_hits; i++) n_of[m->hits[i].kind][m->knot[i]]++;
    for (int64_t k = 0; k < m->r->n; k++) n_right += m->r->right[k];
    for (int kind = KI_HIT_WRONG; kind <= KI_HIT_ABSENT; kind++) {
        const int64_t most = n_labels > LEAST_ERRORS ? n_labels : LEAST_ERRORS;
        int64_t from = m->r->n - 1, n = n_of[kind][m->r->n - 1];
        double sum = 0, squares = 0;
        while (from > 0 && n < most) n += n_of[kind][--from];
        for (int64_t l = 0; l < n_labels; l++) errors[l] = 0;
        for (int64_t i = 0; i < m->n_hits; i++)
            errors[m->hits[i].label] += m->hits[i].kind == kind && m->knot[i] >= from;
        for (int64_t l = 0; l < n_labels; l++) {
            sum += errors[l];
            squares += errors[l] * errors[l];
        }
        m->r->together[kind - KI_HIT_WRONG] = sum > 0 ? squares / sum : fmax(n_right, 1);
    }
    ki_free(errors);
    return KITH_OK;
}

static void count_all(measurer *m) {
    counts c;
    kith_reliability *r = m->r;
    for (int64_t l = 0; l < m->t->n_labels; l++) m->weight[l] = 1;
    count(m, &c);
    memcpy(r->right, c.kind[KI_HIT_RIGHT], sizeof r->right);
    memcpy(r->wrong, c.kind[KI_HIT_WRONG], sizeof r->wrong);
    memcpy(r->absent, c.kind[KI_HIT_ABSENT], sizeof r->absent);
}

/* ---- draws ---- */

static double exponential(ki_rng *rng) { return -log(1 - ki_rng_double(rng)); }

static void draw(measurer *m, int d) {
    counts c;
    double rate[N], mass[N];
    const int64_t n = m->r->n;
    ki_rng rng = ki_rng_at(SEED, KI_RNG_BOOTSTRAP, (uint32_t)d, 0);
    const double some[2] = {exponential(&rng) * m->r->together[0] / (double)m->r->n_present,
                            exponential(&rng) * m->r->together[1] / (double)m->r->n_absent};
    const double less = exponential(&rng) / (double)m->r->n_present;
    for (int64_t l = 0; l < m->t->n_labels; l++) m->weight[l] = exponential(&rng);
    count(m, &c);
    for (int s = 0; s < N_SHARES; s++) {
        const double odds = ki_reliability_shares[s] / (1 - ki_reliability_shares[s]);
        const double more = some[0] + odds * some[1];
        double wrong = 0, right = 0;
        ki_reliability_pool(c.kind[0], c.kind[1], c.kind[2], odds, n, rate, mass);
        for (int64_t k = n - 1; k >= 0; k--) {
            float *to = m->rate + ((int64_t)s * N + k) * N_DRAWS;
            to[d] = (float)((rate[k] * mass[k] + more) / (mass[k] + more));
            wrong += c.kind[KI_HIT_WRONG][k] + odds * c.kind[KI_HIT_ABSENT][k];
            right += c.kind[KI_HIT_RIGHT][k];
            m->wrong[((int64_t)s * N + k) * N_DRAWS + d] = (float)((wrong + more) / (wrong + right + more));
        }
    }
    double found = 0;
    for (int64_t k = n - 1; k >= 0; k--) {
        found += c.found[k];
        m->found[k * N_DRAWS + d] = (float)(found / (1 + less));
    }
}

static double quantile(float *values, double part) {
    qsort(values, N_DRAWS, sizeof *values, by_value);
    return (double)values[(int)(part * (N_DRAWS - 1) + 0.5)];
}

static kith_status draw_all(measurer *m, kith_error *err) {
    kith_reliability *r = m->r;
    const size_t n = (size_t)N_SHARES * N * N_DRAWS;
    KI_TRY(ki_alloc_or(&m->rate, n, sizeof *m->rate, "draws", err));
    KI_TRY(ki_alloc_or(&m->wrong, n, sizeof *m->wrong, "draws", err));
    KI_TRY(ki_alloc_or(&m->found, (size_t)N * N_DRAWS, sizeof *m->found, "draws", err));
    for (int d = 0; d < N_DRAWS; d++) draw(m, d);
    for (int64_t k = 0; k < r->n; k++) {
        for (int s = 0; s < N_SHARES; s++) {
            const int64_t at = ((int64_t)s * N + k) * N_DRAWS;
            r->low[s][k] = quantile(m->rate + at, 0.025);
            r->high[s][k] = quantile(m->rate + at, 0.975);
            r->wrong_most[s][k] = quantile(m->wrong + at, 0.95);
        }
        r->found_least[k] = quantile(m->found + k * N_DRAWS, 0.05);
    }
    return KITH_OK;
}

/* ---- the first hits' scores ---- */

static void top_scores(measurer *m, const ki_trial_hit *list, bool is_present, double *ret) {
    int64_t n = 0;
    for (int64_t i = 0; i < m->t->n; i++) {
        if ((is_present && m->first[i] == -2) || list[i * m->t->k].row < 0) continue;
        m->sorted[n++] = list[i * m->t->k].score;
    }
    qsort(m->sorted, (size_t)n, sizeof *m->sorted, by_value);
    for (int64_t i = 0; i < KITH_RELIABILITY_TOPS; i++)
        ret[i] = (double)m->sorted[i * (n - 1) / (KITH_RELIABILITY_TOPS - 1)];
}

static kith_status run(measurer *m, kith_error *err) {
    kith_reliability *r = m->r;
    const ki_trials *t = m->t;
    *r = (kith_reliability){.metric = t->metric, .n_labels = t->n_labels, .n_absent = t->n, .depth = t->k};
    KI_TRY(ki_reliability_hits(t, &m->hits, &m->n_hits, &r->n_present, err));
    KI_TRY(check_enough(m, err));
    KI_TRY(ki_alloc_or(&m->weight, (size_t)t->n_labels, sizeof *m->weight, "labels", err));
    ki_reliability_fit(m->hits, m->n_hits, (double)r->n_present, (double)r->n_absent, r->weight);
    KI_TRY(place(m, err));
    KI_TRY(find_gains(m, err));
    count_all(m);
    KI_TRY(find_together(m, err));
    KI_TRY(draw_all(m, err));
    top_scores(m, t->with, true, r->top_present);
    top_scores(m, t->without, false, r->top_absent);
    return KITH_OK;
}

kith_status ki_reliability_measure(const ki_trials *trials, kith_reliability *ret, kith_error *err) {
    kith_reliability *r = NULL;
    measurer m = {.t = trials};
    KI_TRY(ki_zalloc_or(&r, 1, sizeof *r, "the reliability of hits", err));
    m.r = r;
    const kith_status status = run(&m, err);
    if (status == KITH_OK) *ret = *r;
    measurer_release(&m);
    ki_free(r);
    return status;
}
