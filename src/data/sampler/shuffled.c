/* All images in a new order each epoch, cut into batches; the incomplete last one only on request.
 *
 * With `buffer`, images come in runs of neighbours, in random order; they go through a buffer of that many, and each place of a batch takes
 * any of them. So two batches that follow each other are read from few places of the disk, and the images of a run still come apart. */
#include "base/alloc.h"
#include "base/rng.h"
#include "data/sampler/sampler.h"

enum { RUNS = 8 }; /* that fill a buffer */

static void shuffle_all(const ki_sampler *s, ki_rng *rng, int64_t *item) {
    for (int64_t i = 0; i < s->n; i++) item[i] = i;
    ki_rng_shuffle(rng, item, s->n);
}

/* Runs, one behind the other, in random order. */
static kith_status order_runs(const ki_sampler *s, ki_rng *rng, int64_t *item, kith_error *err) {
    const int64_t length = s->settings.buffer > RUNS ? s->settings.buffer / RUNS : 1;
    const int64_t n_runs = (s->n + length - 1) / length;
    int64_t *run = NULL, out = 0;
    KI_TRY(ki_alloc_or(&run, (size_t)n_runs, sizeof *run, "an epoch", err));
    for (int64_t i = 0; i < n_runs; i++) run[i] = i;
    ki_rng_shuffle(rng, run, n_runs);
    for (int64_t i = 0; i < n_runs; i++) {
        const int64_t begin = run[i] * length, end = begin + length < s->n ? begin + length : s->n;
        for (int64_t k = begin; k < end; k++) item[out++] = k;
    }
    ki_free(run);
    return KITH_OK;
}

/* In place: the buffer is what lies before the next image that is not in it. What is drawn changes places with the buffer's first. */
static void draw(const ki_sampler *s, ki_rng *rng, int64_t *item) {
    for (int64_t i = 0; i < s->n; i++) {
        const int64_t left = s->n - i, n = left < s->settings.buffer ? left : s->settings.buffer;
        const int64_t k = i + ki_rng_below(rng, (uint32_t)n), drawn = item[k];
        item[k] = item[i];
        item[i] = drawn;
    }
}

static kith_status plan_epoch(const ki_sampler *s, uint32_t epoch, ki_sampler_plan *plan, kith_error *err) {
    const int64_t size = s->settings.size;
    const int64_t n_batches = s->settings.partial ? (s->n + size - 1) / size : s->n / size;
    KI_TRY(ki_sampler_plan_size(plan, s->n, n_batches, err));
    ki_rng rng = ki_rng_at(s->seed, KI_RNG_SAMPLER, epoch, 0);
    if (s->settings.buffer > 0 && s->settings.buffer < s->n) {
        KI_TRY(order_runs(s, &rng, plan->item, err));
        draw(s, &rng, plan->item);
    } else {
        shuffle_all(s, &rng, plan->item);
    }
    for (int64_t b = 1; b <= n_batches; b++) plan->begin[b] = b * size < s->n ? b * size : s->n;
    return KITH_OK;
}

const ki_sampler_kind ki_sampler_shuffled = {
    .name = "shuffled", .summary = "plain shuffled batches", .plan = plan_epoch};
