/* Batches from few super-classes: classes of one super-class (all chairs, all lamps) are alike, and so harder to tell apart than classes
 * drawn from everywhere (Cakir et al., Deep Metric Learning to Rank, 2019, take two categories of Stanford Online Products for a batch).
 *
 * A batch has `supers` super-classes, each with classes / supers of its classes, and `images` of each. Within a super-class balanced.c says
 * which classes and images come together, so an epoch shows every image of every class. An epoch has as many batches as the largest
 * super-class needs, or all of them together; one that has nothing left gives parts of batches that it gave before.
 * Super-classes with too few classes are joined, in order of their numbers. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "data/sampler/sampler.h"

typedef struct work {
    ki_sampler_plan *plan; /* of each super-class; its batches are parts of batches */
    int64_t *n_left;       /* parts that have not come */
    bool *is_in;           /* the batch */
} work;

/* ---- super-classes ---- */

static int64_t classes_of_one(const ki_sampler *s) { return s->settings.classes / s->settings.supers; }

/* The super-class of a class, as its first image has it. */
static int32_t super_of(const ki_sampler *s, const int32_t *supers, int64_t c) {
    return supers[s->member[s->class_begin[c]]];
}

typedef struct numbered {
    int32_t super;
    int64_t class_;
} numbered;

static int compare(const void *a, const void *b) {
    const numbered *x = a, *y = b;
    if (x->super != y->super) return x->super < y->super ? -1 : 1;
    return (x->class_ > y->class_) - (x->class_ < y->class_);
}

static bool takes_part(const ki_sampler *s, int64_t c) {
    return s->settings.small == KI_SMALL_REPEAT ||
           s->class_begin[c + 1] - s->class_begin[c] >= s->settings.images;
}

/* A balanced sampler of these classes. */
static kith_status add_super(ki_sampler *s, const numbered *classes, int64_t n, kith_error *err) {
    kith_status status = KITH_OK;
    ki_sampler_settings o = s->settings;
    int64_t *position = NULL, n_items = 0;
    int32_t *label = NULL;
    o.sampler = KI_SAMPLER_ROW_balanced;
    o.classes = classes_of_one(s);
    ki_rng rng = ki_rng_at(s->seed, KI_RNG_SAMPLER, (uint32_t)s->n_supers, UINT32_MAX);
    const uint64_t high = ki_rng_u32(&rng), seed = high << 32 | ki_rng_u32(&rng);
    KI_CHECK(ki_alloc_or(&position, (size_t)s->n, sizeof *position, "super-classes", err));
    KI_CHECK(ki_alloc_or(&label, (size_t)s->n, sizeof *label, "super-classes", err));
    for (int64_t i = 0; i < n; i++) {
        const int64_t c = classes[i].class_;
        for (int64_t k = s->class_begin[c]; k < s->class_begin[c + 1]; k++) {
            label[n_items] = (int32_t)c;
            position[n_items++] = s->member[k];
        }
    }
    KI_CHECK(ki_sampler_new(&o, seed, position, label, n_items, &s->super[s->n_supers], err));
    s->n_supers++;
done:
    ki_free(position);
    ki_free(label);
    return status;
}

static bool is_end_of_super(const numbered *all, int64_t n, int64_t i) {
    return i + 1 == n || all[i + 1].super != all[i].super || all[i].super < 0;
}

/* Those that follow each other and have too few classes become one; what is left at the end goes to the one before. */
static kith_status add_supers(ki_sampler *s, const numbered *all, int64_t n, kith_error *err) {
    const int64_t least = classes_of_one(s);
    int64_t begin = 0, n_able = 0, last = -1;
    for (int64_t i = 0; i < n; i++) {
        n_able += takes_part(s, all[i].class_);
        if (!is_end_of_super(all, n, i) || n_able < least) continue;
        if (last >= 0) KI_TRY(add_super(s, all + last, begin - last, err));
        last = begin;
        begin = i + 1;
        n_able = 0;
    }
    return last >= 0 ? add_super(s, all + last, n - last, err) : KITH_OK;
}

static kith_status prepare(ki_sampler *s, const int32_t *labels, const int32_t *supers, kith_error *err) {
    (void)labels;
    numbered *all = NULL;
    if (!supers) {
        ki_fail(err, KITH_EINVAL, "the data has no super-classes");
        return ki_hint(err, KITH_EINVAL,
                       "wanted a set that has them (sop, omniglot), or a manifest with a column superclass");
    }
    if (s->settings.classes % s->settings.supers)
        return ki_fail(err, KITH_EINVAL,
                       "%jd classes from %jd super-classes per batch; wanted as many from each",
                       (intmax_t)s->settings.classes, (intmax_t)s->settings.supers);
    KI_TRY(ki_alloc_or(&all, (size_t)s->n_classes, sizeof *all, "super-classes", err));
    kith_status status =
        ki_zalloc_or(&s->super, (size_t)s->n_classes, sizeof(ki_sampler *), "super-classes", err);
    for (int64_t c = 0; c < s->n_classes; c++) all[c] = (numbered){super_of(s, supers, c), c};
    qsort(all, (size_t)s->n_classes, sizeof *all, compare);
    if (status == KITH_OK) status = add_supers(s, all, s->n_classes, err);
    ki_free(all);
    return status;
}

