/* All images in a new order each epoch, cut into batches; the incomplete last one only on request. */
#include "base/rng.h"
#include "data/sampler/sampler.h"

static kith_status plan_epoch(const ki_sampler *s, uint32_t epoch, ki_sampler_plan *plan, kith_error *err) {
    const int64_t size = s->settings.size;
    const int64_t n_batches = s->settings.partial ? (s->n + size - 1) / size : s->n / size;
    KI_TRY(ki_sampler_plan_size(plan, s->n, n_batches, err));
    for (int64_t i = 0; i < s->n; i++) plan->item[i] = i;
    ki_rng rng = ki_rng_at(s->seed, KI_RNG_SAMPLER, epoch, 0);
    ki_rng_shuffle(&rng, plan->item, s->n);
    for (int64_t b = 1; b <= n_batches; b++) plan->begin[b] = b * size < s->n ? b * size : s->n;
    return KITH_OK;
}

const ki_sampler_kind ki_sampler_shuffled = {
    .name = "shuffled", .summary = "plain shuffled batches", .plan = plan_epoch};
