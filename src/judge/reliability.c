/* What the trials say of a hit: the chance that it is wrong, and which hits keep a promise. */
#include "judge/reliability.h"

#include <math.h>
#include <string.h>

#include "base/argument.h"

enum { N = KITH_RELIABILITY_KNOTS, N_SHARES = KITH_RELIABILITY_SHARES };

double kith_reliability_evidence(const kith_reliability *r, double score, int64_t rank, double margin) {
    double x[KI_RELIABILITY_FEATURES], sum = 0;
    if (!r || r->n == 0) return (double)NAN;
    ki_reliability_features(r->metric, score, rank, margin, x);
    for (int d = 0; d < KI_RELIABILITY_FEATURES; d++) sum += r->weight[d] * x[d];
    return sum;
}

/* ---- rates ---- */

void ki_reliability_pool(const double *right, const double *wrong, const double *absent, double odds,
                         int64_t n, double *ret_rate, double *ret_mass) {
    double bad[N], all[N];
    int64_t width[N], n_pools = 0;
    for (int64_t k = n - 1; k >= 0;
         k--) { /* from the best on; a pool is joined with those before it that have a higher rate */
        double b = wrong[k] + odds * absent[k], a = b + right[k];
        int64_t w = 1;
        while (n_pools > 0 && bad[n_pools - 1] * a >= b * all[n_pools - 1]) {
            n_pools--;
            b += bad[n_pools];
            a += all[n_pools];
            w += width[n_pools];
        }
        bad[n_pools] = b;
        all[n_pools] = a;
        width[n_pools++] = w;
    }
    for (int64_t p = 0, k = n - 1; p < n_pools; p++) {
        for (int64_t i = 0; i < width[p]; i++, k--) {
            ret_rate[k] = all[p] > 0 ? bad[p] / all[p] : 1;
            ret_mass[k] = all[p];
        }
    }
}

static double log_odds(double p) {
    const double least = 1e-9;
    return p < least ? log(least) : p > 1 - least ? -log(least) : log(p / (1 - p));
}

static double part_of(double log_odds) { return 1 / (1 + exp(-log_odds)); }

/* Between two values that are kept for shares. */
typedef struct between {
    int low, high;
    double part;
} between;

static between find_share(double unknown) {
    const double *s = ki_reliability_shares;
    int i = 0;
    while (i + 1 < N_SHARES && s[i + 1] <= unknown) i++;
    if (i + 1 == N_SHARES) return (between){i, i, 0};
    /* Rates rise steeply from 0 on. */
    const double from = sqrt(s[i]), to = sqrt(s[i + 1]);
    return (between){i, i + 1, (sqrt(unknown) - from) / (to - from)};
}

static double at_share(const double values[N_SHARES][N], between b, int64_t k) {
    return (1 - b.part) * log_odds(values[b.low][k]) + b.part * log_odds(values[b.high][k]);
}

void ki_error_rates_make(const kith_reliability *r, double unknown, ki_error_rates *ret) {
    double rate[N], mass[N], least = 0;
    const double odds = unknown < 1 ? unknown / (1 - unknown) : 1e9;
    const between b = find_share(unknown);
    ki_reliability_pool(r->right, r->wrong, r->absent, odds, r->n, rate, mass);
    ret->n = r->n;
    memcpy(ret->evidence, r->evidence, sizeof ret->evidence);
    /* Few hits without an error do not say that there is none: a sixth of what comes together counts on top, as in the median of
     * what the number of errors may be (that of a Gamma distribution with e + 1/2 is about e + 1/6). */
    const double more =
        (r->together[0] / (double)r->n_present + odds * r->together[1] / (double)r->n_absent) / 6;
    for (int64_t k = r->n - 1; k >= 0; k--) {
        least = fmax(least, (rate[k] * mass[k] + more) / (mass[k] + more));
        ret->rate[k] = log_odds(least);
        ret->low[k] = fmin(at_share(r->low, b, k), ret->rate[k]);
        ret->high[k] = fmax(at_share(r->high, b, k), ret->rate[k]);
    }
    for (int64_t k = r->n - 2; k >= 0; k--) { /* wherever draws pooled otherwise */
        ret->high[k] = fmax(ret->high[k], ret->high[k + 1]);
        ret->low[k] = fmax(ret->low[k], ret->low[k + 1]);
    }
}

