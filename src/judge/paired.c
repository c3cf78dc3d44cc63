/* The paired bootstrap (Efron 1979; two samples over the same units). */
#include "judge/paired.h"

#include <string.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/rng.h"

enum { MOST_RUNS = 256, MOST_SCORES = KITH_MOST_K + 2 };

typedef struct drawing {
    const ki_paired_input *in;
    int64_t n_queries, n_all; /* queries that are not lone; runs of both sides */
    float *value;             /* [n_queries, n_scores, n_all] */
    double *difference;       /* [n_scores, n_draws] */
} drawing;

/* What each run counts in this draw: those of the first side negative. */
static void draw_runs(const drawing *d, ki_rng *rng, double *weight) {
    memset(weight, 0, (size_t)d->n_all * sizeof *weight);
    for (int side = 0; side < 2; side++) {
        const int64_t n = d->in->n_runs[side], n_drawn = n > 1 ? n - 1 : 1;
        double *at = weight + (side ? d->in->n_runs[0] : 0);
        for (int64_t i = 0; i < n_drawn; i++)
            at[n > 1 ? ki_rng_below(rng, (uint32_t)n) : 0] += (side ? 1.0 : -1.0) / (double)n_drawn;
    }
}

static void draw(void *context, int64_t begin, int64_t end) {
    const drawing *d = context;
    const int64_t n_scores = d->in->n_scores;
    double weight[MOST_RUNS], sum[MOST_SCORES];
    for (int64_t b = begin; b < end; b++) {
        ki_rng rng = ki_rng_at(d->in->seed, KI_RNG_BOOTSTRAP, (uint32_t)b, 2);
        draw_runs(d, &rng, weight);
        memset(sum, 0, sizeof sum);
        for (int64_t i = 0; i < d->n_queries; i++) {
            const float *at = d->value + ki_rng_below(&rng, (uint32_t)d->n_queries) * n_scores * d->n_all;
            for (int64_t s = 0; s < n_scores; s++) {
                for (int64_t r = 0; r < d->n_all; r++) sum[s] += weight[r] * (double)at[s * d->n_all + r];
            }
        }
        for (int64_t s = 0; s < n_scores; s++)
            d->difference[s * d->in->n_draws + b] = sum[s] / (double)d->n_queries;
    }
}

static void fill(const ki_paired_input *in, drawing *d) {
    float *to = d->value;
    for (int64_t i = 0; i < in->run[0]->n; i++) {
        if (ki_per_query_is_lone(in->run[0], i)) continue;
        for (int64_t s = 0; s < in->n_scores; s++) {
            for (int64_t r = 0; r < d->n_all; r++) {
                const ki_per_query *q = r < in->n_runs[0] ? &in->run[0][r] : &in->run[1][r - in->n_runs[0]];
                *to++ = (float)ki_per_query_value(q, i, in->score[s]);
            }
        }
        d->n_queries++;
    }
}

kith_status ki_paired_bootstrap(const ki_paired_input *in, kith_interval *ret, kith_error *err) {
    kith_status status;
    drawing d = {.in = in, .n_all = in->n_runs[0] + in->n_runs[1]};
    if (d.n_all > MOST_RUNS || in->n_scores > MOST_SCORES)
        return ki_fail(err, KITH_EINVAL, "%lld runs and %lld scores; wanted at most %d and %d",
                       (long long)d.n_all, (long long)in->n_scores, MOST_RUNS, MOST_SCORES);
    KI_CHECK(ki_alloc_or(&d.value, (size_t)in->run[0]->n * (size_t)in->n_scores,
                         (size_t)d.n_all * sizeof *d.value, "outcomes of queries", err));
    KI_CHECK(ki_alloc_or(&d.difference, (size_t)in->n_scores * (size_t)in->n_draws, sizeof *d.difference,
                         "bootstrap means", err));
    fill(in, &d);
    ki_parallel_for(in->n_draws, 1, draw, &d);
    for (int64_t s = 0; s < in->n_scores; s++)
        ret[s] = ki_bootstrap_interval(d.difference + s * in->n_draws, in->n_draws, 0.95);
done:
    ki_free(d.value);
    ki_free(d.difference);
    return status;
}
