/* Who a model is: the options it was opened with, its file, and the words for what decides its vectors beside the file.
 *
 * Whether two models make the same vectors is decided by the hash of the file and these words, which are compared as a whole with
 * what indexes hold: they do not change. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/path.h"
#include "base/text.h"
#include "embed/preprocess.h"
#include "hub/cache.h"
#include "kith/eval.h"
#include "model/handle.h"
#include "net/general.h"

/* ---- the file ---- */

kith_status kith_model_find(const char *name, char *ret_file, size_t bytes, kith_error *err) {
    KI_NEED(err, ret_file);
    return name ? ki_model_file_find(name, ret_file, bytes, err) : ki_general_find(ret_file, bytes, err);
}

static kith_status keep(ki_arena *arena, const char **text, kith_error *err) {
    if (!*text) return KITH_OK;
    const char *copy = ki_arena_strdup(arena, *text);
    if (!copy) return ki_fail_memory(err, strlen(*text), "an option");
    *text = copy;
    return KITH_OK;
}

/* The absolute path. A file of the hub's cache stays the name in its snapshot, which has config.json beside it; any other link is
 * followed. */
static const char *whole_path(const char *found, char whole[PATH_MAX]) {
    char repo[KI_HUB_REPO], folder[PATH_MAX], copy[PATH_MAX];
    const char *slash = strrchr(found, '/');
    if (!slash || !ki_hub_repo_of_path(found, repo)) return realpath(found, whole) ? whole : found;
    ki_snprintf(copy, sizeof copy, "%.*s", (int)(slash - found), found);
    if (!realpath(copy, folder)) return found;
    const int n = ki_snprintf(whole, PATH_MAX, "%s%s", folder, slash);
    return n > 0 && n < PATH_MAX ? whole : found;
}

/* From the folder that somebody else works in the name must mean the same file. */
static kith_status keep_file(kith_model *model, const char **name, kith_error *err) {
    char found[PATH_MAX], whole[PATH_MAX];
    const char **path = &model->options.weights;
    if (!*name && model->options.backbone) return KITH_OK;
    KI_TRY(kith_model_find(*name, found, sizeof found, err));
    /* A file of that name is found as it is. */
    model->is_general = !*name || (strcmp(*name, KI_GENERAL) == 0 && strcmp(found, KI_GENERAL) != 0);
    *name = found;
    *path = whole_path(found, whole); /* opening says what is wrong with one that is not there */
    if (stat(*path, &model->file) != 0) model->file = (struct stat){0};
    KI_TRY(keep(&model->arena, name, err));
    return keep(&model->arena, path, err);
}

kith_status ki_model_keep_options(kith_model *model, kith_model_options *options, kith_error *err) {
    kith_model_options *o = &model->options;
    const char **const texts[] = {&o->backbone, &o->settings,  &o->pool, &o->embedding_init,
                                  &o->device,   &o->precision, &o->tap,  &o->resize};
    *o = *options;
    o->size = sizeof *o;
    KI_TRY(keep_file(model, &options->weights, err));
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) KI_TRY(keep(&model->arena, texts[i], err));
    return KITH_OK;
}

void kith_model_options_get(const kith_model *model, kith_model_options *ret_options) {
    if (!model || !ret_options) return;
    kith_model_options all;
    const size_t size = ret_options->size;
    if (ki_options_take(ret_options, &all, sizeof all, "kith_model_options", NULL) != KITH_OK) return;
    all = model->options;
    all.size = size;
    memcpy(ret_options, &all, size < sizeof all ? size : sizeof all);
}

/* ---- another side of the input ---- */

/* "squash256" for 224 is "squash146" for 128; what has no number stays. */
static const char *scale_resize(const char *resize, int64_t from, int64_t to, char *buf, size_t bytes) {
    const size_t n = strcspn(resize, "0123456789");
    int64_t pixels = 0;
    if (!ki_parse_int64(resize + n, &pixels) || from <= 0) return resize;
    ki_snprintf(buf, bytes, "%.*s%lld", (int)n, resize, (long long)((pixels * to + from / 2) / from));
    return buf;
}

/* Images whose map would not have one whole number along a side are padding for the most part: what comes out says nothing of them.
 * Who trained on such images knows. */
