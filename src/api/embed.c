/* Images to vectors: kith_model's way to the embedder (embed/embedder.h), which is kept until another batch size or another
 * way of resizing is asked for. */
#include <stdio.h>
#include <string.h>

#include "api/model_handle.h"
#include "core/alloc.h"
#include "core/argument.h"
#include "core/clock.h"
#include "core/text.h"
#include "embed/preprocess.h"
#include "judge/judge.h"

KI_OPTIONS_INIT(kith_embed_options, 0)

const char *kith_model_tap(const kith_model *model, const kith_embed_options *options) {
    if (!model) return NULL;
    KITH_OPTIONS(kith_embed_options, o);
    if (ki_options_take(options, &o, sizeof o, "kith_embed_options", NULL) != KITH_OK) return NULL;
    return ki_preprocess_tap(&model->net, o.tap);
}

/* For n images, at most one batch of them at a time. options NULL: they are the network's input already. */
static kith_status need_embedder(kith_model *model, int64_t n, const kith_embed_options *options,
                                 kith_error *err) {
    ki_embedder_settings settings = {.backend = model->backend,
                                     .net = &model->net,
                                     .params = model->params,
                                     .batch = n < model->most_batch ? n : model->most_batch};
    kith_transform_init(&settings.transform, sizeof settings.transform);
    if (options && (options->n_workers < 0 || options->most_pixels < 0))
        return ki_fail(err, KITH_EINVAL, "n_workers is %lld and most_pixels %lld; wanted 0 or more of each",
                       (long long)options->n_workers, (long long)options->most_pixels);
    const char *resize = options ? ki_preprocess_resize(&model->net, options->resize) : "";
    if (options) {
        settings.n_workers = options->n_workers;
        if (!ki_net_takes_vectors(&model->net))
            KI_TRY(ki_preprocess_transform(&model->net, resize, &settings.transform, err));
    }
    const bool is_alike =
        !options || (strcmp(model->resize, resize) == 0 && model->n_workers == options->n_workers);
    if (model->embedder && model->batch == settings.batch && is_alike) return KITH_OK;
    ki_embedder_free(model->embedder);
    model->embedder = NULL;
    KI_TRY(ki_embedder_new(&settings, &model->embedder, err));
    model->batch = settings.batch;
    model->n_workers = settings.n_workers;
    ki_snprintf(model->resize, sizeof model->resize, "%s", resize);
    return KITH_OK;
}

static kith_status tap_count(const kith_model *model, const char *tap, int64_t *ret_n, kith_error *err) {
    int n_dims = 0;
    int64_t dim[KITH_MAX_DIMS];
    KI_TRY(kith_model_tap_shape(model, tap, &n_dims, dim, err));
    *ret_n = 1;
    for (int i = 0; i < n_dims; i++) *ret_n *= dim[i];
    return KITH_OK;
}

kith_status kith_model_embed(kith_model *model, const float *images, int64_t n, const char *tap,
                             float *ret_values, kith_error *err) {
    KI_NEED(err, model, images, tap, ret_values);
    KI_NEED_COUNT(err, n);
    int64_t n_each = 0;
    KI_TRY(tap_count(model, tap, &n_each, err));
    if (n == 0) return KITH_OK;
    KI_TRY(need_embedder(model, n, NULL, err));
    return ki_embedder_floats(model->embedder, images, n, tap, ret_values, err);
}

kith_status kith_model_embed_pixels(kith_model *model, const kith_pixels *images, int64_t n,
                                    const kith_embed_options *options, float *ret_values, kith_error *err) {
    KI_NEED(err, model, images, ret_values);
    KI_NEED_COUNT(err, n);
    kith_status status;
    ki_image *decoded = NULL;
    KI_OPTIONS_TAKE(kith_embed_options, taken, options, err);
    const kith_embed_options *o = &taken;
    if (n == 0) return KITH_OK;
    KI_CHECK(ki_zalloc_or(&decoded, (size_t)n, sizeof *decoded, "images", err));
    for (int64_t i = 0; i < n; i++) {
        const kith_pixels *p = &images[i];
        if (p->width < 1 || p->height < 1 || (p->channels != 1 && p->channels != 3)) {
            status = ki_fail(err, KITH_ESHAPE,
                             "image %lld is %d x %d with %d channels; wanted 1 or 3 channels, and pixels",
                             (long long)i, p->width, p->height, p->channels);
            goto done;
        }
        if (!p->data) {
            status = ki_fail(err, KITH_EINVAL, "image %lld: data is NULL; wanted its pixels", (long long)i);
            goto done;
        }
        decoded[i] = (ki_image){
            .w = p->width, .h = p->height, .channels = p->channels, .data = (uint8_t *)(uintptr_t)p->data};
    }
    KI_CHECK(need_embedder(model, n, o, err));
    KI_CHECK(ki_embedder_images(model->embedder, decoded, n, kith_model_tap(model, o), ret_values, err));
done:
    ki_free(decoded);
    return status;
}

