/* The model of an index: written into its notes, and opened from them. */
#include "collection/remember.h"

#include <stddef.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "collection/cache.h"
#include "model/handle.h"
#include "net/general.h"
#include "search/notes.h"

/* The options that decide what a vector is and that the model's file does not hold. */
typedef struct noted_option {
    ki_note note;
    size_t offset;
} noted_option;

static const noted_option noted[] = {
    {KI_NOTE_BACKBONE, offsetof(kith_model_options, backbone)},
    {KI_NOTE_SETTINGS, offsetof(kith_model_options, settings)},
    {KI_NOTE_POOL, offsetof(kith_model_options, pool)},
    {KI_NOTE_TAP, offsetof(kith_model_options, tap)},
    {KI_NOTE_RESIZE, offsetof(kith_model_options, resize)},
};
enum { N_NOTED = sizeof noted / sizeof noted[0] };

static const char **text_at(kith_model_options *o, size_t i) {
    return (const char **)(void *)((char *)o + noted[i].offset);
}

static kith_status read_notes(const kith_index *index, kith_model_options *o, kith_error *err) {
    int64_t side = 0;
    if (!o->weights) o->weights = ki_index_note(index, KI_NOTE_MODEL);
    if (!o->weights) {
        ki_fail(err, KITH_ENOTFOUND,
                "the index was made from vectors, and does not say which model made them");
        return ki_hint(err, KITH_ENOTFOUND, "embed the images yourself and give them as .npy");
    }
    for (size_t i = 0; i < N_NOTED; i++) *text_at(o, i) = ki_index_note(index, noted[i].note);
    KI_TRY(ki_index_note_number(index, KI_NOTE_SIDE, &side, err));
    KI_TRY(ki_index_note_number(index, KI_NOTE_VIEWS, &o->views, err));
    o->height = o->width = side;
    return KITH_OK;
}

bool ki_remembers_general(const kith_index *index) {
    const char *name = ki_index_note(index, KI_NOTE_MODEL_NAME);
    return name && strcmp(name, KI_GENERAL) == 0;
}

kith_status ki_remembered_options(const kith_index *index, kith_model_options *o, kith_error *err) {
    int64_t side = 0;
    const bool has_side = o->side || o->height || o->width;
    if (o->weights || o->backbone) return KITH_OK;
    KI_TRY(ki_index_note_number(index, KI_NOTE_SIDE, &side, err));
    for (size_t i = 0; i < N_NOTED; i++) {
        /* The network is the one of the new file. */
        if (noted[i].note == KI_NOTE_BACKBONE && ki_remembers_general(index)) continue;
        /* Noted with a side, the resizing is the one that goes with it. */
        if (*text_at(o, i) || (noted[i].note == KI_NOTE_RESIZE && side && has_side)) continue;
        *text_at(o, i) = ki_index_note(index, noted[i].note);
    }
    if (!has_side) o->side = side;
    if (!o->views) KI_TRY(ki_index_note_number(index, KI_NOTE_VIEWS, &o->views, err));
    if (!ki_remembers_general(index)) o->weights = ki_index_note(index, KI_NOTE_MODEL);
    return KITH_OK;
}

kith_status ki_expect_model(const kith_index *index, kith_model *model, kith_error *err) {
    kith_model_identity who;
    KI_TRY(kith_model_identify(model, &who, err));
    return kith_index_expect(index, who.hash, who.preprocess, err);
}

/* Open it, and see whether it is the one that made the index. */
static kith_status open_expected(const kith_index *index, const kith_model_options *o, kith_model **ret,
                                 kith_error *err) {
    kith_model *model = NULL;
    KI_TRY(kith_model_open(o, &model, err));
    const kith_status status = ki_expect_model(index, model, err);
    if (status == KITH_OK)
        *ret = model;
    else
        kith_model_free(model);
    return status;
}

/* The file that the index names is gone, or is another model now: the cache may have kept the one that it was. */
static kith_status open_kept(const kith_index *index, const kith_model_options *was, kith_model **ret,
                             kith_error *err) {
    ki_path cache, file;
    kith_index_info info;
    kith_model_options o = *was;
    kith_index_info_get(index, &info);
    if (ki_cache_folder(NULL, &cache, NULL) != KITH_OK || !ki_cache_kept_model(cache.s, info.model, &file))
        return KITH_ENOTFOUND;
    o.weights = file.s;
    KI_TRY(open_expected(index, &o, ret, err));
    ki_log(KITH_LOG_INFO,
           "%s is not the model of this index any more: the one kept in the cache is used (%.8s)",
           was->weights, info.model);
    return KITH_OK;
}

kith_status ki_remembered_model(const kith_index *index, const kith_model_options *options,
                                kith_model **ret_model, kith_error *err) {
    KITH_OPTIONS(kith_model_options, o);
    o.weights = options->weights;
    o.device = options->device;
    o.precision = options->precision;
    o.tf32 = options->tf32;
    o.batch = options->batch;
    KI_TRY(read_notes(index, &o, err));
    const kith_status status = open_expected(index, &o, ret_model, err);
    if (options->weights || (status != KITH_EIO && status != KITH_EINVAL)) return status;
    if (open_kept(index, &o, ret_model, NULL) == KITH_OK) return KITH_OK;
    if (status == KITH_EIO) return ki_hint(err, status, "if the index's model lies elsewhere now, say where");
    return ki_hint(err, status,
                   "say where the model lies that made the index, or embed all of it anew: kith index "
                   "INDEX --renew-model");
}

kith_status ki_remember_model(kith_index *index, kith_model *model, kith_error *err) {
    KITH_OPTIONS(kith_model_options, o);
    kith_index_info info;
    kith_model_identity who;
    kith_calibration curve;
    KI_TRY(kith_model_identify(model, &who, err));
    kith_model_options_get(model, &o);
    KI_TRY(ki_index_note_set(index, KI_NOTE_MODEL, who.file, err));
    if (model->is_general) KI_TRY(ki_index_note_set(index, KI_NOTE_MODEL_NAME, KI_GENERAL, err));
    for (size_t i = 0; i < N_NOTED; i++) {
        const char *text = *text_at(&o, i);
        if (text) KI_TRY(ki_index_note_set(index, noted[i].note, text, err));
    }
    if (o.views > 1) KI_TRY(ki_index_note_number_set(index, KI_NOTE_VIEWS, o.views, err));
    if (o.height > 0) KI_TRY(ki_index_note_number_set(index, KI_NOTE_SIDE, o.height, err));
    kith_index_info_get(index, &info);
    if (kith_model_curve(model, info.metric, &curve, NULL) != KITH_OK) return KITH_OK;
    return kith_index_calibrate(index, &curve, err);
}

kith_status ki_remember_file(kith_index *index, const kith_model *model, kith_error *err) {
    KITH_OPTIONS(kith_model_options, o);
    const char *before = ki_index_note(index, KI_NOTE_MODEL);
    kith_model_options_get(model, &o);
    if (!before || strcmp(before, o.weights) == 0) return KITH_OK;
    if (ki_index_note(index, KI_NOTE_MODEL_NAME))
        KI_TRY(ki_index_note_set(index, KI_NOTE_MODEL_NAME, model->is_general ? KI_GENERAL : "", err));
    return ki_index_note_set(index, KI_NOTE_MODEL, o.weights, err);
}