static kith_status check_side(const ki_net *net, int64_t side, kith_error *err) {
    enum { PROBE = 224 }; /* a multiple of what usual networks divide their sides by */
    ki_net probe = {0};
    int map = 0;
    KI_TRY(ki_net_of_size(net, PROBE, &probe, err));
    kith_status status = ki_graph_find_tap(probe.graph, "map", &map, err);
    const ki_shape *shape = status == KITH_OK ? &ki_graph_node(probe.graph, map)->shape : NULL;
    int64_t least = shape ? PROBE / shape->dim[shape->n_dims - 1] : 0;
    ki_net_release(&probe);
    if (status != KITH_OK) return status;
    if (net->h < least) least = net->h;
    if (ki_net_least_side(net) > least) least = ki_net_least_side(net);
    if (side >= least) return KITH_OK;
    ki_fail(err, KITH_ESHAPE, "side is %lld, which is too small for %s; wanted at least %lld",
            (long long)side, net->backbone->name, (long long)least);
    return ki_hint(err, KITH_ESHAPE, "the model's own side is %lld", (long long)net->h);
}

kith_status ki_model_scale(kith_model *model, int64_t side, kith_model_options *o, bool *ret_is_same,
                           kith_error *err) {
    const ki_net *net = &model->net;
    char scaled[32];
    o->side = model->options.side = 0;
    *ret_is_same = net->h == side && net->w == side;
    if (*ret_is_same) return KITH_OK;
    if (ki_net_takes_vectors(net))
        return ki_fail(err, KITH_EINVAL, "%s takes features, which have no side", net->backbone->name);
    KI_TRY(check_side(net, side, err));
    o->height = o->width = side;
    if (o->resize) return KITH_OK;
    o->resize = ki_arena_strdup(
        &model->arena, scale_resize(ki_preprocess_resize(net, NULL), net->h, side, scaled, sizeof scaled));
    return o->resize ? KITH_OK : ki_fail_memory(err, sizeof scaled, "an option");
}

/* ---- what its vectors are ---- */

const char *ki_model_resize(const kith_model *model, const kith_embed_options *options) {
    return options && options->resize ? options->resize : model->options.resize;
}

/* "embedding of googlenet (pool avg), shorter256, 224 x 224, rgb, …" */
static void write_words(kith_model *model) {
    const ki_net *net = &model->net;
    const char *settings = model->options.settings;
    char pixels[192];
    ki_snprintf(model->preprocess, sizeof model->preprocess, "%s of %s%s%s (pool %s), %s, %lld x %lld, %s",
                kith_model_tap(model, NULL), net->backbone->name, settings ? " with " : "",
                settings ? settings : "", ki_pooling_names[net->pool],
                ki_preprocess_resize(net, model->options.resize), (long long)net->h, (long long)net->w,
                ki_preprocess_text(net, pixels, sizeof pixels));
    if (model->options.views <= 1) return;
    const size_t n = strlen(model->preprocess);
    ki_snprintf(model->preprocess + n, sizeof model->preprocess - n, ", mean of %lld views",
                (long long)model->options.views);
}

kith_status ki_model_describe(kith_model *model, kith_error *err) {
    int n_dims = 0;
    int64_t dim[KITH_MAX_DIMS];
    const char *tap = kith_model_tap(model, NULL);
    /* A network without the usual taps can still be asked for others. */
    const bool is_asked = model->options.tap;
    const kith_status status = kith_model_tap_shape(model, tap, &n_dims, dim, is_asked ? err : NULL);
    write_words(model);
    if (status != KITH_OK) return is_asked ? status : KITH_OK;
    model->dim = 1;
    for (int i = 0; i < n_dims; i++) model->dim *= dim[i];
    return KITH_OK;
}

int64_t kith_model_dim(const kith_model *model) { return model ? model->dim : 0; }

/* Whoever opens the model again has the file and what the words hold, and nothing else. */
static kith_status check_namable(const kith_model *model, kith_error *err) {
    const kith_model_options *o = &model->options;
    if (!o->weights)
        return ki_fail(
            err, KITH_EINVAL,
            "the model has random weights and so no identity; wanted one that was opened from a file");
    if (model->is_changed) {
        ki_fail(err, KITH_EINVAL, "the model's parameters were set, so that it is not the one of %s any more",
                o->weights);
        return ki_hint(err, KITH_EINVAL, "save it, and open the file");
    }
    if (o->embedding || o->heads || o->map_channels || o->channels) {
        ki_fail(err, KITH_EINVAL, "the model was opened with other heads or channels than %s may have",
                o->weights);
        return ki_hint(err, KITH_EINVAL, "save it, and open the file without these options");
    }
    return KITH_OK;
}

