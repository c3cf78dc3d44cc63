/* Samplers: making batches, saving and restoring their place. */
#include "data/sampler/sampler.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static const ki_sampler_kind *const kinds[] = {
#define X(name) &ki_sampler_##name,
#include "data/sampler/table.def"
#undef X
};

static const char *const kind_names[] = {
#define X(name) #name,
#include "data/sampler/table.def"
#undef X
    NULL};

static const char *const small_names[] = {"repeat", "drop", NULL};

const ki_option ki_sampler_options[] = {
    KI_OPTION_CHOICE(ki_sampler_settings, sampler, 0, kind_names, "how batches are put together", "METHODS"),
    KI_OPTION_INT(ki_sampler_settings, classes, 64, 1, 1e6,
                  "balanced, weighted, hierarchical: classes per batch", "ECAML"),
    KI_OPTION_INT(ki_sampler_settings, images, 2, 1, 1e6, "the same: images per class", "ECAML"),
    KI_OPTION_INT(ki_sampler_settings, size, 100, 1, 1e6, "other samplers: images per batch", "JRD, DML-DA"),
    KI_OPTION_CHOICE(ki_sampler_settings, small, 0, small_names,
                     "the same: classes with fewer images than `images` repeat theirs or are left out",
                     "ours"),
    KI_OPTION_LATER(
        INT, ki_sampler_settings, buffer, 0, 0, 1e9,
        "shuffled: images that are mixed with each other, so that reads stay close together in tar "
        "files; 0: all",
        "WebDataset"),
    KI_OPTION_LATER(REAL, ki_sampler_settings, power, 1, 0, 2,
                    "weighted: a class is drawn by its images to the power of 1 less this; 0: by its images, "
                    "0.5: by their square root, 1: all classes alike",
                    "Kang et al. 2020"),
    KI_OPTION_LATER(INT, ki_sampler_settings, supers, 2, 1, 1e6,
                    "hierarchical: super-classes per batch, each with as many classes", "FastAP"),
    KI_OPTION_BOOL(ki_sampler_settings, partial, 0, "shuffled: also the incomplete last batch", "ours"),
    KI_OPTION_BOOL(ki_sampler_settings, cut, 0, "whole_classes: fill each batch by cutting its last class",
                   "ours"),
    KI_OPTION_LATER(INT, ki_sampler_settings, views, 1, 1, 64,
                    "every image is in its batch this many times, each with a random view of its own",
                    "ours"),
    KI_OPTION_LATER(BOOL, ki_sampler_settings, cached, 0,
                    "the network computes a batch in chunks, twice, and the objective sees all of it: for "
                    "batches larger than memory",
                    "Gao et al. 2021"),
    KI_OPTION_LATER(INT, ki_sampler_settings, chunk, 64, 1, 1e6, "cached: images computed at once", "ours"),
    KI_OPTION_END};

static int64_t views_of(const ki_sampler_settings *s) { return s->views > 1 ? s->views : 1; }

int64_t ki_sampler_batch_items(const ki_sampler_settings *s) {
    return kinds[s->sampler]->is_by_class ? s->classes * s->images : s->size;
}

int64_t ki_sampler_batch_size(const ki_sampler_settings *s) {
    return ki_sampler_batch_items(s) * views_of(s);
}

typedef struct labelled {
    int32_t label;
    int64_t position;
} labelled;

static int compare_labels(const void *a, const void *b) {
    const labelled *x = a, *y = b;
    if (x->label != y->label) return x->label < y->label ? -1 : 1;
    return x->position < y->position ? -1 : x->position > y->position;
}

