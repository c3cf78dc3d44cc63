/* Images to vectors: kith_model's way to the embedder (embed/embedder.h) that has its tap planned. */
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "embed/preprocess.h"
#include "embed/views.h"
#include "model/handle.h"

KI_OPTIONS_INIT(kith_embed_options, 0)

const char *kith_model_tap(const kith_model *model, const kith_embed_options *options) {
    if (!model) return NULL;
    KITH_OPTIONS(kith_embed_options, o);
    if (ki_options_take(options, &o, sizeof o, "kith_embed_options", NULL) != KITH_OK) return NULL;
    return ki_preprocess_tap(&model->net, o.tap ? o.tap : model->options.tap);
}

kith_status ki_model_tap_count(const kith_model *model, const char *tap, int64_t *ret_n, kith_error *err) {
    int n_dims = 0;
    int64_t dim[KITH_MAX_DIMS];
    KI_TRY(kith_model_tap_shape(model, tap, &n_dims, dim, err));
    *ret_n = 1;
    for (int i = 0; i < n_dims; i++) *ret_n *= dim[i];
    return KITH_OK;
}

kith_status ki_model_n_views(const kith_model *model, const char *tap, const kith_embed_options *o,
                             int64_t *ret_n, kith_error *err) {
    kith_transform transform;
    int n_dims = 0;
    int64_t dim[KITH_MAX_DIMS];
    *ret_n = 1;
    if (model->options.views <= 1 || ki_net_takes_vectors(&model->net)) return KITH_OK;
    KI_TRY(kith_model_tap_shape(model, tap, &n_dims, dim, err));
    if (n_dims != 1)
        return ki_fail(err, KITH_EUNSUPPORTED, "%lld views, and %s is no vector; wanted one view of it",
                       (long long)model->options.views, tap);
    KI_TRY(ki_preprocess_transform(&model->net, ki_model_resize(model, o), &transform, err));
    *ret_n = model->options.views;
    return ki_views_check(*ret_n, &transform, err);
}

/* At most one batch at a time. */
static int64_t batch_for(const kith_model *model, int64_t n) {
    return n < model->most_batch ? n : model->most_batch;
}

kith_status kith_model_embed_floats(kith_model *model, const float *images, int64_t n, const char *tap,
                                    float *ret_values, kith_error *err) {
    KI_NEED(err, model, images, tap, ret_values);
    KI_NEED_COUNT(err, n);
    int64_t n_each = 0;
    ki_embedder *embedder = NULL;
    KI_TRY(ki_model_tap_count(model, tap, &n_each, err));
    if (n == 0) return KITH_OK;
    KI_TRY(ki_model_plan_get(model, KI_PLAN_FLOATS, tap, batch_for(model, n), NULL, &embedder, err));
    return ki_embedder_floats(embedder, images, n, tap, ret_values, err);
}

/* ---- items of a data set ---- */

kith_status ki_model_embed_set(kith_model *model, const kith_dataset *set, const int64_t *items, int64_t n,
                               const kith_embed_options *o, int64_t most_bad, bool on_host,
                               ki_embedder **ret_embedder, ki_vectors *ret, kith_error *err) {
    const ki_embed_request request = {.set = set,
                                      .items = items,
                                      .n = n,
                                      .tap = kith_model_tap(model, o),
                                      .on_host = on_host,
                                      .most_bad = most_bad,
                                      .most_pixels = o->most_pixels,
                                      .progress = o->progress,
                                      .user = o->user};
    int64_t n_views = 1;
    KI_TRY(ki_model_n_views(model, request.tap, o, &n_views, err));
    KI_TRY(ki_model_plan_get(model, KI_PLAN_ITEMS, request.tap, batch_for(model, n), o, ret_embedder, err));
    return ki_views_items(*ret_embedder, &request, n_views, ret, err);
}

/* Move each row to the place of its file. Rows of files that were not read are 0. */
static void spread(const ki_vectors *v, int64_t n, float *ret_values) {
    memset(ret_values, 0, (size_t)(n * v->dim) * sizeof *ret_values);
    for (int64_t i = 0; i < v->n; i++)
        memcpy(ret_values + v->item[i] * v->dim, v->host + i * v->dim, (size_t)v->dim * sizeof *ret_values);
}

kith_status kith_model_embed_files(kith_model *model, const char *const *paths, int64_t n,
                                   const kith_embed_options *options, float *ret_values,
                                   kith_status *ret_status, kith_error *err) {
    KI_NEED(err, model, paths, ret_values);
    KI_NEED_COUNT(err, n);
    kith_status status;
    KI_OPTIONS_TAKE(kith_embed_options, taken, options, err);
    const kith_embed_options *o = &taken;
    kith_dataset *set = NULL;
    int64_t *items = NULL, n_each = 0;
    ki_embedder *embedder = NULL;
    ki_vectors v = {0};
    KI_TRY(ki_model_tap_count(model, kith_model_tap(model, o), &n_each, err));
    if (n == 0) return KITH_OK;
    KI_TRY(ki_need_strings(paths, n, "paths", err));
    KI_CHECK(ki_dataset_of_paths(paths, (size_t)n, &set, err));
    KI_CHECK(ki_alloc_or(&items, (size_t)n, sizeof *items, "items", err));
    for (int64_t i = 0; i < n; i++) items[i] = i;
    status = ki_model_embed_set(model, set, items, n, o, ret_status ? -1 : 0, true, &embedder, &v, err);
    /* If no image could be read, the status of each says so. */
    const bool is_nothing =
        status == KITH_EFORMAT && ret_status && embedder && ki_embedder_n_bad(embedder) == n;
    if (status != KITH_OK && !is_nothing) goto done;
    status = KITH_OK;
    v.dim = n_each;
    spread(&v, n, ret_values);
    for (int64_t i = 0; ret_status && i < n; i++) ret_status[i] = ki_embedder_status(embedder, i);
done:
    ki_vectors_release(&v);
    ki_free(items);
    kith_dataset_free(set);
    return status;
}
