/* kith_image_reader: any images, in order, through a loader that goes through its list once. */
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "data/loader/loader.h"

struct kith_image_reader {
    kith_dataset *own; /* NULL when the data set is the caller's */
    const kith_dataset *set;
    int64_t n;
    ki_loader *loader;
    ki_loader_batch batch;
    const char **path; /* of the batch */
};

static kith_status start(kith_image_reader *reader, kith_split split, const kith_transform *transform,
                         const kith_image_reader_options *options, kith_error *err) {
    kith_status status = KITH_OK;
    int64_t *items = NULL;
    if (options->batch < 0 || options->n_workers < 0 || options->most_pixels < 0 || options->most_bad < -1)
        return ki_fail(
            err, KITH_EINVAL,
            "an image reader with batch %lld, n_workers %lld, most_pixels %lld, most_bad %lld; wanted 0 "
            "or more (most_bad: -1)",
            (long long)options->batch, (long long)options->n_workers, (long long)options->most_pixels,
            (long long)options->most_bad);
    if (reader->set->rows)
        return ki_fail(err, KITH_EUNSUPPORTED, "%s holds features; an image reader wants images",
                       reader->set->root);
    if (ki_transform_is_random(transform))
        return ki_fail(err, KITH_EINVAL, "the transform is random; wanted a centre crop without mirroring");
    KI_CHECK(ki_dataset_select(reader->set, split, &items, &reader->n, err));
    if (reader->n == 0) {
        status = ki_fail(err, KITH_EINVAL, "%s has no %s images", reader->set->root, kith_split_name(split));
        goto done;
    }
    int64_t batch = options->batch > 0 ? options->batch : 32;
    if (batch > reader->n) batch = reader->n;
    KI_CHECK(ki_alloc_or(&reader->path, (size_t)batch, sizeof *reader->path, "paths", err));
    const ki_loader_settings loading = {.transform = *transform,
                                        .n_workers = options->n_workers,
                                        .most_pixels = options->most_pixels,
                                        .most_bad = options->most_bad};
    status = ki_loader_new_once(reader->set, items, reader->n, batch, &loading, &reader->loader, err);
done:
    ki_free(items);
    return status;
}

KI_OPTIONS_INIT(kith_image_reader_options, .most_bad = -1)

kith_status kith_image_reader_new(const char *const *paths, int64_t n_paths, const kith_transform *transform,
                                  const kith_image_reader_options *options, kith_image_reader **ret_reader,
                                  kith_error *err) {
    KI_NEED(err, paths, ret_reader);
    kith_status status = KITH_OK;
    kith_image_reader *reader = NULL;
    KI_OPTIONS_TAKE(kith_transform, t, transform, err);
    KI_OPTIONS_TAKE(kith_image_reader_options, o, options, err);
    KI_CHECK(ki_zalloc_or(&reader, 1, sizeof *reader, "an image reader", err));
    KI_CHECK(kith_dataset_open_files(paths, n_paths, &reader->own, err));
    reader->set = reader->own;
    KI_CHECK(start(reader, KITH_SPLIT_ALL, &t, &o, err));
    *ret_reader = reader;
    reader = NULL;
done:
    kith_image_reader_free(reader);
    return status;
}

kith_status kith_image_reader_dataset(const kith_dataset *set, kith_split split,
                                      const kith_transform *transform,
                                      const kith_image_reader_options *options,
                                      kith_image_reader **ret_reader, kith_error *err) {
    KI_NEED(err, set, ret_reader);
    kith_status status = KITH_OK;
    kith_image_reader *reader = NULL;
    KI_OPTIONS_TAKE(kith_transform, t, transform, err);
    KI_OPTIONS_TAKE(kith_image_reader_options, o, options, err);
    KI_CHECK(ki_zalloc_or(&reader, 1, sizeof *reader, "an image reader", err));
    reader->set = set;
    KI_CHECK(start(reader, split, &t, &o, err));
    *ret_reader = reader;
    reader = NULL;
done:
    kith_image_reader_free(reader);
    return status;
}

void kith_image_reader_free(kith_image_reader *reader) {
    if (!reader) return;
    ki_loader_free(reader->loader);
    kith_dataset_free(reader->own);
    ki_free(reader->path);
    ki_free(reader);
}

int64_t kith_image_reader_count(const kith_image_reader *reader) {
    if (!reader) return 0;
    return reader->n;
}

kith_status kith_image_reader_next(kith_image_reader *reader, kith_image_batch *ret_batch, kith_error *err) {
    KI_NEED(err, reader, ret_batch);
    ki_loader_batch batch;
    KI_TRY(ki_loader_next(reader->loader, &batch, err));
    for (int64_t i = 0; i < batch.n; i++) reader->path[i] = reader->set->item[batch.item[i]].path;
    reader->batch = batch;
    *ret_batch =
        (kith_image_batch){.n = batch.n, .data = batch.data, .path = reader->path, .n_tried = batch.n_tried};
    return KITH_OK;
}

int64_t kith_image_reader_label(const kith_image_reader *reader, int64_t i) {
    return reader && i >= 0 && i < reader->batch.n ? reader->batch.label[i] : -1;
}

int64_t kith_image_reader_n_bad(const kith_image_reader *reader) {
    if (!reader) return 0;
    return ki_loader_n_bad(reader->loader);
}

const char *kith_image_reader_bad(const kith_image_reader *reader, int64_t i) {
    if (!reader || i < 0) return NULL;
    return ki_loader_bad(reader->loader, i);
}