/* Positions grouped by class, classes in order of their number. */
static kith_status group(ki_sampler *s, const int32_t *labels, kith_error *err) {
    kith_status status = KITH_OK;
    labelled *all = NULL;
    KI_CHECK(ki_alloc_or(&all, (size_t)s->n, sizeof *all, "labels", err));
    for (int64_t i = 0; i < s->n; i++) all[i] = (labelled){labels[i], i};
    qsort(all, (size_t)s->n, sizeof *all, compare_labels);
    for (int64_t i = 0; i < s->n; i++) s->n_classes += i == 0 || all[i].label != all[i - 1].label;
    KI_CHECK(ki_alloc_or(&s->class_begin, (size_t)s->n_classes + 1, sizeof *s->class_begin, "classes", err));
    KI_CHECK(ki_alloc_or(&s->member, (size_t)s->n, sizeof *s->member, "classes", err));
    int32_t c = -1;
    for (int64_t i = 0; i < s->n; i++) {
        if (i == 0 || all[i].label != all[i - 1].label) s->class_begin[++c] = i;
        s->member[i] = all[i].position;
    }
    s->class_begin[s->n_classes] = s->n;
done:
    ki_free(all);
    return status;
}

bool ki_sampler_is_by_class(const ki_sampler_settings *s) { return kinds[s->sampler]->is_by_class; }

kith_status ki_sampler_new(const ki_sampler_settings *settings, uint64_t seed, const int64_t *items,
                           const int32_t *labels, int64_t n, ki_sampler **ret_sampler, kith_error *err) {
    return ki_sampler_new_of(settings, seed, items, labels, NULL, n, ret_sampler, err);
}

kith_status ki_sampler_new_of(const ki_sampler_settings *settings, uint64_t seed, const int64_t *items,
                              const int32_t *labels, const int32_t *supers, int64_t n,
                              ki_sampler **ret_sampler, kith_error *err) {
    kith_status status = KITH_OK;
    ki_sampler *s = NULL;
    if (n < 1) return ki_fail(err, KITH_EINVAL, "there are no images to sample from");
    if (n > UINT32_MAX)
        return ki_fail(err, KITH_EINVAL, "%jd images; the most sampled from is %u", (intmax_t)n, UINT32_MAX);
    KI_CHECK(ki_zalloc_or(&s, 1, sizeof *s, "a sampler", err));
    s->settings = *settings;
    s->seed = seed;
    s->n = n;
    KI_CHECK(ki_alloc_or(&s->item, (size_t)n, sizeof *s->item, "a sampler's items", err));
    memcpy(s->item, items, (size_t)n * sizeof *items);
    KI_CHECK(group(s, labels, err));
    const ki_sampler_kind *kind = kinds[settings->sampler];
    if (kind->prepare) status = kind->prepare(s, labels, supers, err);
    if (status == KITH_OK && kind->check) status = kind->check(s, err);
    if (status != KITH_OK) {
        ki_prefix(err, status, "batch (%s)", kind->name);
        goto done;
    }
    *ret_sampler = s;
    s = NULL;
done:
    ki_sampler_free(s);
    return status;
}

void ki_sampler_free(ki_sampler *s) {
    if (!s) return;
    ki_free(s->item);
    ki_free(s->class_begin);
    ki_free(s->member);
    ki_sampler_plan_release(&s->plan);
    for (size_t p = 0; p < s->n_parts; p++) ki_sampler_free(s->part[p]);
    ki_free(s->part);
    ki_free(s->part_first);
    for (size_t p = 0; p < s->n_supers; p++) ki_sampler_free(s->super[p]);
    ki_free(s->super);
    ki_free(s);
}

void ki_sampler_plan_release(ki_sampler_plan *plan) {
    ki_free(plan->item);
    ki_free(plan->begin);
    *plan = (ki_sampler_plan){0};
}

int64_t ki_sampler_n_unlabelled(const ki_sampler *s) { return s->n_unlabelled * views_of(&s->settings); }

kith_status ki_sampler_plan_epoch(const ki_sampler *s, uint32_t epoch, ki_sampler_plan *plan,
                                  kith_error *err) {
    return kinds[s->settings.sampler]->plan(s, epoch, plan, err);
}

