/* Classes x images: every batch has P different classes and K images of each.
 *
 * The images of a class are used in one shuffled order per epoch, again and again: no image comes a second
 * time before all have come once, and the K images of a group differ if the class has that many. A class of n
 * images takes part in ceil(n / K) batches, so an epoch shows every image of every class at least once; a
 * class smaller than K repeats its images within the group (small: repeat) or is left out (small: drop).
 *
 * With G groups in all, an epoch has B = max(ceil(G / P), largest number of groups of a class) batches; the
 * groups that are missing to B * P are distributed among the classes. Class by class, the groups are put into
 * batches 0, 1, … B-1, 0, 1, …, so that no batch gets a class twice (McNaughton's wrap-around rule). Random
 * exchanges that preserve this then mix the batches. */
#include "base/alloc.h"
#include "base/rng.h"
#include "data/sampler/sampler.h"

/* Exchanges tried per group: enough to make the classes of a batch independent of each other. */
enum { MIXING = 8 };

static int64_t class_size(const ki_sampler *s, int64_t c) {
    return s->class_begin[c + 1] - s->class_begin[c];
}

static bool takes_part(const ki_sampler *s, int64_t c) {
    return s->settings.small == KI_SMALL_REPEAT || class_size(s, c) >= s->settings.images;
}

static kith_status check(const ki_sampler *s, kith_error *err) {
    int64_t n = 0;
    for (int64_t c = 0; c < s->n_classes; c++) n += takes_part(s, c);
    if (n >= s->settings.classes) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "%jd classes per batch asked of %jd%s", (intmax_t)s->settings.classes,
            (intmax_t)n, n < s->n_classes ? " (classes with too few images are left out)" : "");
    return ki_hint(err, KITH_EINVAL, "set batch.classes to at most %jd", (intmax_t)n);
}

typedef struct work {
    int64_t *n_groups; /* per class */
    int64_t *order;    /* classes that take part, shuffled */
    int64_t n_order;
    int64_t *perm;  /* members of each class, shuffled; laid out as s->member */
    int64_t *drawn; /* per class: images used so far */
    int32_t *slot;  /* [B, P] classes */
    int64_t n_batches;
} work;

/* Groups per class, all together B * P. */
static kith_status count_groups(const ki_sampler *s, ki_rng *rng, work *w, kith_error *err) {
    const int64_t per_batch = s->settings.classes, k = s->settings.images;
    int64_t n_all = 0, largest = 0;
    for (int64_t c = 0; c < s->n_classes; c++) {
        if (!takes_part(s, c)) continue;
        w->order[w->n_order++] = c;
        w->n_groups[c] = (class_size(s, c) + k - 1) / k;
        n_all += w->n_groups[c];
        if (w->n_groups[c] > largest) largest = w->n_groups[c];
    }
    w->n_batches = (n_all + per_batch - 1) / per_batch;
    if (w->n_batches < largest) w->n_batches = largest;
    if (w->n_batches > INT32_MAX / per_batch)
        return ki_fail(err, KITH_EINVAL, "an epoch would have %jd batches of %jd classes",
                       (intmax_t)w->n_batches, (intmax_t)per_batch);
    ki_rng_shuffle(rng, w->order, w->n_order);
    int64_t missing = w->n_batches * per_batch - n_all;
    while (missing > 0) {
        for (int64_t i = 0; i < w->n_order && missing > 0; i++) {
            int64_t *n = &w->n_groups[w->order[i]];
            if (*n < w->n_batches) ++*n, missing--;
        }
    }
    return KITH_OK;
}

static void lay_out(const ki_sampler *s, work *w) {
    int64_t at = 0;
    for (int64_t i = 0; i < w->n_order; i++) {
        const int64_t c = w->order[i];
        for (int64_t g = 0; g < w->n_groups[c]; g++, at++) {
            const int64_t batch = at % w->n_batches, place = at / w->n_batches;
            w->slot[batch * s->settings.classes + place] = (int32_t)c;
        }
    }
}