kith_error_rate ki_error_rates_at(const ki_error_rates *r, double evidence) {
    int64_t low = 0, high = r->n;
    if (isnan(evidence)) return (kith_error_rate){(double)NAN, (double)NAN, (double)NAN};
    while (low + 1 < high) {
        const int64_t middle = low + (high - low) / 2;
        if (r->evidence[middle] <= evidence)
            low = middle;
        else
            high = middle;
    }
    const int64_t next = low + 1 < r->n ? low + 1 : low;
    const double width = r->evidence[next] - r->evidence[low], over = evidence - r->evidence[low];
    const double part = width > 0 && over > 0 ? over / width : 0;
    const double *const lists[3] = {r->rate, r->low, r->high};
    double found[3];
    for (int i = 0; i < 3; i++) found[i] = part_of((1 - part) * lists[i][low] + part * lists[i][next]);
    return (kith_error_rate){found[0], found[1], found[2]};
}

kith_error_rate kith_reliability_error_rate(const kith_reliability *r, double evidence, double unknown) {
    ki_error_rates rates;
    if (!r || r->n == 0 || !(unknown >= 0 && unknown <= 1))
        return (kith_error_rate){(double)NAN, (double)NAN, (double)NAN};
    ki_error_rates_make(r, unknown, &rates);
    return ki_error_rates_at(&rates, evidence);
}

/* ---- promises ---- */

int64_t kith_reliability_needed(double part) {
    return part > 0 && part < 1 ? (int64_t)ceil(log(0.05) / log(part)) : 0;
}

/* From the best hits on, as long as the promise is kept. The first knots may hold too few hits to promise anything. */
double kith_reliability_precise(const kith_reliability *r, double precision, double unknown) {
    double found = (double)NAN;
    if (!r || r->n == 0 || !(precision > 0 && precision < 1) || !(unknown >= 0 && unknown < 1)) return found;
    const between b = find_share(unknown);
    for (int64_t k = r->n - 1; k >= 0; k--) {
        if (part_of(at_share(r->wrong_most, b, k)) <= 1 - precision)
            found = k > 0 ? (r->evidence[k] + r->evidence[k - 1]) / 2 : r->evidence[0];
        else if (!isnan(found))
            break;
    }
    return found;
}

double kith_reliability_complete(const kith_reliability *r, double complete) {
    if (!r || r->n == 0 || !(complete > 0 && complete < 1)) return (double)NAN;
    for (int64_t k = r->n - 1; k >= 0; k--) {
        if (r->found_least[k] >= complete)
            return k > 0 ? (r->evidence[k] + r->evidence[k - 1]) / 2 : -(double)INFINITY;
    }
    return (double)NAN;
}

/* ---- is it one? ---- */

static bool are_parts(const double *values, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (!(values[i] >= 0 && values[i] <= 1)) return false;
    }
    return true;
}

static bool are_counts(const double *values, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (!(values[i] >= 0 && values[i] <= 1e6)) return false;
    }
    return true;
}

static bool do_rise(const double *values, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(values[i]) || (i > 0 && values[i] < values[i - 1])) return false;
    }
    return true;
}

kith_status kith_reliability_check(const kith_reliability *reliability, kith_error *err) {
    KI_NEED(err, reliability);
    const kith_reliability *r = reliability;
    const char *wrong = NULL;
    if (r->n < 1 || r->n > N)
        return ki_fail(err, KITH_EFORMAT, "%lld knots; wanted 1 to %d", (long long)r->n, N);
    if ((unsigned)r->metric > KITH_SQEUCLIDEAN) wrong = "metric";
    if (r->n_labels < 1 || r->n_present < 1 || r->n_absent < 1 || r->depth < 1) wrong = "number of trials";
    if (!do_rise(r->evidence, r->n)) wrong = "evidence";
    if (!are_counts(r->right, r->n) || !are_counts(r->wrong, r->n) || !are_counts(r->absent, r->n))
        wrong = "count";
    for (int d = 0; d < KI_RELIABILITY_FEATURES; d++) {
        if (!(r->weight[d] >= 0) || !isfinite(r->weight[d])) wrong = "weight";
    }
    for (int s = 0; s < N_SHARES; s++) {
        if (!are_parts(r->low[s], r->n) || !are_parts(r->high[s], r->n) || !are_parts(r->wrong_most[s], r->n))
            wrong = "interval";
    }
    if (!are_counts(r->together, 2)) wrong = "number of errors together";
    if (!are_parts(r->found_least, r->n)) wrong = "interval";
    if (!do_rise(r->top_present, KITH_RELIABILITY_TOPS) || !do_rise(r->top_absent, KITH_RELIABILITY_TOPS))
        wrong = "score";
    return wrong ? ki_fail(err, KITH_EFORMAT, "a %s that cannot be", wrong) : KITH_OK;
}
