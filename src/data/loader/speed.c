/* How many images per second the loader delivers: once when it decodes everything, once from a warm cache. */

#include "base/alloc.h"
#include "base/argument.h"
#include "base/clock.h"
#include "base/parallel.h"
#include "data/loader/loader.h"

enum { BATCH = 64, LEAST_CACHED = 4096 };

typedef struct work {
    const kith_dataset *set;
    int64_t *items, n;
    int32_t *labels;
    ki_loader_settings settings;
} work;

static kith_status new_loader(const work *w, ki_loader **ret, kith_error *err) {
    ki_sampler_settings batches;
    ki_sampler *sampler = NULL;
    ki_options_default(ki_sampler_options, &batches);
    batches.sampler = KI_SAMPLER_ROW_shuffled;
    batches.size = w->n < BATCH ? w->n : BATCH;
    batches.partial = true;
    KI_TRY(ki_sampler_new(&batches, 1, w->items, w->labels, w->n, &sampler, err));
    return ki_loader_new(w->set, sampler, batches.size, &w->settings, ret, err);
}

/* Batches until `n` images have come; *ret_seconds may be NULL. */
static kith_status take(ki_loader *loader, int64_t n, double *ret_seconds, int64_t *ret_taken,
                        kith_error *err) {
    const double begin = ki_seconds_now();
    int64_t taken = 0;
    while (taken < n) {
        ki_loader_batch batch;
        KI_TRY(ki_loader_next(loader, &batch, err));
        if (batch.n == 0) break;
        taken += batch.n;
    }
    *ret_seconds = ki_seconds_now() - begin;
    *ret_taken = taken;
    return KITH_OK;
}

kith_status kith_data_speed_measure(const kith_dataset *set, kith_split split,
                                    const kith_transform *transform, int64_t n_workers, int64_t n_images,
                                    kith_data_speed *ret_speed, kith_error *err) {
    KI_NEED(err, set, ret_speed);
    KI_NEED_COUNT(err, n_workers);
    KI_NEED_COUNT(err, n_images);
    KI_OPTIONS_TAKE(kith_transform, t, transform, err);
    kith_status status = KITH_OK;
    ki_loader *loader = NULL;
    double seconds = 0;
    int64_t taken = 0;
    kith_data_speed out = {.n_workers = n_workers > 0 ? n_workers : ki_threads()};
    work w = {
        .set = set,
        .settings = {
            .transform = t, .bad = KI_BAD_REPLACE, .seed = 1, .n_workers = out.n_workers, .most_bad = -1}};
    KI_CHECK(ki_dataset_select(set, split, &w.items, &w.n, err));
    if (n_images > 0 && n_images < w.n) w.n = n_images;
    if (w.n == 0) {
        status = ki_fail(err, KITH_EINVAL, "%s has no %s images", set->root, kith_split_name(split));
        goto done;
    }
    KI_CHECK(ki_alloc_or(&w.labels, (size_t)w.n, sizeof *w.labels, "labels", err));
    for (int64_t i = 0; i < w.n; i++) w.labels[i] = set->item[w.items[i]].label;
    w.settings.n_epochs = 1;
    KI_CHECK(new_loader(&w, &loader, err));
    KI_CHECK(take(loader, w.n, &seconds, &taken, err));
    out.n_images = taken;
    out.decoded_per_second = (double)taken / seconds;
    ki_loader_free(loader);
    loader = NULL;
    w.settings.n_epochs = 0;
    w.settings.cache_bytes = SIZE_MAX / 2;
    KI_CHECK(new_loader(&w, &loader, err));
    KI_CHECK(take(loader, w.n + 4 * BATCH, &seconds, &taken, err)); /* past the batches made in advance */
    KI_CHECK(take(loader, w.n > LEAST_CACHED ? w.n : LEAST_CACHED, &seconds, &taken, err));
    out.cached_per_second = (double)taken / seconds;
    out.cache_bytes = ki_loader_stats_get(loader).cache_bytes;
    *ret_speed = out;
done:
    ki_loader_free(loader);
    ki_free(w.items);
    ki_free(w.labels);
    return status;
}
