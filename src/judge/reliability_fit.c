/* From score, rank and margin to one number, by logistic regression over the hits of the trials.
 *
 *     evidence = w . x,   P(right) = 1 / (1 + exp(-b - evidence)),   w >= 0
 *
 * Only the order of the evidence counts later: rates are those of hits that have as much of it. Newton's method with a little
 * ridge, because good vectors separate right from wrong perfectly. A weight that comes out below 0 is set to 0, and the others
 * are fitted again. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "judge/reliability.h"

enum { N_X = KI_RELIABILITY_FEATURES, N_B = N_X + 1, MOST_ITERATIONS = 30 };

static const double ridge = 1e-4;

void ki_reliability_margins(kith_metric metric, const double *score, const int64_t *label, int64_t n,
                            int64_t depth, double *ret_margin) {
    const double sign = metric == KITH_SQEUCLIDEAN ? -1 : 1;
    const int64_t n_seen = n < depth ? n : depth;
    int64_t first = 0, second;
    while (first < n_seen && label[first] < 0) first++;
    second = first + 1;
    while (second < n_seen && (label[second] < 0 || label[second] == label[first])) second++;
    if (second >= n_seen) second = n_seen - 1; /* none in sight: it scores no better than the last */
    for (int64_t i = 0; i < n; i++) {
        const bool is_first = first >= n_seen || label[i] == label[first];
        ret_margin[i] = sign * (score[i] - score[is_first ? second : first]);
    }
}

/* ---- hits of trials ---- */

static void add_list(const ki_trials *t, int64_t query, bool is_absent, ki_counted_hit *to, int64_t *n) {
    double score[KI_TRIALS_MOST_K] = {0}, margin[KI_TRIALS_MOST_K];
    int64_t label[KI_TRIALS_MOST_K] = {0}, n_list = 0;
    const ki_trial_hit *list = (is_absent ? t->without : t->with) + query * t->k;
    for (; n_list < t->k && list[n_list].row >= 0; n_list++) {
        score[n_list] = (double)list[n_list].score;
        label[n_list] = t->label[list[n_list].row];
    }
    ki_reliability_margins(t->metric, score, label, n_list, t->k, margin);
    for (int64_t i = 0; i < n_list; i++) {
        double x[N_X];
        ki_counted_hit *hit = &to[(*n)++];
        ki_reliability_features(t->metric, score[i], i + 1, margin[i], x);
        for (int f = 0; f < N_X; f++) hit->x[f] = (float)x[f];
        hit->label = (int32_t)t->label[query];
        hit->query = (int32_t)query;
        hit->kind = is_absent ? KI_HIT_ABSENT : label[i] == t->label[query] ? KI_HIT_RIGHT : KI_HIT_WRONG;
    }
}

kith_status ki_reliability_hits(const ki_trials *t, ki_counted_hit **ret_hits, int64_t *ret_n,
                                int64_t *ret_n_present, kith_error *err) {
    ki_counted_hit *hits = NULL;
    int64_t *n_rows = NULL, n = 0, n_present = 0;
    KI_TRY(ki_zalloc_or(&n_rows, (size_t)t->n_labels, sizeof *n_rows, "labels", err));
    const kith_status status =
        ki_alloc_or(&hits, 2 * (size_t)t->n, (size_t)t->k * sizeof *hits, "hits of trials", err);
    for (int64_t i = 0; i < t->n_rows; i++) n_rows[t->label[i]]++;
    for (int64_t i = 0; status == KITH_OK && i < t->n; i++) {
        if (n_rows[t->label[i]] > 1) {
            add_list(t, i, false, hits, &n);
            n_present++;
        }
        add_list(t, i, true, hits, &n);
    }
    ki_free(n_rows);
    if (status != KITH_OK) return status;
    *ret_hits = hits;
    *ret_n = n;
    *ret_n_present = n_present;
    return KITH_OK;
}

/* ---- the fit ---- */

typedef struct fit {
    const ki_counted_hit *hits;
    int64_t n;
    double share[3]; /* weight of a hit of each kind */
    double mean[N_X], scale[N_X];
    bool is_out[N_X];
} fit;

static double share_of(const fit *f, int64_t i) { return f->share[f->hits[i].kind]; }

