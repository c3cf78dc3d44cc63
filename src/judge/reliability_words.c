/* Rates in words, and queries that are unlike those that were measured. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "judge/reliability.h"

/* ---- words ---- */

/* Two digits, in groups of three. */
static void put_count(double count, char *buf, size_t bytes) {
    char digits[32], text[48];
    const double unit = count >= 100 ? pow(10, floor(log10(count)) - 1) : 1;
    ki_snprintf(digits, sizeof digits, "%.0f", fmin(round(count / unit) * unit, 1e15));
    const size_t n = strlen(digits);
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0) text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = '\0';
    ki_snprintf(buf, bytes, "1 of %s", text);
}

const char *kith_rate_words(double rate, char *buf, size_t bytes) {
    if (!buf || bytes == 0) return buf;
    buf[0] = '\0';
    if (!(rate >= 0)) return buf;
    if (rate < 0.4)
        put_count(1 / fmax(rate, 1e-15), buf, bytes);
    else
        ki_snprintf(buf, bytes, "%.0f of 10", round(fmin(rate, 1) * 10));
    return buf;
}

/* ---- drift ---- */

enum { LEAST_QUERIES = 20, N_TOPS = KITH_RELIABILITY_TOPS };

/* The part of the trials whose first hit scores x or worse. */
static double part_below(kith_metric metric, const double *top, double x) {
    double below = 0;
    if (x < top[0])
        below = 0;
    else if (x >= top[N_TOPS - 1])
        below = 1;
    else {
        int i = 0;
        while (top[i + 1] <= x) i++;
        below = (i + (x - top[i]) / (top[i + 1] - top[i])) / (N_TOPS - 1);
    }
    return metric == KITH_SQEUCLIDEAN ? 1 - below : below;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* scores [n]: the worst first. */
static bool is_rejected(const kith_reliability *r, const double *scores, int64_t n, double unknown) {
    double most = 0;
    for (int64_t i = 0; i < n; i++) {
        const double expected = (1 - unknown) * part_below(r->metric, r->top_present, scores[i]) +
                                unknown * part_below(r->metric, r->top_absent, scores[i]);
        most = fmax(most, (double)(i + 1) / (double)n - expected);
    }
    return most > sqrt(log(100) / (2 * (double)n));
}

bool kith_reliability_is_unlike(const kith_reliability *r, const double *top, int64_t n, double unknown,
                                double *ret_unknown) {
    double *scores = NULL;
    int64_t n_scores = 0;
    if (!r || r->n == 0 || !top || n < LEAST_QUERIES || !(unknown >= 0 && unknown <= 1)) return false;
    scores = ki_alloc((size_t)n, sizeof *scores);
    if (!scores) return false;
    for (int64_t i = 0; i < n; i++) {
        if (!isnan(top[i])) scores[n_scores++] = top[i];
    }
    qsort(scores, (size_t)n_scores, sizeof *scores, by_value);
    for (int64_t i = 0; r->metric == KITH_SQEUCLIDEAN && i < n_scores / 2; i++) {
        const double other = scores[n_scores - 1 - i];
        scores[n_scores - 1 - i] = scores[i];
        scores[i] = other;
    }
    const bool is_unlike = n_scores >= LEAST_QUERIES && is_rejected(r, scores, n_scores, unknown);
    double share = unknown;
    while (is_unlike && share < 1 && is_rejected(r, scores, n_scores, share)) share = fmin(share + 0.01, 1);
    if (ret_unknown) *ret_unknown = share;
    ki_free(scores);
    return is_unlike;
}
