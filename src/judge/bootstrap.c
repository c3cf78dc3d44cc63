/* Percentile bootstrap (Efron 1979). The mean of every metric is taken over the same draws. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "judge/judge.h"

KI_OPTIONS_INIT(kith_bootstrap_options, .n_draws = 1000, .level = 0.95)

enum { N_PLAIN = 5 };

typedef struct drawing {
    int n_values; /* metrics: n_k + N_PLAIN */
    int64_t n_units;
    const double *sum;    /* [n_units, n_values] */
    const double *weight; /* [n_units]: queries in the unit */
    double *mean;         /* [n_values, n_draws] */
    int64_t n_draws;
    uint64_t seed;
} drawing;

static void draw(void *context, int64_t begin, int64_t end) {
    const drawing *d = context;
    double sum[KITH_MOST_K + N_PLAIN];
    for (int64_t b = begin; b < end; b++) {
        ki_rng rng = ki_rng_at(d->seed, KI_RNG_BOOTSTRAP, (uint32_t)b, 0);
        double weight = 0;
        memset(sum, 0, sizeof sum);
        for (int64_t i = 0; i < d->n_units; i++) {
            const int64_t u = ki_rng_below(&rng, (uint32_t)d->n_units);
            for (int v = 0; v < d->n_values; v++) sum[v] += d->sum[u * d->n_values + v];
            weight += d->weight[u];
        }
        for (int v = 0; v < d->n_values; v++) d->mean[v * d->n_draws + b] = sum[v] / weight;
    }
}

static int compare_double(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Linear between order statistics. */
static double quantile(const double *sorted, int64_t n, double part) {
    const double at = part * (double)(n - 1);
    const int64_t low = (int64_t)at;
    const int64_t high = low + 1 < n ? low + 1 : low;
    return sorted[low] + (at - (double)low) * (sorted[high] - sorted[low]);
}

kith_interval ki_bootstrap_interval(double *values, int64_t n, double level) {
    qsort(values, (size_t)n, sizeof *values, compare_double);
    return (kith_interval){quantile(values, n, (1 - level) / 2), quantile(values, n, (1 + level) / 2)};
}

kith_status ki_bootstrap_check(const kith_bootstrap_options *o, kith_error *err) {
    if (o->n_draws < 2 || o->n_draws > INT32_MAX)
        return ki_fail(err, KITH_EINVAL, "%lld bootstrap draws; wanted at least 2", (long long)o->n_draws);
    if (!(o->level > 0 && o->level < 1))
        return ki_fail(err, KITH_EINVAL, "level %g; wanted a number between 0 and 1", o->level);
    return KITH_OK;
}

/* Values of queries that are not lone, summed over the unit they belong to. */
static int64_t fill_units(const kith_retrieval *r, bool by_class, double *sum, double *weight) {
    const int n_values = (int)r->n_k + N_PLAIN;
    int64_t n_units = 0;
    for (int64_t i = 0; i < r->n_query; i++) {
        const kith_scores *s = r->query + i;
        if (isnan(s->mrr)) continue;
        int64_t u = n_units;
        if (by_class) {
            int64_t low = 0, high = r->n_classes - 1;
            while (low < high) {
                const int64_t mid = (low + high) / 2;
                if (r->per_class[mid].label < r->query_label[i])
                    low = mid + 1;
                else
                    high = mid;
            }
            u = low;
        } else {
            n_units++;
        }
        const double value[N_PLAIN] = {s->precision_at_1, s->r_precision, s->map_at_r, s->map, s->mrr};
        for (int v = 0; v < r->n_k; v++) sum[u * n_values + v] += s->recall[v];
        for (int v = 0; v < N_PLAIN; v++) sum[u * n_values + r->n_k + v] += value[v];
        weight[u] += 1;
    }
    if (!by_class) return n_units;
    for (int64_t c = 0; c < r->n_classes; c++) { /* classes without queries are no units */
        if (weight[c] == 0) continue;
        memmove(sum + n_units * n_values, sum + c * n_values, (size_t)n_values * sizeof *sum);
        weight[n_units++] = weight[c];
    }
    return n_units;
}

kith_status kith_retrieval_bootstrap(const kith_retrieval *r, const kith_bootstrap_options *options,
                                     kith_intervals *ret_intervals, kith_error *err) {
    KI_NEED(err, r, ret_intervals);
    kith_status status = KITH_OK;
    KI_OPTIONS_TAKE(kith_bootstrap_options, o, options, err);
    KI_TRY(ki_bootstrap_check(&o, err));
    double *sum = NULL, *weight = NULL, *mean = NULL;
    const int n_values = (int)r->n_k + N_PLAIN;
    const size_t units = (size_t)(o.by_class ? r->n_classes : r->n_query);
    KI_CHECK(ki_zalloc_or(&sum, units, (size_t)n_values * sizeof *sum, "bootstrap values", err));
    KI_CHECK(ki_zalloc_or(&weight, units, sizeof *weight, "bootstrap weights", err));
    KI_CHECK(ki_alloc_or(&mean, (size_t)n_values * (size_t)o.n_draws, sizeof *mean, "bootstrap means", err));
    drawing d = {n_values, 0, sum, weight, mean, o.n_draws, o.seed};
    d.n_units = fill_units(r, o.by_class, sum, weight);
    ki_parallel_for(o.n_draws, 1, draw, &d);
    kith_interval found[KITH_MOST_K + N_PLAIN];
    for (int v = 0; v < n_values; v++) {
        found[v] = ki_bootstrap_interval(mean + v * o.n_draws, o.n_draws, o.level);
    }
    memset(ret_intervals, 0, sizeof *ret_intervals);
    memcpy(ret_intervals->recall, found, (size_t)r->n_k * sizeof *found);
    kith_interval *const plain[N_PLAIN] = {&ret_intervals->precision_at_1, &ret_intervals->r_precision,
                                           &ret_intervals->map_at_r, &ret_intervals->map,
                                           &ret_intervals->mrr};
    for (int v = 0; v < N_PLAIN; v++) *plain[v] = found[r->n_k + v];
done:
    ki_free(sum);
    ki_free(weight);
    ki_free(mean);
    return status;
}
