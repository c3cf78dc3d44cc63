/* Classes x images, of classes that are drawn by chance: a class of n images with a weight of n^(1 - power), no class twice in a batch
 * (Kang et al., Decoupling Representation and Classifier for Long-Tailed Recognition, 2020, have 1 - power as q). With power 1 all classes
 * come alike often, with 0 in proportion to their images, with 0.5 by their square roots.
 *
 * An epoch has as many batches as the images fill, so small classes come several times in it and images of large ones perhaps not at all. The
 * images of a class are used in one shuffled order per epoch, round and round. */
#include <math.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "data/sampler/sampler.h"

/* Draws of classes that are in the batch already, before the weights of the others are added up. */
enum { MOST_MISSES = 32 };

typedef struct work {
    double *sum;           /* [n_classes + 1] of the weights before each class */
    bool *is_in;           /* the batch */
    int64_t *in_batch;     /* its classes */
    int64_t *perm, *drawn; /* members of each class, shuffled; images used so far */
} work;

static int64_t class_size(const ki_sampler *s, int64_t c) {
    return s->class_begin[c + 1] - s->class_begin[c];
}

static double weight_of(const ki_sampler *s, int64_t c) {
    const int64_t n = class_size(s, c);
    if (s->settings.small == KI_SMALL_DROP && n < s->settings.images) return 0;
    return pow((double)n, 1 - s->settings.power);
}

static kith_status check(const ki_sampler *s, kith_error *err) {
    int64_t n = 0;
    for (int64_t c = 0; c < s->n_classes; c++) n += weight_of(s, c) > 0;
    if (n >= s->settings.classes) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "%jd classes per batch asked of %jd%s", (intmax_t)s->settings.classes,
            (intmax_t)n, n < s->n_classes ? " (classes with too few images are left out)" : "");
    return ki_hint(err, KITH_EINVAL, "set batch.classes to at most %jd", (intmax_t)n);
}

/* The last class whose sum is not above x. */
static int64_t find(const ki_sampler *s, const work *w, double x) {
    int64_t low = 0, high = s->n_classes - 1;
    while (low < high) {
        const int64_t middle = low + (high - low + 1) / 2;
        if (w->sum[middle] <= x)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static bool may_take(const work *w, int64_t c) { return !w->is_in[c] && w->sum[c + 1] > w->sum[c]; }

/* By the weights of those that are not in the batch. */
static int64_t draw_rest(const ki_sampler *s, const work *w, double u) {
    double left = 0, at = 0;
    int64_t last = 0;
    for (int64_t c = 0; c < s->n_classes; c++) {
        if (may_take(w, c)) left += w->sum[c + 1] - w->sum[c];
    }
    for (int64_t c = 0; c < s->n_classes; c++) {
        if (!may_take(w, c)) continue;
        last = c;
        at += w->sum[c + 1] - w->sum[c];
        if (at > u * left) break;
    }
    return last;
}

static int64_t draw_class(const ki_sampler *s, const work *w, ki_rng *rng) {
    for (int i = 0; i < MOST_MISSES; i++) {
        const int64_t c = find(s, w, ki_rng_double(rng) * w->sum[s->n_classes]);
        if (may_take(w, c)) return c;
    }
    return draw_rest(s, w, ki_rng_double(rng));
}

static kith_status take_memory(const ki_sampler *s, work *w, kith_error *err) {
    const size_t n = (size_t)s->n_classes;
    KI_TRY(ki_alloc_or(&w->sum, n + 1, sizeof *w->sum, "an epoch", err));
    KI_TRY(ki_zalloc_or(&w->is_in, n, sizeof *w->is_in, "an epoch", err));
    KI_TRY(ki_alloc_or(&w->in_batch, (size_t)s->settings.classes, sizeof *w->in_batch, "an epoch", err));
    KI_TRY(ki_alloc_or(&w->perm, (size_t)s->n, sizeof *w->perm, "an epoch", err));
    return ki_zalloc_or(&w->drawn, n, sizeof *w->drawn, "an epoch", err);
}

static void begin_epoch(const ki_sampler *s, uint32_t epoch, work *w) {
    w->sum[0] = 0;
    for (int64_t c = 0; c < s->n_classes; c++) {
        int64_t *perm = w->perm + s->class_begin[c];
        for (int64_t i = 0; i < class_size(s, c); i++) perm[i] = s->member[s->class_begin[c] + i];
        ki_rng rng = ki_rng_at(s->seed, KI_RNG_SAMPLER, epoch, (uint32_t)c + 1);
        ki_rng_shuffle(&rng, perm, class_size(s, c));
        w->sum[c + 1] = w->sum[c] + weight_of(s, c);
    }
}

static kith_status plan_epoch(const ki_sampler *s, uint32_t epoch, ki_sampler_plan *plan, kith_error *err) {
    kith_status status = KITH_OK;
    work w = {0};
    const int64_t p = s->settings.classes, k = s->settings.images, n_batches = (s->n + p * k - 1) / (p * k);
    ki_rng rng = ki_rng_at(s->seed, KI_RNG_SAMPLER, epoch, 0);
    KI_CHECK(take_memory(s, &w, err));
    KI_CHECK(ki_sampler_plan_size(plan, n_batches * p * k, n_batches, err));
    begin_epoch(s, epoch, &w);
    int64_t *out = plan->item;
    for (int64_t b = 0; b < n_batches; b++) {
        for (int64_t i = 0; i < p; i++) {
            const int64_t c = w.in_batch[i] = draw_class(s, &w, &rng);
            w.is_in[c] = true;
            for (int64_t j = 0; j < k; j++)
                *out++ = w.perm[s->class_begin[c] + w.drawn[c]++ % class_size(s, c)];
        }
        for (int64_t i = 0; i < p; i++) w.is_in[w.in_batch[i]] = false;
        plan->begin[b + 1] = (b + 1) * p * k;
    }
done:
    ki_free(w.sum);
    ki_free(w.is_in);
    ki_free(w.in_batch);
    ki_free(w.perm);
    ki_free(w.drawn);
    return status;
}

const ki_sampler_kind ki_sampler_weighted = {
    .name = "weighted",
    .summary = "classes x images per batch, classes drawn by an inverse power of their size",
    .is_by_class = true,
    .check = check,
    .plan = plan_epoch,
};