kith_status ki_sampler_plan_size(ki_sampler_plan *plan, int64_t n_items, int64_t n_batches, kith_error *err) {
    KI_TRY(ki_grow(&plan->item, &plan->item_capacity, (size_t)n_items, sizeof *plan->item, "an epoch", err));
    KI_TRY(ki_grow(&plan->begin, &plan->begin_capacity, (size_t)n_batches + 1, sizeof *plan->begin,
                   "an epoch", err));
    plan->n_batches = n_batches;
    plan->begin[0] = 0;
    return KITH_OK;
}

/* Every item as often as it has views: from the end, so that nothing is overwritten before it is read. */
static kith_status repeat_items(int64_t views, ki_sampler_plan *plan, kith_error *err) {
    const int64_t n = plan->begin[plan->n_batches];
    if (views == 1) return KITH_OK;
    if (n > INT64_MAX / views) return ki_fail_memory(err, SIZE_MAX, "an epoch");
    KI_TRY(
        ki_grow(&plan->item, &plan->item_capacity, (size_t)(n * views), sizeof *plan->item, "an epoch", err));
    for (int64_t i = n * views - 1; i >= 0; i--) plan->item[i] = plan->item[i / views];
    for (int64_t b = 0; b <= plan->n_batches; b++) plan->begin[b] *= views;
    return KITH_OK;
}

static kith_status ensure_plan(ki_sampler *s, kith_error *err) {
    if (s->is_planned) return KITH_OK;
    KI_TRY(s->n_parts ? ki_sampler_plan_mixed(s, s->epoch, &s->plan, err)
                      : ki_sampler_plan_epoch(s, s->epoch, &s->plan, err));
    if (s->plan.n_batches < 1)
        return ki_fail(err, KITH_EINVAL, "batch (%s): %jd images do not fill one batch of %jd",
                       kinds[s->settings.sampler]->name, (intmax_t)s->n,
                       (intmax_t)ki_sampler_batch_items(&s->settings));
    KI_TRY(repeat_items(views_of(&s->settings), &s->plan, err));
    for (int64_t i = 0; i < s->plan.begin[s->plan.n_batches]; i++) s->plan.item[i] = s->item[s->plan.item[i]];
    s->is_planned = true;
    return KITH_OK;
}

kith_status ki_sampler_n_batches(ki_sampler *s, int64_t *ret_n, kith_error *err) {
    KI_TRY(ensure_plan(s, err));
    *ret_n = s->plan.n_batches;
    return KITH_OK;
}

kith_status ki_sampler_next(ki_sampler *s, ki_sampler_batch *ret, kith_error *err) {
    if (s->is_planned && s->number == s->plan.n_batches) {
        s->epoch++;
        s->number = 0;
        s->is_planned = false;
    }
    KI_TRY(ensure_plan(s, err));
    const int64_t *begin = s->plan.begin + s->number;
    *ret = (ki_sampler_batch){.item = s->plan.item + begin[0],
                              .n = begin[1] - begin[0],
                              .epoch = s->epoch,
                              .number = s->number,
                              .first = begin[0]};
    s->number++;
    return KITH_OK;
}

ki_sampler_state ki_sampler_save(const ki_sampler *s) {
    if (s->is_planned && s->number == s->plan.n_batches)
        return (ki_sampler_state){.seed = s->seed, .epoch = s->epoch + 1, .number = 0};
    return (ki_sampler_state){.seed = s->seed, .epoch = s->epoch, .number = s->number};
}

kith_status ki_sampler_restore(ki_sampler *s, const ki_sampler_state *state, kith_error *err) {
    if (state->seed != s->seed)
        return ki_fail(err, KITH_EINVAL, "the saved batches belong to seed %ju; the seed is now %ju",
                       (uintmax_t)state->seed, (uintmax_t)s->seed);
    s->epoch = state->epoch;
    s->number = 0;
    s->is_planned = false;
    KI_TRY(ensure_plan(s, err));
    if (state->number < 0 || state->number >= s->plan.n_batches)
        return ki_fail(err, KITH_EINVAL, "the saved place is batch %jd of an epoch of %jd",
                       (intmax_t)state->number, (intmax_t)s->plan.n_batches);
    s->number = state->number;
    return KITH_OK;
}
