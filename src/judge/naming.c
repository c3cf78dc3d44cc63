/* From trials to the curve.
 *
 * Photos of one thing are wrong together, and two things that look alike are taken for each other: trials hang together, and say less than
 * their number. The variance of a rate is that of sums by thing, and each pair of things that are taken for each other in both directions counts
 * twice more. What it is larger than that of independent trials is the design effect (Kish 1965); trials and errors are divided by it, and the
 * bound is Clopper and Pearson's of what is left (Korn and Graubard 1998). The effect cannot be seen of few errors: then it is that of the
 * threshold that lets errors of 20 things through. Things that make the errors are few as well: then the effect
 * is not known well itself, and a factor for Student's t is on the safe side.
 *
 * Bounds at stricter evidence are never larger than at looser: so the threshold for an error can be found by going from strict to loose
 * until a bound is above it, which keeps the level (Bauer 1991; fixed sequences of tests). */
#include "judge/naming.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "judge/share.h"

enum { LEAST_THINGS = 20 };

/* One photo that was given this name with this evidence. */
typedef struct event {
    double evidence;
    int64_t label, name;
} event;

typedef struct events {
    event *at; /* the strongest first */
    int64_t n;
} events;

static int by_evidence(const void *a, const void *b) {
    const event *x = a, *y = b;
    if (x->evidence != y->evidence) return x->evidence < y->evidence ? 1 : -1;
    if (x->label != y->label) return x->label < y->label ? -1 : 1;
    return (x->name > y->name) - (x->name < y->name);
}

static void sort(events *e) {
    if (e->n > 0) qsort(e->at, (size_t)e->n, sizeof *e->at, by_evidence);
}

/* ---- trials to events ---- */

typedef struct made {
    const ki_trials *t;
    int64_t *size;                        /* [n_labels]: rows of each label */
    int64_t *asked_unknown, *asked_known; /* [n_labels]: trials of each */
    events unknown, wrong, right;
    double *near_unknown, *near_known;
    int64_t n_unknown, n_known;
} made;

static void made_release(made *m) {
    ki_free(m->size);
    ki_free(m->asked_unknown);
    ki_free(m->asked_known);
    ki_free(m->unknown.at);
    ki_free(m->wrong.at);
    ki_free(m->right.at);
    ki_free(m->near_unknown);
    ki_free(m->near_known);
}

static kith_status made_init(made *m, const ki_trials *t, kith_error *err) {
    const size_t n = (size_t)t->n, n_labels = (size_t)t->n_labels;
    *m = (made){.t = t};
    KI_TRY(ki_zalloc_or(&m->size, n_labels, sizeof *m->size, "labels", err));
    KI_TRY(ki_zalloc_or(&m->asked_unknown, n_labels, sizeof *m->asked_unknown, "labels", err));
    KI_TRY(ki_zalloc_or(&m->asked_known, n_labels, sizeof *m->asked_known, "labels", err));
    KI_TRY(ki_alloc_or(&m->unknown.at, n, sizeof *m->unknown.at, "trials", err));
    KI_TRY(ki_alloc_or(&m->wrong.at, n, sizeof *m->wrong.at, "trials", err));
    KI_TRY(ki_alloc_or(&m->right.at, n, sizeof *m->right.at, "trials", err));
    KI_TRY(ki_alloc_or(&m->near_unknown, n, sizeof *m->near_unknown, "trials", err));
    KI_TRY(ki_alloc_or(&m->near_known, n, sizeof *m->near_known, "trials", err));
    for (int64_t i = 0; i < t->n_rows; i++) m->size[t->label[i]]++;
    return KITH_OK;
}

static ki_evidence evidence_of(const ki_trials *t, const ki_trial_hit *list) {
    ki_name_hit hits[KI_EVIDENCE_HITS];
    int64_t n = 0;
    for (; n < t->k && n < KI_EVIDENCE_HITS && list[n].row >= 0; n++)
        hits[n] = (ki_name_hit){(double)list[n].score, t->label[list[n].row]};
    return ki_evidence_find(t->metric, hits, n);
}

static void add(events *to, ki_evidence e, int64_t label) {
    to->at[to->n++] = (event){e.value, label, e.label};
}

static double nearness(kith_metric metric, double score) {
    return metric == KITH_SQEUCLIDEAN ? -score : score;
}

