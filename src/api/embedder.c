/* A model with what decides its vectors: its name for an index, and what an index keeps to open it again.
 *
 * What an index keeps are notes (kith_index_note): the model's file, and the options that the file does not hold. They say
 * how to open the model. Whether that gives the model that made the index is decided by the hash of the file and the words for
 * the rest, which are compared as a whole. */
#include "kith/embedder.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "api/embedder_handle.h"
#include "api/model_handle.h"
#include "core/alloc.h"
#include "core/argument.h"
#include "core/text.h"
#include "embed/preprocess.h"
#include "kith/eval.h"

KI_OPTIONS_INIT(kith_embedder_options, 0)

/* The options that decide what a vector is and that the model's file does not hold, under their names as notes. */
typedef struct noted_option {
    const char *note;
    size_t offset;
} noted_option;

static const noted_option noted[] = {
    {"backbone", offsetof(kith_embedder_options, backbone)},
    {"settings", offsetof(kith_embedder_options, settings)},
    {"pool", offsetof(kith_embedder_options, pool)},
    {"tap", offsetof(kith_embedder_options, tap)},
    {"resize", offsetof(kith_embedder_options, resize)},
};
enum { N_NOTED = sizeof noted / sizeof noted[0] };

static const char **text_at(kith_embedder_options *o, size_t i) {
    return (const char **)(void *)((char *)o + noted[i].offset);
}

static kith_status keep(ki_arena *arena, const char **text, kith_error *err) {
    if (!*text) return KITH_OK;
    const char *copy = ki_arena_strdup(arena, *text);
    if (!copy) return ki_fail_memory(err, strlen(*text), "an option");
    *text = copy;
    return KITH_OK;
}

/* From the folder that somebody else works in the name must mean the same file. */
static kith_status keep_path(ki_arena *arena, const char **path, kith_error *err) {
    char whole[PATH_MAX];
    const char *found = realpath(*path, whole);
    if (found) *path = found; /* else kith_model_open says what is wrong with it */
    return keep(arena, path, err);
}

static kith_status keep_options(kith_embedder *e, kith_error *err) {
    kith_embedder_options *o = &e->options;
    KI_TRY(keep_path(&e->arena, &o->model, err));
    for (size_t i = 0; i < N_NOTED; i++) KI_TRY(keep(&e->arena, text_at(o, i), err));
    KI_TRY(keep(&e->arena, &o->device, err));
    return keep(&e->arena, &o->precision, err);
}

kith_embed_options ki_embedder_handle_options(const kith_embedder *e) {
    KITH_OPTIONS(kith_embed_options, o);
    o.tap = e->options.tap;
    o.resize = e->options.resize;
    o.most_bad = -1;
    return o;
}

/* "embedding of googlenet (pool avg), shorter256, 224 x 224, rgb, …": two embedders with equal words and the same file make
 * equal vectors. */
static void describe(kith_embedder *e) {
    const ki_net *net = &e->model->net;
    const kith_embed_options o = ki_embedder_handle_options(e);
    char pixels[192];
    ki_snprintf(e->preprocess, sizeof e->preprocess, "%s of %s%s%s (pool %s), %s, %lld x %lld, %s",
                kith_model_tap(e->model, &o), net->backbone->name, e->options.settings ? " with " : "",
                e->options.settings ? e->options.settings : "", ki_global_pool_names[net->pool],
                ki_preprocess_resize(net, o.resize), (long long)net->h, (long long)net->w,
                ki_preprocess_text(net, pixels, sizeof pixels));
}

static kith_status open_model(kith_embedder *e, kith_error *err) {
    const kith_embedder_options *o = &e->options;
    KITH_OPTIONS(kith_model_options, how);
    how.weights = o->model;
    how.backbone = o->backbone;
    how.settings = o->settings;
    how.pool = o->pool;
    how.height = how.width = o->side;
    how.device = o->device;
    how.precision = o->precision;
    how.tf32 = o->tf32;
    how.batch = o->batch;
    KI_TRY(kith_model_open(&how, &e->model, err));
    int n_dims = 0;
    int64_t dim[KITH_MAX_DIMS];
    const kith_embed_options embed = ki_embedder_handle_options(e);
    const char *tap = kith_model_tap(e->model, &embed);
    KI_TRY(kith_model_tap_shape(e->model, tap, &n_dims, dim, err));
    e->dim = 1;
    for (int i = 0; i < n_dims; i++) e->dim *= dim[i];
    describe(e);
    return kith_file_hash(o->model, e->hash, err);
}

static kith_status open_embedder(const kith_embedder_options *o, kith_embedder **ret_embedder,
                                 kith_error *err) {
    kith_status status;
    kith_embedder *e = NULL;
    KI_TRY(ki_zalloc_or(&e, 1, sizeof *e, "an embedder", err));
    e->options = *o;
    KI_CHECK(keep_options(e, err));
    KI_CHECK(open_model(e, err));
    *ret_embedder = e;
    e = NULL;
done:
    kith_embedder_free(e);
    return status;
}

