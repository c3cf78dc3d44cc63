/* kith_vectors: a data set's images as vectors, with what is to be said of them on cards. */
#include "model/vectors.h"

#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/clock.h"
#include "base/text.h"
#include "embed/preprocess.h"
#include "model/handle.h"

static kith_status note(const kith_model *model, const ki_embedder *embedder, const kith_embed_options *o,
                        kith_vectors *v, kith_error *err) {
    const ki_net *net = &model->net;
    v->n_bad = ki_embedder_n_bad(embedder);
    for (int64_t i = 0; i < KI_MOST_BAD_NAMED && ki_embedder_bad(embedder, i); i++) {
        v->bad[i] = ki_strdup(ki_embedder_bad(embedder, i));
        if (!v->bad[i]) return ki_fail_memory(err, 1, "a file's name");
    }
    ki_snprintf(v->tap, sizeof v->tap, "%s", kith_model_tap(model, o));
    if (!ki_net_takes_vectors(net))
        ki_snprintf(v->resize, sizeof v->resize, "%s", ki_preprocess_resize(net, ki_model_resize(model, o)));
    ki_preprocess_text(net, v->preprocessing, sizeof v->preprocessing);
    const size_t n = strlen(v->preprocessing);
    if (model->options.views > 1)
        ki_snprintf(v->preprocessing + n, sizeof v->preprocessing - n, ", mean of %lld views",
                    (long long)model->options.views);
    v->backbone = net->backbone->name;
    v->pool = ki_net_takes_vectors(net) ? NULL : ki_pooling_names[net->pool];
    v->crop = ki_net_takes_vectors(net) ? 0 : net->h;
    return kith_model_tap_shape(model, v->tap, &v->n_dims, v->dim, err);
}

/* Vectors of items of a set, with what is to be said of them. */
static kith_status make_vectors(kith_model *model, const kith_dataset *set, kith_split split,
                                const int64_t *items, int64_t n, const kith_embed_options *o,
                                ki_embedder **ret_embedder, kith_vectors **ret_vectors, kith_error *err) {
    kith_status status;
    kith_vectors *v = NULL;
    KI_CHECK(ki_zalloc_or(&v, 1, sizeof *v, "vectors", err));
    v->set = set;
    v->split = split;
    const double began = ki_seconds_now();
    KI_CHECK(ki_model_embed_set(model, set, items, n, o, o->most_bad, false, ret_embedder, &v->core, err));
    v->seconds = ki_seconds_now() - began;
    KI_CHECK(note(model, *ret_embedder, o, v, err));
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
    ki_embedder *embedder = NULL;
    KI_TRY(ki_dataset_select(dataset, split, &items, &n, err));
    const kith_status status =
        n > 0 ? make_vectors(model, dataset, split, items, n, &o, &embedder, ret_vectors, err)
              : ki_fail(err, KITH_EINVAL, "%s has no %s images", dataset->root, kith_split_name(split));
    if (status == KITH_OK) kith_dataset_hash(dataset, (int)split, (*ret_vectors)->data_hash);
    ki_free(items);
    return status;
}

/* None of the items could be read: vectors without rows, which say why. */
static kith_status make_none(const kith_model *model, const ki_embedder *embedder, const kith_dataset *set,
                             const kith_embed_options *o, kith_vectors **ret_vectors, kith_error *err) {
    kith_vectors *v = NULL;
    KI_TRY(ki_zalloc_or(&v, 1, sizeof *v, "vectors", err));
    v->set = set;
    v->split = KITH_SPLIT_ALL;
    const kith_status status = note(model, embedder, o, v, err);
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
    ki_embedder *embedder = NULL;
    const kith_status status =
        make_vectors(model, dataset, KITH_SPLIT_ALL, items, n, &o, &embedder, ret_vectors, err);
    if (status != KITH_EFORMAT || !embedder || ki_embedder_n_bad(embedder) != n) return status;
    return o.most_bad < 0 ? make_none(model, embedder, dataset, &o, ret_vectors, err) : status;
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