/* ---- items of a data set ---- */

static kith_status embed_items(kith_model *model, const kith_dataset *set, const int64_t *items, int64_t n,
                               const kith_embed_options *o, int64_t most_bad, bool on_host, ki_vectors *ret,
                               kith_error *err) {
    const ki_embed_request request = {.set = set,
                                      .items = items,
                                      .n = n,
                                      .tap = kith_model_tap(model, o),
                                      .on_host = on_host,
                                      .most_bad = most_bad,
                                      .most_pixels = o->most_pixels,
                                      .progress = o->progress,
                                      .user = o->user};
    KI_TRY(need_embedder(model, n, o, err));
    return ki_embedder_items(model->embedder, &request, ret, err);
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
    ki_vectors v = {0};
    KI_TRY(tap_count(model, kith_model_tap(model, o), &n_each, err));
    if (n == 0) return KITH_OK;
    KI_TRY(ki_need_strings(paths, n, "paths", err));
    KI_CHECK(ki_dataset_of_paths(paths, (size_t)n, &set, err));
    KI_CHECK(ki_alloc_or(&items, (size_t)n, sizeof *items, "items", err));
    for (int64_t i = 0; i < n; i++) items[i] = i;
    status = embed_items(model, set, items, n, o, ret_status ? -1 : 0, true, &v, err);
    /* If no image could be read, the status of each says so. */
    const bool is_nothing = status == KITH_EFORMAT && ret_status && ki_embedder_n_bad(model->embedder) == n;
    if (status != KITH_OK && !is_nothing) goto done;
    status = KITH_OK;
    v.dim = n_each;
    spread(&v, n, ret_values);
    for (int64_t i = 0; ret_status && i < n; i++) ret_status[i] = ki_embedder_status(model->embedder, i);
done:
    ki_vectors_release(&v);
    ki_free(items);
    kith_dataset_free(set);
    return status;
}

/* ---- vectors ---- */

struct kith_vectors {
    ki_vectors core;
    int n_dims; /* of one row */
    int64_t dim[KITH_MAX_DIMS];
    int64_t n_bad;
    char *bad[KI_MOST_BAD_NAMED];
    /* For cards. */
    const kith_dataset *set;
    kith_split split;
    const char *backbone, *pool;
    char tap[32], resize[32], preprocessing[160], data_hash[65];
    int64_t crop;
    double seconds; /* from files to vectors */
};

static kith_status note(const kith_model *model, const kith_embed_options *o, kith_vectors *v,
                        kith_error *err) {
    const ki_net *net = &model->net;
    v->n_bad = ki_embedder_n_bad(model->embedder);
    for (int64_t i = 0; i < KI_MOST_BAD_NAMED && ki_embedder_bad(model->embedder, i); i++) {
        v->bad[i] = ki_strdup(ki_embedder_bad(model->embedder, i));
        if (!v->bad[i]) return ki_fail_memory(err, 1, "a file's name");
    }
    ki_snprintf(v->tap, sizeof v->tap, "%s", kith_model_tap(model, o));
    if (!ki_net_takes_vectors(net))
        ki_snprintf(v->resize, sizeof v->resize, "%s", ki_preprocess_resize(net, o->resize));
    ki_preprocess_text(net, v->preprocessing, sizeof v->preprocessing);
    v->backbone = net->backbone->name;
    v->pool = ki_net_takes_vectors(net) ? NULL : ki_global_pool_names[net->pool];
    v->crop = ki_net_takes_vectors(net) ? 0 : net->h;
    return kith_model_tap_shape(model, v->tap, &v->n_dims, v->dim, err);
}

/* Vectors of items of a set, with what is to be said of them. */
static kith_status make_vectors(kith_model *model, const kith_dataset *set, kith_split split,
                                const int64_t *items, int64_t n, const kith_embed_options *o,
                                kith_vectors **ret_vectors, kith_error *err) {
    kith_status status;
    kith_vectors *v = NULL;
    KI_CHECK(ki_zalloc_or(&v, 1, sizeof *v, "vectors", err));
    v->set = set;
    v->split = split;
    const double began = ki_seconds_now();
    KI_CHECK(embed_items(model, set, items, n, o, o->most_bad, false, &v->core, err));
    v->seconds = ki_seconds_now() - began;
    KI_CHECK(note(model, o, v, err));
    *ret_vectors = v;
    v = NULL;
done:
    kith_vectors_free(v);
    return status;
}

kith_status kith_model_embed_dataset(kith_model *model, const kith_dataset *dataset, kith_split split,
                                     const kith_embed_options *options, kith_vectors **ret_vectors,
                                     kith_error *err) {
    KI_NEED(err, model, dataset, ret_vectors);
    KI_OPTIONS_TAKE(kith_embed_options, o, options, err);
    int64_t *items = NULL, n = 0;
    KI_TRY(ki_dataset_select(dataset, split, &items, &n, err));
    const kith_status status =
        n > 0 ? make_vectors(model, dataset, split, items, n, &o, ret_vectors, err)
              : ki_fail(err, KITH_EINVAL, "%s has no %s images", dataset->root, kith_split_name(split));
    if (status == KITH_OK) kith_dataset_hash(dataset, (int)split, (*ret_vectors)->data_hash);
    ki_free(items);
    return status;
}