/* A label of one row is a thing that is not there when its row is left out. */
static void fill(made *m) {
    const ki_trials *t = m->t;
    for (int64_t i = 0; i < t->n; i++) {
        const int64_t label = t->label[i];
        const ki_trial_hit *without = t->without + i * t->k, *with = t->with + i * t->k;
        const ki_evidence u = evidence_of(t, without);
        if (u.label >= 0) {
            add(&m->unknown, u, label);
            m->asked_unknown[label]++;
            m->near_unknown[m->n_unknown++] = nearness(t->metric, (double)without[0].score);
        }
        if (m->size[label] < 2) continue;
        const ki_evidence k = evidence_of(t, with);
        if (k.label < 0) continue;
        add(k.label == label ? &m->right : &m->wrong, k, label);
        m->asked_known[label]++;
        m->near_known[m->n_known++] = nearness(t->metric, (double)with[0].score);
    }
    sort(&m->unknown);
    sort(&m->wrong);
    sort(&m->right);
}

/* ---- how trials hang together ---- */

/* How often each label was given each name. */
typedef struct pair_count {
    int64_t label, name, n;
} pair_count;

/* The errors of one kind, taken in from the strongest on. */
typedef struct taken {
    const events *events;
    const int64_t *asked;                /* [n_labels] */
    int64_t n_labels, n_trials, n_asked; /* n_asked: labels with a trial */
    double sum_squares;                  /* of `asked` */
    double more;         /* of a rate: an unknown thing meets one name more than its trial did */
    int64_t n, n_things; /* taken in; labels that they are of */
    int64_t *of_label;   /* [n_labels] errors */
    pair_count *pair;    /* hashed; n 0: free */
    size_t n_pairs;      /* a power of 2 */
    double squares, fourths, products, mutual; /* sums of x x, of x asked, and of pairs in both directions */
} taken;

static void taken_release(taken *t) {
    ki_free(t->of_label);
    ki_free(t->pair);
}

static kith_status taken_init(taken *t, const events *e, const int64_t *asked, int64_t n_labels,
                              int64_t n_trials, kith_error *err) {
    *t = (taken){.events = e, .asked = asked, .n_labels = n_labels, .n_trials = n_trials, .n_pairs = 16};
    for (int64_t i = 0; i < n_labels; i++) {
        t->sum_squares += (double)asked[i] * (double)asked[i];
        t->n_asked += asked[i] > 0;
    }
    while (t->n_pairs < 2 * (size_t)e->n) t->n_pairs *= 2;
    KI_TRY(ki_zalloc_or(&t->of_label, (size_t)n_labels, sizeof *t->of_label, "labels", err));
    return ki_zalloc_or(&t->pair, t->n_pairs, sizeof *t->pair, "pairs of labels", err);
}

static pair_count *pair_at(const taken *t, int64_t label, int64_t name) {
    const uint64_t hash =
        ((uint64_t)label * (uint64_t)t->n_labels + (uint64_t)name) * UINT64_C(0x9E3779B97F4A7C15);
    size_t at = (size_t)(hash >> 20) & (t->n_pairs - 1);
    while (t->pair[at].n > 0 && (t->pair[at].label != label || t->pair[at].name != name))
        at = (at + 1) & (t->n_pairs - 1);
    return &t->pair[at];
}

static void take_to(taken *t, double evidence) {
    for (; t->n < t->events->n && t->events->at[t->n].evidence >= evidence; t->n++) {
        const event *e = &t->events->at[t->n];
        pair_count *pair = pair_at(t, e->label, e->name);
        *pair = (pair_count){e->label, e->name, pair->n + 1};
        t->mutual += (double)pair_at(t, e->name, e->label)->n;
        const double x = (double)t->of_label[e->label]++;
        t->n_things += x == 0;
        t->squares += 2 * x + 1;
        t->fourths += (2 * x + 1) * (2 * x * x + 2 * x + 1);
        t->products += (double)t->asked[e->label];
    }
}

/* The square of Student's t by the normal distribution's, at 95 %, with so many degrees of freedom. */
static double few_things(double f) {
    const double z = 1.6448536269514722;
    f = fmax(f, 1);
    const double t = z + (z * z * z + z) / (4 * f) + (5 * pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * f * f);
    return t * t / (z * z);
}

/* By how much the variance of the rate is larger than that of independent trials, at least 1; and more where few things make the errors, so that
 * it is not known well. */
static double design_effect(const taken *t) {
    const double n = (double)t->n_trials, p = (double)t->n / n, c = (double)t->n_asked;
    if (t->n == 0 || t->n == t->n_trials || t->n_asked < 2) return 1;
    const double sums = t->squares - 2 * p * t->products + p * p * t->sum_squares;
    const double effect = (sums * c / (c - 1) + 2 * t->mutual) / (n * p * (1 - p));
    return fmax(effect, 1) * few_things(t->squares * t->squares / t->fourths);
}

