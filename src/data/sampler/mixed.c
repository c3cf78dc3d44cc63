/* Several data sets in one batch.
 *
 * Each set has a sampler of its own, which gives a fixed number of items to every batch. Batch b of an epoch of B batches takes the b-th
 * batch of each: a set whose own epoch is shorter begins another one, number e B + k for the k-th of epoch e. So the
 * batches of an epoch remain a function of the seed, the items and the epoch. */
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "data/sampler/sampler.h"

/* Names the streams that the sets' seeds are drawn from. */
enum { MIXED = 0x6d6978 };

/* How many of a number of units each set gets: as near to the weights as whole numbers come, at least one each. The
 * units that are left go to the largest remainders, to the first of equal ones. */
static void share_out(int64_t n_units, const double *weight, size_t n, int64_t *ret_units) {
    double sum = 0;
    int64_t left = n_units;
    for (size_t p = 0; p < n; p++) sum += weight[p];
    for (size_t p = 0; p < n; p++) {
        ret_units[p] = (int64_t)((double)n_units * weight[p] / sum);
        if (ret_units[p] < 1) ret_units[p] = 1;
        left -= ret_units[p];
    }
    while (left != 0) {
        size_t best = n;
        double most = 0;
        for (size_t p = 0; p < n; p++) {
            const double off = (double)n_units * weight[p] / sum - (double)ret_units[p];
            const double wish = left > 0 ? off : -off;
            if (left < 0 && ret_units[p] < 2) continue;
            if (best == n || wish > most) best = p, most = wish;
        }
        ret_units[best] += left > 0 ? 1 : -1;
        left += left > 0 ? -1 : 1;
    }
}

/* The places of each set in a batch, in items. */
typedef struct shares {
    int64_t *n;
    double *weight;
    size_t *order; /* sets with classes first */
    size_t n_labelled, n_parts;
} shares;

static double weight_of(const ki_sampler_part *part) {
    return part->weight > 0 ? part->weight : (double)part->n;
}

static kith_status fail_room(size_t n_sets, int64_t n_places, const char *what, kith_error *err) {
    ki_fail(err, KITH_EINVAL, "batch: %zu data sets share %lld %s; wanted one for each at least", n_sets,
            (long long)n_places, what);
    return ki_hint(err, KITH_EINVAL, "make the batch larger");
}

/* Sets with classes get whole classes of `images` items where the sampler is balanced. */
static kith_status share_places(const ki_sampler_settings *o, const ki_sampler_part *parts, shares *s,
                                kith_error *err) {
    const int64_t batch = ki_sampler_batch_items(o);
    const bool is_balanced = o->sampler == KI_SAMPLER_ROW_balanced;
    const int64_t unit = is_balanced ? o->images : 1, n_units = batch / unit;
    const size_t n_rest = s->n_parts - s->n_labelled;
    double of_labelled = 0, of_rest = 0;
    for (size_t k = 0; k < s->n_parts; k++) {
        s->weight[k] = weight_of(&parts[s->order[k]]);
        *(k < s->n_labelled ? &of_labelled : &of_rest) += s->weight[k];
    }
    int64_t labelled = s->n_labelled == 0 ? 0 : n_units;
    if (n_rest && s->n_labelled) {
        const double exact = (double)n_units * of_labelled / (of_labelled + of_rest);
        /* Of one class alone no pair can be made. */
        const int64_t least = s->n_labelled > 1 ? (int64_t)s->n_labelled : 2;
        labelled = (int64_t)(exact + 0.5);
        labelled = labelled < least ? least : labelled;
        while (labelled > 0 && batch - labelled * unit < (int64_t)n_rest) labelled--;
    }
    if (labelled < (int64_t)s->n_labelled || (n_rest && batch - labelled * unit < (int64_t)n_rest))
        return fail_room(s->n_parts, n_units, is_balanced ? "classes of a batch" : "images of a batch", err);
    if (s->n_labelled) share_out(labelled, s->weight, s->n_labelled, s->n);
    for (size_t k = 0; k < s->n_labelled; k++) s->n[k] *= unit;
    if (n_rest) share_out(batch - labelled * unit, s->weight + s->n_labelled, n_rest, s->n + s->n_labelled);
    return KITH_OK;
}

static kith_status make_part(ki_sampler *s, const ki_sampler_part *part, size_t number, int64_t n,
                             const int64_t *items, const int32_t *labels, kith_error *err) {
    ki_sampler_settings o = s->settings;
    ki_rng rng = ki_rng_at(s->seed, KI_RNG_SAMPLER, (uint32_t)number, MIXED);
    const uint64_t high = ki_rng_u32(&rng), seed = high << 32 | ki_rng_u32(&rng);
    if (part->has_classes && o.sampler == KI_SAMPLER_ROW_balanced) {
        o.classes = n / o.images;
    } else {
        o.sampler = KI_SAMPLER_ROW_shuffled;
        o.size = n;
        o.partial = false;
    }
    if (o.sampler == KI_SAMPLER_ROW_shuffled && part->n < n) {
        ki_fail(err, KITH_EINVAL, "data.%zu: %lld images; its part of every batch is %lld", number,
                (long long)part->n, (long long)n);
        return ki_hint(err, KITH_EINVAL, "give it a smaller weight, or make the batch smaller");
    }
    const kith_status status = ki_sampler_new(&o, seed, items + part->first, labels + part->first, part->n,
                                              &s->part[s->n_parts], err);
    if (status != KITH_OK) {
        ki_prefix(err, status, "data.%zu", number);
        return ki_hint(err, status, "give it a smaller weight, or make the batch smaller");
    }
    s->part_first[s->n_parts++] = part->first;
    return KITH_OK;
}

