/* Whole classes until the batch is full, as density adaptivity needs on Stanford Online Products: the density
 * of a class is known only when all its images are in the batch.
 *
 * Classes come in a new order each epoch, their images shuffled. A class that no longer fits begins the next
 * batch, so batches vary in size and never exceed `size`. A class larger than a batch is split into batches
 * of its own. With `cut` every batch is full: the part of a class that fits fills the batch, the rest begins
 * the next batch, and what is left at the end of the epoch is not used. */
#include "base/alloc.h"
#include "base/rng.h"
#include "data/sampler/sampler.h"

static kith_status plan_epoch(const ki_sampler *s, uint32_t epoch, ki_sampler_plan *plan, kith_error *err) {
    const int64_t size = s->settings.size;
    int64_t *order = NULL;
    KI_TRY(ki_sampler_plan_size(plan, s->n, s->n, err));
    KI_TRY(ki_alloc_or(&order, (size_t)s->n_classes, sizeof *order, "an epoch", err));
    ki_rng rng = ki_rng_at(s->seed, KI_RNG_SAMPLER, epoch, 0);
    for (int32_t c = 0; c < s->n_classes; c++) order[c] = c;
    ki_rng_shuffle(&rng, order, s->n_classes);
    int64_t n_batches = 0, out = 0;
    for (int32_t i = 0; i < s->n_classes; i++) {
        const int64_t c = order[i], n = s->class_begin[c + 1] - s->class_begin[c];
        int64_t *const members = plan->item + out;
        for (int64_t j = 0; j < n; j++) members[j] = s->member[s->class_begin[c] + j];
        ki_rng own = ki_rng_at(s->seed, KI_RNG_SAMPLER, epoch, (uint32_t)c + 1);
        ki_rng_shuffle(&own, members, n);
        const int64_t in_batch = out - plan->begin[n_batches];
        if (!s->settings.cut && in_batch > 0 && in_batch + n > size) plan->begin[++n_batches] = out;
        out += n;
        while (out - plan->begin[n_batches] >= size) {
            plan->begin[n_batches + 1] = plan->begin[n_batches] + size;
            n_batches++;
        }
    }
    const bool has_rest = out > plan->begin[n_batches];
    if (has_rest && (!s->settings.cut || n_batches == 0)) plan->begin[++n_batches] = out;
    plan->n_batches = n_batches;
    ki_free(order);
    return KITH_OK;
}

const ki_sampler_kind ki_sampler_whole_classes = {
    .name = "whole_classes", .summary = "whole classes until the batch is full", .plan = plan_epoch};
