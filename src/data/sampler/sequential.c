/* The items in their order, the same in every epoch: for embedding and evaluation. */
#include "data/sampler/sampler.h"

static kith_status plan_epoch(const ki_sampler *s, uint32_t epoch, ki_sampler_plan *plan, kith_error *err) {
    (void)epoch;
    const int64_t size = s->settings.size, n_batches = (s->n + size - 1) / size;
    KI_TRY(ki_sampler_plan_size(plan, s->n, n_batches, err));
    for (int64_t i = 0; i < s->n; i++) plan->item[i] = i;
    for (int64_t b = 1; b <= n_batches; b++) plan->begin[b] = b * size < s->n ? b * size : s->n;
    return KITH_OK;
}

const ki_sampler_kind ki_sampler_sequential = {
    .name = "sequential", .summary = "all images in order, the last batch maybe smaller", .plan = plan_epoch};