/* Too few to see how they hang together? Where half of all trials are let through, no more is to be learned. */
static bool are_few(const taken *t) {
    return t->n_things < LEAST_THINGS && 2 * t->n < t->n_trials && t->n < t->events->n;
}

/* The effect at the strictest threshold where it can be seen. */
static kith_status least_effect(const events *e, const int64_t *asked, int64_t n_labels, int64_t n_trials,
                                double *ret, kith_error *err) {
    taken t;
    kith_status status = taken_init(&t, e, asked, n_labels, n_trials, err);
    *ret = 1;
    if (status == KITH_OK) {
        while (are_few(&t)) take_to(&t, e->at[t.n].evidence);
        *ret = design_effect(&t);
    }
    taken_release(&t);
    return status;
}

typedef struct bounded {
    double rate, high, n; /* n: independent trials */
} bounded;

static bounded bound(const taken *t, double effect_of_few) {
    const double effect = are_few(t) ? effect_of_few : design_effect(t);
    if (t->n_trials < 1) return (bounded){0, 1, 0};
    const double n = (double)t->n_trials / effect;
    const double rate = fmin(1, (double)t->n / (double)t->n_trials * t->more);
    return (bounded){rate, ki_share_high(rate * n, n, KI_NAMING_LEVEL), n};
}

/* ---- the curve ---- */

/* Thresholds, the strictest first: behind which 0, 1, 2 … of the errors of either kind are let through, in steps that grow. Each lies
 * just above the next error. */
static int64_t list_thresholds(const made *m, double *all, double *ret) {
    int64_t n = 0, n_ret = 0, u = 0, w = 0;
    while (u < m->unknown.n || w < m->wrong.n) {
        const bool first =
            w == m->wrong.n || (u < m->unknown.n && m->unknown.at[u].evidence >= m->wrong.at[w].evidence);
        all[n++] = first ? m->unknown.at[u++].evidence : m->wrong.at[w++].evidence;
    }
    for (int i = -1; i < KI_NAMING_POINTS - 1; i++) {
        const int64_t rank = i < 0 ? 0 : (int64_t)pow((double)(n - 1), (double)i / (KI_NAMING_POINTS - 2));
        if (rank >= n) break;
        const double evidence = nextafter(all[rank], HUGE_VAL);
        if (n_ret == 0 || evidence < ret[n_ret - 1]) ret[n_ret++] = evidence;
    }
    return n_ret;
}

static void put_point(ki_name_curve *ret, double evidence, bounded u, bounded w, double named) {
    const bounded *larger = u.rate > w.rate ? &u : &w;
    ki_naming_point p = {.evidence = evidence,
                         .unknown = u.rate,
                         .unknown_high = u.high,
                         .wrong = w.rate,
                         .wrong_high = w.high,
                         .low = ki_share_low(larger->rate * larger->n, larger->n, KI_NAMING_LEVEL),
                         .named = named};
    if (ret->n > 0) {
        const ki_naming_point *stricter = &ret->point[ret->n - 1];
        p.unknown_high = fmax(p.unknown_high, stricter->unknown_high);
        p.wrong_high = fmax(p.wrong_high, stricter->wrong_high);
        p.low = fmax(p.low, stricter->low);
    }
    ret->point[ret->n++] = p;
}