/* None of the items could be read: vectors without rows, which say why. */
static kith_status make_none(const kith_model *model, const kith_dataset *set, const kith_embed_options *o,
                             kith_vectors **ret_vectors, kith_error *err) {
    kith_vectors *v = NULL;
    KI_TRY(ki_zalloc_or(&v, 1, sizeof *v, "vectors", err));
    v->set = set;
    v->split = KITH_SPLIT_ALL;
    const kith_status status = note(model, o, v, err);
    if (status == KITH_OK)
        *ret_vectors = v;
    else
        kith_vectors_free(v);
    return status;
}

kith_status kith_model_embed_items(kith_model *model, const kith_dataset *dataset, const int64_t *items,
                                   int64_t n, const kith_embed_options *options, kith_vectors **ret_vectors,
                                   kith_error *err) {
    KI_NEED(err, model, dataset, items, ret_vectors);
    KI_NEED_COUNT(err, n);
    KI_OPTIONS_TAKE(kith_embed_options, o, options, err);
    const int64_t n_items = (int64_t)dataset->n_items;
    for (int64_t i = 0; i < n; i++) {
        if (items[i] < 0 || items[i] >= n_items)
            return ki_fail(err, KITH_EINVAL, "item %lld of a data set of %lld; wanted 0 to %lld",
                           (long long)items[i], (long long)n_items, (long long)n_items - 1);
    }
    if (n == 0) return ki_fail(err, KITH_EINVAL, "no items are named");
    const kith_status status = make_vectors(model, dataset, KITH_SPLIT_ALL, items, n, &o, ret_vectors, err);
    if (status != KITH_EFORMAT || !model->embedder || ki_embedder_n_bad(model->embedder) != n) return status;
    return o.most_bad < 0 ? make_none(model, dataset, &o, ret_vectors, err) : status;
}

void kith_vectors_free(kith_vectors *v) {
    if (!v) return;
    ki_vectors_release(&v->core);
    for (int i = 0; i < KI_MOST_BAD_NAMED; i++) ki_free(v->bad[i]);
    ki_free(v);
}

int64_t kith_vectors_count(const kith_vectors *v) {
    if (!v) return 0;
    return v->core.n;
}
const int64_t *kith_vectors_items(const kith_vectors *v) {
    if (!v) return NULL;
    return v->core.item;
}
const int64_t *kith_vectors_labels(const kith_vectors *v) {
    if (!v) return NULL;
    return v->core.label;
}
int64_t kith_vectors_n_bad(const kith_vectors *v) {
    if (!v) return 0;
    return v->n_bad;
}

const char *kith_vectors_bad(const kith_vectors *v, int64_t i) {
    if (!v) return NULL;
    return i >= 0 && i < KI_MOST_BAD_NAMED ? v->bad[i] : NULL;
}

kith_status kith_vectors_array(kith_vectors *v, kith_array *ret_array, kith_error *err) {
    KI_NEED(err, v, ret_array);
    const float *x = NULL;
    KI_TRY(ki_vectors_host(&v->core, &x, err));
    kith_array array = {KITH_F32, v->n_dims + 1, {v->core.n}, (void *)(uintptr_t)x};
    memcpy(array.dim + 1, v->dim, (size_t)v->n_dims * sizeof *v->dim);
    *ret_array = array;
    return KITH_OK;
}

kith_status kith_vectors_judge(kith_vectors *v, const kith_judge_options *options,
                               kith_judgement *ret_judgement, kith_error *err) {
    KI_NEED(err, v, ret_judgement);
    ki_judge_options o;
    KI_TRY(ki_judge_options_take(options, &o, err));
    return ki_judge_vectors(&v->core, &o, NULL, ret_judgement, err);
}

void kith_vectors_facts(const kith_vectors *v, kith_card_facts *facts) {
    if (!v || !facts) return;
    KITH_OPTIONS(kith_card_facts, all);
    if (ki_options_take(facts, &all, sizeof all, "kith_card_facts", NULL) != KITH_OK) return;
    const size_t size = facts->size;
    all.size = size;
    all.backbone = v->backbone;
    all.pool = v->pool;
    all.tap = v->tap;
    all.preprocessing = v->preprocessing;
    all.resize = *v->resize ? v->resize : NULL;
    all.crop = v->crop;
    all.embedding_size = v->core.dim;
    all.dataset = v->set->kind->name;
    all.data = v->set->root;
    if (*v->data_hash) all.data_sha256 = v->data_hash;
    all.split = kith_split_name(v->split);
    all.embed_seconds = v->seconds;
    memcpy(facts, &all, size < sizeof all ? size : sizeof all);
}