/* A file that was replaced after it was read has another model's hash. */
static kith_status check_file(const kith_model *model, kith_error *err) {
    const char *path = model->options.weights;
    const struct stat *was = &model->file;
    struct stat is;
    if (stat(path, &is) == 0 && is.st_dev == was->st_dev && is.st_ino == was->st_ino &&
        is.st_size == was->st_size && is.st_mtim.tv_sec == was->st_mtim.tv_sec &&
        is.st_mtim.tv_nsec == was->st_mtim.tv_nsec)
        return KITH_OK;
    return ki_fail(err, KITH_EINVAL, "%s has changed since the model was opened; open it again", path);
}

kith_status kith_model_identify(kith_model *model, kith_model_identity *ret_identity, kith_error *err) {
    KI_NEED(err, model, ret_identity);
    KI_TRY(check_namable(model, err));
    if (!*model->hash) {
        char hash[sizeof model->hash];
        KI_TRY(check_file(model, err));
        KI_TRY(kith_file_hash(model->options.weights, hash, err));
        memcpy(model->hash, hash, sizeof hash);
    }
    *ret_identity = (kith_model_identity){.file = model->options.weights,
                                          .hash = model->hash,
                                          .preprocess = model->preprocess,
                                          .dim = model->dim};
    return KITH_OK;
}

/* The last two names of a path: "run/model.safetensors". */
static const char *last_names(const char *path) {
    const char *at = path + strlen(path);
    for (int n = 0; at > path; at--) {
        if (at[-1] == '/' && ++n == 2) break;
    }
    return at;
}

const char *kith_model_title(kith_model *model, char *buf, size_t bytes) {
    if (!buf || bytes == 0) return buf;
    buf[0] = '\0';
    if (!model) return buf;
    const ki_net *net = &model->net;
    const char *file = model->options.weights;
    kith_model_identity who = {.hash = ""};
    if (kith_model_identify(model, &who, NULL) != KITH_OK) who.hash = "";
    const char *name = model->is_general ? KI_GENERAL : file ? last_names(file) : "random weights";
    ki_snprintf(buf, bytes, "%.200s (%s, %lld px%s%.8s)", name, net->backbone->name, (long long)net->h,
                *who.hash ? ", " : "", who.hash);
    return buf;
}

/* ---- what its scores mean ---- */

kith_status kith_model_calibration(const kith_model *model, kith_calibration *ret_calibration,
                                   kith_error *err) {
    KI_NEED(err, model, ret_calibration);
    const kith_calibration *curve = ki_model_own_curve(model);
    if (!curve) {
        ki_fail(err, KITH_ENOTFOUND,
                "the model has no calibration curve, so scores cannot be converted to false-match rates");
        return ki_hint(
            err, KITH_ENOTFOUND,
            "train with validation classes (data.validation), and open the model as it was trained");
    }
    *ret_calibration = *curve;
    return KITH_OK;
}

/* Are its images resized as the file says, or in proportion where their side is another one? */
static bool is_resized_as_written(const kith_model *model) {
    const char *resize = model->options.resize;
    char scaled[32];
    if (model->options.views > 1) return false;
    if (model->curve.side == 0) return !resize;
    return resize && strcmp(resize, scale_resize(ki_preprocess_resize(&model->net, NULL), model->curve.side,
                                                 model->net.h, scaled, sizeof scaled)) == 0;
}

/* "validation, at 192 px". */
static void say_side(int64_t side, kith_calibration *curve) {
    char at[sizeof curve->source];
    const int n = ki_snprintf(at, sizeof at, ", at %lld px", (long long)side);
    curve->source[sizeof curve->source - 1 - (size_t)n] = '\0';
    memcpy(curve->source + strlen(curve->source), at, (size_t)n + 1);
}

/* It was measured on its embeddings, prepared as the model's file says, maybe at another side. */
kith_status kith_model_curve(const kith_model *model, kith_metric metric, kith_calibration *ret_calibration,
                             kith_error *err) {
    KI_NEED(err, model, ret_calibration);
    const kith_calibration *curve = &model->curve.calibration;
    const char *tap = kith_model_tap(model, NULL);
    if (curve->n == 0) return kith_model_calibration(model, ret_calibration, err);
    if (curve->metric != metric || !is_resized_as_written(model) || strcmp(tap, "embedding") != 0)
        return ki_fail(err, KITH_ENOTFOUND,
                       "the model's curve is of its embeddings by %s, as its file prepares images; found %s "
                       "by %s%s",
                       kith_metric_name(curve->metric), tap, kith_metric_name(metric),
                       is_resized_as_written(model) ? "" : ", prepared in another way");
    *ret_calibration = *curve;
    if (model->curve.side) say_side(model->curve.side, ret_calibration);
    return KITH_OK;
}