static kith_status fill_curve(const made *m, ki_name_curve *ret, kith_error *err) {
    kith_status status;
    taken u = {0}, w = {0};
    double *all = NULL, threshold[KI_NAMING_POINTS], few_u = 1, few_w = 1;
    const int64_t n_labels = m->t->n_labels;
    KI_CHECK(ki_alloc_or(&all, (size_t)(m->unknown.n + m->wrong.n), sizeof *all, "thresholds", err));
    KI_CHECK(least_effect(&m->unknown, m->asked_unknown, n_labels, m->n_unknown, &few_u, err));
    KI_CHECK(least_effect(&m->wrong, m->asked_known, n_labels, m->n_known, &few_w, err));
    KI_CHECK(taken_init(&u, &m->unknown, m->asked_unknown, n_labels, m->n_unknown, err));
    KI_CHECK(taken_init(&w, &m->wrong, m->asked_known, n_labels, m->n_known, err));
    u.more = (double)n_labels / (double)(n_labels - 1);
    w.more = 1;
    const int64_t n = list_thresholds(m, all, threshold);
    for (int64_t i = 0, right = 0; i < n; i++) {
        take_to(&u, threshold[i]);
        take_to(&w, threshold[i]);
        while (right < m->right.n && m->right.at[right].evidence >= threshold[i]) right++;
        const bounded unknown = bound(&u, few_u), wrong = bound(&w, few_w);
        if (i == 0) ret->n_independent = fmin(unknown.n, wrong.n);
        put_point(ret, threshold[i], unknown, wrong, (double)right / (double)m->n_known);
    }
done:
    taken_release(&u);
    taken_release(&w);
    ki_free(all);
    return status;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void quantiles(double *values, int64_t n, double ret[KI_NAMING_QUANTILES]) {
    qsort(values, (size_t)n, sizeof *values, by_value);
    for (int i = 0; i < KI_NAMING_QUANTILES; i++) ret[i] = values[(n - 1) * i / (KI_NAMING_QUANTILES - 1)];
}

kith_status ki_naming_make(const ki_trials *trials, ki_name_curve *ret, kith_error *err) {
    kith_status status;
    made m = {0};
    ki_name_curve *made_curve = NULL;
    KI_CHECK(ki_zalloc_or(&made_curve, 1, sizeof *made_curve, "a curve", err));
    KI_CHECK(made_init(&m, trials, err));
    fill(&m);
    if (m.n_known < 1 || m.n_unknown < 1 || trials->n_labels < 3) {
        status = ki_fail(
            err, KITH_ENOTFOUND,
            "%lld photos of %lld names, %lld of them with another photo of their name; wanted 3 names, "
            "and names with two photos",
            (long long)trials->n_rows, (long long)trials->n_labels, (long long)m.n_known);
        goto done;
    }
    made_curve->metric = trials->metric;
    made_curve->n_rows = trials->n_rows;
    made_curve->n_labels = trials->n_labels;
    for (int64_t i = 0; i < trials->n_labels; i++) made_curve->n_single += m.size[i] == 1;
    made_curve->n_unknown = m.n_unknown;
    made_curve->n_known = m.n_known;
    KI_CHECK(fill_curve(&m, made_curve, err));
    quantiles(m.near_unknown, m.n_unknown, made_curve->near_unknown);
    quantiles(m.near_known, m.n_known, made_curve->near_known);
    *ret = *made_curve;
done:
    made_release(&m);
    ki_free(made_curve);
    return status;
}

/* ---- asking the curve ---- */

static double highest(const ki_naming_point *p) { return fmax(p->unknown_high, p->wrong_high); }

double ki_naming_threshold(const ki_name_curve *naming, double error) {
    int64_t n = 0;
    while (n < naming->n && highest(&naming->point[n]) <= error) n++;
    return n > 0 ? naming->point[n - 1].evidence : (double)NAN;
}

double ki_naming_least(const ki_name_curve *naming) {
    return naming->n > 0 ? highest(&naming->point[0]) : (double)NAN;
}

ki_naming_point ki_naming_at(const ki_name_curve *naming, double evidence) {
    for (int64_t i = 0; i < naming->n; i++) {
        if (naming->point[i].evidence <= evidence) return naming->point[i];
    }
    return (ki_naming_point){.evidence = -HUGE_VAL, 1, 1, 1, 1, 0, 1};
}

int64_t ki_naming_wanted(const ki_name_curve *naming, double error) {
    const double wanted =
        ki_share_trials(error, KI_NAMING_LEVEL) * (double)naming->n_rows / fmax(naming->n_independent, 1e-9);
    const double unit = pow(10, floor(log10(fmax(wanted, 1))) - 1);
    return (int64_t)fmin(9e15, wanted < 100 ? ceil(wanted) : ceil(wanted / unit) * unit);
}

/* The part of what the quantiles are of that is below x. */
static double part_below(const double *quantile, double x) {
    enum { LAST = KI_NAMING_QUANTILES - 1 };
    if (x <= quantile[0]) return 0;
    if (x > quantile[LAST]) return 1;
    int i = 1;
    while (quantile[i] < x) i++;
    const double width = quantile[i] - quantile[i - 1];
    return (i - 1 + (width > 0 ? (x - quantile[i - 1]) / width : 1)) / LAST;
}

int ki_naming_unlike(const ki_name_curve *naming, double *near, int64_t n) {
    double farther = 0, nearer = 0;
    if (n < KI_NAMING_LEAST_ASKED || naming->n < 1) return 0;
    for (int64_t i = 0; i < n; i++) near[i] = nearness(naming->metric, near[i]);
    qsort(near, (size_t)n, sizeof *near, by_value);
    for (int64_t i = 0; i < n; i++) {
        farther = fmax(farther, (double)(i + 1) / (double)n - part_below(naming->near_unknown, near[i]));
        nearer = fmax(nearer, part_below(naming->near_known, near[i]) - (double)i / (double)n);
    }
    const double most = sqrt(log(1000) / (2 * (double)n)) + 1.0 / KI_NAMING_QUANTILES;
    if (fmax(farther, nearer) <= most) return 0;
    return farther > nearer ? -1 : 1;
}