kith_status kith_embedder_open(const kith_embedder_options *options, kith_embedder **ret_embedder,
                               kith_error *err) {
    KI_NEED(err, ret_embedder);
    KI_OPTIONS_TAKE(kith_embedder_options, o, options, err);
    if (!o.model) return ki_fail(err, KITH_EINVAL, "no model is named; wanted a safetensors file");
    return open_embedder(&o, ret_embedder, err);
}

static kith_status read_notes(const kith_index *index, kith_embedder_options *o, kith_error *err) {
    const char *model = kith_index_note(index, "model"), *side = kith_index_note(index, "side");
    if (!model && !o->model) {
        ki_fail(err, KITH_ENOTFOUND,
                "the index was made from vectors, and does not say which model made them");
        return ki_hint(err, KITH_ENOTFOUND, "embed the images yourself and give them as .npy");
    }
    if (!o->model) o->model = model;
    for (size_t i = 0; i < N_NOTED; i++) *text_at(o, i) = kith_index_note(index, noted[i].note);
    o->side = 0;
    if (side && !ki_parse_int64(side, &o->side))
        return ki_fail(err, KITH_EFORMAT, "the index notes '%.40s' as the side of the model's input", side);
    return KITH_OK;
}

kith_status kith_embedder_open_index(const kith_index *index, const kith_embedder_options *options,
                                     kith_embedder **ret_embedder, kith_error *err) {
    KI_NEED(err, index, ret_embedder);
    KI_OPTIONS_TAKE(kith_embedder_options, o, options, err);
    const bool is_given = o.model;
    kith_embedder *e = NULL;
    KI_TRY(read_notes(index, &o, err));
    kith_status status = open_embedder(&o, &e, err);
    if (status == KITH_EIO && !is_given)
        return ki_hint(err, status, "if the index's model lies elsewhere now, say where");
    if (status == KITH_OK) status = kith_index_expect(index, e->hash, e->preprocess, err);
    if (status == KITH_OK)
        *ret_embedder = e;
    else
        kith_embedder_free(e);
    return status;
}

void kith_embedder_free(kith_embedder *e) {
    if (!e) return;
    ki_embedder_drop_groups(e);
    kith_model_free(e->model);
    ki_arena_release(&e->arena);
    ki_free(e);
}

int64_t kith_embedder_dim(const kith_embedder *e) { return e ? e->dim : 0; }
const char *kith_embedder_hash(const kith_embedder *e) { return e ? e->hash : NULL; }
const char *kith_embedder_preprocess(const kith_embedder *e) { return e ? e->preprocess : NULL; }
kith_model *kith_embedder_model(kith_embedder *e) { return e ? e->model : NULL; }

/* It was measured on its embeddings, prepared as the model's file says. */
kith_status kith_embedder_calibration(const kith_embedder *embedder, kith_metric metric,
                                      kith_calibration *ret_calibration, kith_error *err) {
    KI_NEED(err, embedder, ret_calibration);
    kith_calibration curve;
    const kith_embed_options o = ki_embedder_handle_options(embedder);
    KI_TRY(kith_model_calibration(embedder->model, &curve, err));
    const char *tap = kith_model_tap(embedder->model, &o);
    if (curve.metric != metric || o.resize || strcmp(tap, "embedding") != 0)
        return ki_fail(err, KITH_ENOTFOUND,
                       "the model's curve is of its embeddings by %s, as its file prepares images; found %s "
                       "by %s%s",
                       kith_metric_name(curve.metric), tap, kith_metric_name(metric),
                       o.resize ? ", prepared in another way" : "");
    *ret_calibration = curve;
    return KITH_OK;
}

kith_status kith_embedder_remember(const kith_embedder *embedder, kith_index *index, kith_error *err) {
    KI_NEED(err, embedder, index);
    kith_embedder_options o = embedder->options;
    char side[24];
    KI_TRY(kith_index_note_set(index, "model", o.model, err));
    for (size_t i = 0; i < N_NOTED; i++) {
        const char *text = *text_at(&o, i);
        if (text) KI_TRY(kith_index_note_set(index, noted[i].note, text, err));
    }
    ki_snprintf(side, sizeof side, "%lld", (long long)o.side);
    if (o.side > 0) KI_TRY(kith_index_note_set(index, "side", side, err));
    kith_calibration curve;
    kith_index_info info;
    kith_index_info_get(index, &info);
    if (kith_embedder_calibration(embedder, info.metric, &curve, NULL) != KITH_OK) return KITH_OK;
    return kith_index_calibrate(index, &curve, err);
}

kith_status kith_embedder_items(kith_embedder *embedder, const kith_dataset *dataset, const int64_t *items,
                                int64_t n, kith_progress_fn progress, void *user, kith_vectors **ret_vectors,
                                kith_error *err) {
    KI_NEED(err, embedder, dataset, items, ret_vectors);
    KI_NEED_COUNT(err, n);
    kith_embed_options o = ki_embedder_handle_options(embedder);
    o.progress = progress;
    o.user = user;
    return kith_model_embed_items(embedder->model, dataset, items, n, &o, ret_vectors, err);
}