static void standardise(fit *f) {
    double all = 0, sum[N_X] = {0}, squares[N_X] = {0};
    for (int64_t i = 0; i < f->n; i++) {
        const double share = share_of(f, i);
        all += share;
        for (int d = 0; d < N_X; d++) sum[d] += share * (double)f->hits[i].x[d];
    }
    for (int d = 0; d < N_X; d++) f->mean[d] = all > 0 ? sum[d] / all : 0;
    for (int64_t i = 0; i < f->n; i++) {
        for (int d = 0; d < N_X; d++) {
            const double off = (double)f->hits[i].x[d] - f->mean[d];
            squares[d] += share_of(f, i) * off * off;
        }
    }
    for (int d = 0; d < N_X; d++) {
        f->scale[d] = all > 0 ? sqrt(squares[d] / all) : 0;
        f->is_out[d] = !(f->scale[d] > 1e-12);
    }
}

/* Solve a x = b for a positive definite matrix, in place: Cholesky. */
static void solve(double a[N_B][N_B], double b[N_B]) {
    for (int i = 0; i < N_B; i++) {
        for (int j = 0; j <= i; j++) {
            double sum = a[i][j];
            for (int k = 0; k < j; k++) sum -= a[i][k] * a[j][k];
            a[i][j] = i == j ? sqrt(sum > 1e-30 ? sum : 1e-30) : sum / a[j][j];
        }
    }
    for (int i = 0; i < N_B; i++) {
        for (int k = 0; k < i; k++) b[i] -= a[i][k] * b[k];
        b[i] /= a[i][i];
    }
    for (int i = N_B - 1; i >= 0; i--) {
        for (int k = i + 1; k < N_B; k++) b[i] -= a[k][i] * b[k];
        b[i] /= a[i][i];
    }
}

static double linear(const fit *f, const double beta[N_B], int64_t i, double x[N_B]) {
    double sum = beta[0];
    x[0] = 1;
    for (int d = 0; d < N_X; d++) {
        x[d + 1] = f->is_out[d] ? 0 : ((double)f->hits[i].x[d] - f->mean[d]) / f->scale[d];
        sum += beta[d + 1] * x[d + 1];
    }
    return sum;
}

/* One step of Newton; returns how far it went. */
static double step(const fit *f, double beta[N_B]) {
    double hessian[N_B][N_B] = {{0}}, gradient[N_B] = {0}, all = 0, most = 0;
    for (int64_t i = 0; i < f->n; i++) {
        double x[N_B];
        const double share = share_of(f, i), p = 1 / (1 + exp(-linear(f, beta, i, x)));
        const double miss = (f->hits[i].kind == KI_HIT_RIGHT) - p, curve = p * (1 - p);
        all += share;
        for (int a = 0; a < N_B; a++) {
            gradient[a] += share * miss * x[a];
            for (int b = 0; b <= a; b++) hessian[a][b] += share * curve * x[a] * x[b];
        }
    }
    for (int a = 0; a < N_B; a++) {
        hessian[a][a] += ridge * all;
        gradient[a] -= ridge * all * beta[a];
    }
    solve(hessian, gradient);
    for (int a = 0; a < N_B; a++) most = fmax(most, fabs(gradient[a]));
    const double damp = most > 2 ? 2 / most : 1;
    for (int a = 0; a < N_B; a++) beta[a] += damp * gradient[a];
    return most;
}

void ki_reliability_fit(ki_counted_hit *hits, int64_t n, double n_present, double n_absent,
                        double ret_weight[N_X]) {
    double beta[N_B] = {0};
    fit f = {.hits = hits, .n = n};
    f.share[KI_HIT_RIGHT] = f.share[KI_HIT_WRONG] = (1 - KITH_UNKNOWN_DEFAULT) / n_present;
    f.share[KI_HIT_ABSENT] = KITH_UNKNOWN_DEFAULT / n_absent;
    standardise(&f);
    for (bool is_signed = false; !is_signed;) {
        memset(beta, 0, sizeof beta);
        for (int i = 0; i < MOST_ITERATIONS && step(&f, beta) > 1e-8; i++) continue;
        int worst = -1;
        for (int d = 0; d < N_X; d++) {
            if (!f.is_out[d] && beta[d + 1] < 0 && (worst < 0 || beta[d + 1] < beta[worst + 1])) worst = d;
        }
        is_signed = worst < 0;
        if (!is_signed) f.is_out[worst] = true;
    }
    for (int d = 0; d < N_X; d++) ret_weight[d] = f.is_out[d] ? 0 : beta[d + 1] / f.scale[d];
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int d = 0; d < N_X; d++) sum += ret_weight[d] * (double)hits[i].x[d];
        hits[i].evidence = (float)sum;
    }
}
