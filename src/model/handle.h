/* What is behind a kith_model; for the files of this folder, and for those above it that need more than the public functions. */
#ifndef KI_MODEL_HANDLE_H
#define KI_MODEL_HANDLE_H

#include <sys/stat.h>

#include "base/arena.h"
#include "data/image/image.h"
#include "kith/model.h"
#include "model/plans.h"
#include "net/model_file.h"

struct kith_model {
    ki_backend *backend;
    ki_net net;
    ki_params *params;
    int64_t most_batch;
    ki_file_curve curve; /* without points: none */

    ki_arena arena;             /* strings of the options */
    kith_model_options options; /* `weights` is an absolute path */
    int64_t dim;                /* of the default tap; 0: the network has none */
    struct stat file;           /* as it was opened */
    bool is_general;            /* opened by the name `general`, or without any */
    bool is_changed;            /* a parameter was set: it is not the model of its file any more */
    char hash[65];              /* empty: not asked for yet */
    char preprocess[512];

    ki_plans plans;
};

/* The file's curve, where it was measured on the images that the model has; otherwise NULL. */
static inline const kith_calibration *ki_model_own_curve(const kith_model *model) {
    return model->curve.calibration.n && !model->curve.side && model->options.views <= 1
               ? &model->curve.calibration
               : NULL;
}

/* Keep what the options say, and find the file that they name (identity.c): options->weights is then its name as errors should
 * say it, that of the model's options its absolute path. */
kith_status ki_model_keep_options(kith_model *model, kith_model_options *options, kith_error *err);
/* The options that give the input this side and the resizing before it in proportion, of the model as it was opened without: *ret_is_same
 * where that is what it has. The strings live as long as the model. */
kith_status ki_model_scale(kith_model *model, int64_t side, kith_model_options *options, bool *ret_is_same,
                           kith_error *err);
/* Once the network is there: its dim, and the words for what the file does not hold. */
kith_status ki_model_describe(kith_model *model, kith_error *err);

/* How the options of a call, or else those of opening, want images to be resized. NULL: as the network says. */
const char *ki_model_resize(const kith_model *model, const kith_embed_options *options);

/* What it makes of an image before the network sees it, by the options of opening. */
kith_status ki_model_transform(const kith_model *model, kith_transform *ret, kith_error *err);
/* How an image is decoded for it: the background under transparent pixels, and how small a JPEG may come out when no part of it
 * is cut out. */
kith_status ki_model_decoding(const kith_model *model, ki_decode *ret, kith_error *err);

/* Views of an image that make its vector: 1, or those of the options. KITH_EUNSUPPORTED: the tap is no vector. */
kith_status ki_model_n_views(const kith_model *model, const char *tap, const kith_embed_options *options,
                             int64_t *ret_n, kith_error *err);

/* How many values a tap has for one image. */
kith_status ki_model_tap_count(const kith_model *model, const char *tap, int64_t *ret_n, kith_error *err);

/* Items of a set by the loader's way. *ret_embedder, NULL before, is the one that did it, which knows what could not be read; also
 * after a failure. */
kith_status ki_model_embed_set(kith_model *model, const kith_dataset *set, const int64_t *items, int64_t n,
                               const kith_embed_options *o, int64_t most_bad, bool on_host,
                               ki_embedder **ret_embedder, ki_vectors *ret, kith_error *err);

#endif