static kith_status make_parts(ki_sampler *s, const ki_sampler_part *parts, const shares *of,
                              const int64_t *items, const int32_t *labels, kith_error *err) {
    for (size_t k = 0; k < of->n_parts; k++) {
        KI_TRY(make_part(s, &parts[of->order[k]], of->order[k], of->n[k], items, labels, err));
        s->batch += of->n[k];
        if (k >= of->n_labelled) s->n_unlabelled += of->n[k];
    }
    return KITH_OK;
}

static kith_status check(const ki_sampler_settings *o, const ki_sampler_part *parts, size_t n,
                         kith_error *err) {
    if (o->sampler != KI_SAMPLER_ROW_balanced && o->sampler != KI_SAMPLER_ROW_shuffled) {
        ki_fail(err, KITH_EINVAL, "batch: this sampler takes one data set with classes, and data is not one");
        return ki_hint(err, KITH_EINVAL, "wanted batch.sampler: balanced or shuffled");
    }
    for (size_t p = 0; p < n; p++) {
        if (parts[p].n > 0) continue;
        ki_fail(err, KITH_EINVAL, "data.%zu has no image to train on", p);
        return ki_hint(err, KITH_EINVAL,
                       "leave the set out, or write test: false to train on its test classes");
    }
    return KITH_OK;
}

static void order_parts(const ki_sampler_part *parts, shares *s) {
    size_t at = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t p = 0; p < s->n_parts; p++) {
            if (parts[p].has_classes == (pass == 0)) s->order[at++] = p;
        }
        if (pass == 0) s->n_labelled = at;
    }
}

kith_status ki_sampler_new_mixed(const ki_sampler_settings *settings, uint64_t seed, const int64_t *items,
                                 const int32_t *labels, const ki_sampler_part *parts, size_t n_parts,
                                 ki_sampler **ret_sampler, kith_error *err) {
    kith_status status = KITH_OK;
    ki_sampler *s = NULL;
    shares of = {.n_parts = n_parts};
    KI_CHECK(check(settings, parts, n_parts, err));
    KI_CHECK(ki_zalloc_or(&s, 1, sizeof *s, "a sampler", err));
    s->settings = *settings;
    s->seed = seed;
    for (size_t p = 0; p < n_parts; p++) s->n += parts[p].n;
    KI_CHECK(ki_alloc_or(&s->item, (size_t)s->n, sizeof *s->item, "a sampler's items", err));
    memcpy(s->item, items, (size_t)s->n * sizeof *items);
    KI_CHECK(ki_zalloc_or(&s->part, n_parts, sizeof *s->part, "samplers", err));
    KI_CHECK(ki_zalloc_or(&s->part_first, n_parts, sizeof *s->part_first, "samplers", err));
    KI_CHECK(ki_zalloc_or(&of.n, n_parts, sizeof *of.n, "parts of a batch", err));
    KI_CHECK(ki_zalloc_or(&of.weight, n_parts, sizeof *of.weight, "weights", err));
    KI_CHECK(ki_zalloc_or(&of.order, n_parts, sizeof *of.order, "an order", err));
    order_parts(parts, &of);
    KI_CHECK(share_places(settings, parts, &of, err));
    KI_CHECK(make_parts(s, parts, &of, items, labels, err));
    *ret_sampler = s;
    s = NULL;
done:
    ki_free(of.n);
    ki_free(of.weight);
    ki_free(of.order);
    ki_sampler_free(s);
    return status;
}

/* The items of part p in all batches of the epoch, each at `at` of its batch. */
static kith_status plan_part(const ki_sampler *s, size_t p, uint32_t epoch, int64_t at, ki_sampler_plan *plan,
                             kith_error *err) {
    const ki_sampler *part = s->part[p];
    ki_sampler_plan own = {0};
    kith_status status = KITH_OK;
    int64_t batch = 0;
    for (uint32_t k = 0; batch < plan->n_batches; k++) {
        KI_CHECK(ki_sampler_plan_epoch(part, epoch * (uint32_t)plan->n_batches + k, &own, err));
        for (int64_t b = 0; b < own.n_batches && batch < plan->n_batches; b++, batch++) {
            int64_t *to = plan->item + batch * s->batch + at;
            for (int64_t i = own.begin[b]; i < own.begin[b + 1]; i++) *to++ = s->part_first[p] + own.item[i];
        }
    }
done:
    ki_sampler_plan_release(&own);
    return status;
}

kith_status ki_sampler_plan_mixed(const ki_sampler *s, uint32_t epoch, ki_sampler_plan *plan,
                                  kith_error *err) {
    const int64_t n_batches = s->n > s->batch ? s->n / s->batch : 1;
    int64_t at = 0;
    KI_TRY(ki_sampler_plan_size(plan, n_batches * s->batch, n_batches, err));
    for (size_t p = 0; p < s->n_parts; p++) {
        const ki_sampler *part = s->part[p];
        KI_TRY(plan_part(s, p, epoch, at, plan, err));
        at += ki_sampler_batch_items(&part->settings);
    }
    for (int64_t b = 1; b <= n_batches; b++) plan->begin[b] = b * s->batch;
    return KITH_OK;
}