static kith_status check(const ki_sampler *s, kith_error *err) {
    if ((int64_t)s->n_supers >= s->settings.supers) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "%jd super-classes per batch asked of %zu that have %jd classes",
            (intmax_t)s->settings.supers, s->n_supers, (intmax_t)classes_of_one(s));
    return ki_hint(err, KITH_EINVAL, "set batch.classes or batch.supers lower");
}

/* ---- an epoch ---- */

/* One of those that are not in the batch, by the parts they have left; those that must come now, come. */
static int64_t choose(const ki_sampler *s, const work *w, int64_t batches_left, ki_rng *rng) {
    int64_t n_left = 0, n_other = 0;
    for (size_t p = 0; p < s->n_supers; p++) {
        if (w->is_in[p]) continue;
        if (w->n_left[p] >= batches_left) return (int64_t)p;
        n_left += w->n_left[p];
        n_other++;
    }
    int64_t at = ki_rng_below(rng, (uint32_t)(n_left ? n_left : n_other));
    for (size_t p = 0; p < s->n_supers; p++) {
        if (w->is_in[p]) continue;
        at -= n_left ? w->n_left[p] : 1;
        if (at < 0) return (int64_t)p;
    }
    return 0;
}

/* The next part of super-class p; one that came before, by chance, where none is left. */
static int64_t *put_part(const ki_sampler *s, work *w, int64_t p, ki_rng *rng, int64_t *out) {
    const ki_sampler_plan *plan = &w->plan[p];
    const int64_t b =
        w->n_left[p] > 0 ? plan->n_batches - w->n_left[p]-- : ki_rng_below(rng, (uint32_t)plan->n_batches);
    for (int64_t i = plan->begin[b]; i < plan->begin[b + 1]; i++) *out++ = s->super[p]->item[plan->item[i]];
    return out;
}

static int64_t count_batches(const ki_sampler *s, const work *w) {
    int64_t n = 0, most = 0;
    for (size_t p = 0; p < s->n_supers; p++) {
        n += w->n_left[p];
        if (w->n_left[p] > most) most = w->n_left[p];
    }
    n = (n + s->settings.supers - 1) / s->settings.supers;
    return n > most ? n : most;
}

static kith_status plan_epoch(const ki_sampler *s, uint32_t epoch, ki_sampler_plan *plan, kith_error *err) {
    kith_status status = KITH_OK;
    work w = {0};
    const int64_t size = ki_sampler_batch_size(&s->settings);
    ki_rng rng = ki_rng_at(s->seed, KI_RNG_SAMPLER, epoch, 0);
    KI_CHECK(ki_zalloc_or(&w.plan, s->n_supers, sizeof *w.plan, "an epoch", err));
    KI_CHECK(ki_zalloc_or(&w.n_left, s->n_supers, sizeof *w.n_left, "an epoch", err));
    KI_CHECK(ki_zalloc_or(&w.is_in, s->n_supers, sizeof *w.is_in, "an epoch", err));
    for (size_t p = 0; p < s->n_supers; p++) {
        KI_CHECK(ki_sampler_plan_epoch(s->super[p], epoch, &w.plan[p], err));
        w.n_left[p] = w.plan[p].n_batches;
    }
    const int64_t n_batches = count_batches(s, &w);
    KI_CHECK(ki_sampler_plan_size(plan, n_batches * size, n_batches, err));
    int64_t *out = plan->item;
    for (int64_t b = 0; b < n_batches; b++) {
        for (size_t p = 0; p < s->n_supers; p++) w.is_in[p] = false;
        for (int64_t i = 0; i < s->settings.supers; i++) {
            const int64_t p = choose(s, &w, n_batches - b, &rng);
            w.is_in[p] = true;
            out = put_part(s, &w, p, &rng, out);
        }
        plan->begin[b + 1] = (b + 1) * size;
    }
done:
    for (size_t p = 0; w.plan && p < s->n_supers; p++) ki_sampler_plan_release(&w.plan[p]);
    ki_free(w.plan);
    ki_free(w.n_left);
    ki_free(w.is_in);
    return status;
}

const ki_sampler_kind ki_sampler_hierarchical = {
    .name = "hierarchical",
    .summary = "classes x images per batch, from few super-classes, whose classes are alike",
    .is_by_class = true,
    .prepare = prepare,
    .check = check,
    .plan = plan_epoch,
};