static bool holds(const int32_t *batch, int64_t n, int32_t c) {
    int found = 0;
    for (int64_t i = 0; i < n; i++) found |= batch[i] == c;
    return found;
}

static void mix(const ki_sampler *s, ki_rng *rng, work *w) {
    const int64_t p = s->settings.classes, n = w->n_batches * p;
    if (w->n_batches < 2) return;
    for (int64_t i = 0; i < MIXING * n; i++) {
        const int64_t a = ki_rng_below(rng, (uint32_t)n), b = ki_rng_below(rng, (uint32_t)n);
        int32_t *batch_a = w->slot + a / p * p, *batch_b = w->slot + b / p * p;
        const int32_t class_a = w->slot[a], class_b = w->slot[b];
        if (batch_a == batch_b || class_a == class_b) continue;
        if (holds(batch_a, p, class_b) || holds(batch_b, p, class_a)) continue;
        w->slot[a] = class_b;
        w->slot[b] = class_a;
    }
}

static void shuffle_members(const ki_sampler *s, uint32_t epoch, work *w) {
    for (int64_t c = 0; c < s->n_classes; c++) {
        int64_t *perm = w->perm + s->class_begin[c];
        const int64_t n = class_size(s, c);
        for (int64_t i = 0; i < n; i++) perm[i] = s->member[s->class_begin[c] + i];
        ki_rng rng = ki_rng_at(s->seed, KI_RNG_SAMPLER, epoch, (uint32_t)c + 1);
        ki_rng_shuffle(&rng, perm, n);
    }
}

static void hand_out(const ki_sampler *s, work *w, ki_sampler_plan *plan) {
    const int64_t p = s->settings.classes, k = s->settings.images;
    int64_t *out = plan->item;
    for (int64_t b = 0; b < w->n_batches; b++) {
        for (int64_t i = 0; i < p; i++) {
            const int32_t c = w->slot[b * p + i];
            const int64_t *perm = w->perm + s->class_begin[c], n = class_size(s, c);
            for (int64_t j = 0; j < k; j++) *out++ = perm[w->drawn[c]++ % n];
        }
        plan->begin[b + 1] = (b + 1) * p * k;
    }
}

static kith_status plan_epoch(const ki_sampler *s, uint32_t epoch, ki_sampler_plan *plan, kith_error *err) {
    kith_status status = KITH_OK;
    work w = {0};
    const size_t n_classes = (size_t)s->n_classes;
    ki_rng rng = ki_rng_at(s->seed, KI_RNG_SAMPLER, epoch, 0);
    KI_CHECK(ki_zalloc_or(&w.n_groups, n_classes, sizeof *w.n_groups, "an epoch", err));
    KI_CHECK(ki_alloc_or(&w.order, n_classes, sizeof *w.order, "an epoch", err));
    KI_CHECK(ki_alloc_or(&w.perm, (size_t)s->n, sizeof *w.perm, "an epoch", err));
    KI_CHECK(ki_zalloc_or(&w.drawn, n_classes, sizeof *w.drawn, "an epoch", err));
    KI_CHECK(count_groups(s, &rng, &w, err));
    const int64_t n_slots = w.n_batches * s->settings.classes;
    KI_CHECK(ki_alloc_or(&w.slot, (size_t)n_slots, sizeof *w.slot, "an epoch", err));
    KI_CHECK(ki_sampler_plan_size(plan, n_slots * s->settings.images, w.n_batches, err));
    lay_out(s, &w);
    mix(s, &rng, &w);
    shuffle_members(s, epoch, &w);
    hand_out(s, &w, plan);
done:
    ki_free(w.n_groups);
    ki_free(w.order);
    ki_free(w.perm);
    ki_free(w.drawn);
    ki_free(w.slot);
    return status;
}

const ki_sampler_kind ki_sampler_balanced = {
    .name = "balanced",
    .summary = "classes x images per batch; an epoch shows every image of every class",
    .is_by_class = true,
    .check = check,
    .plan = plan_epoch,
};
