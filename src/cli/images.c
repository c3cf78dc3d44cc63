/* Images from files, prepared as a model wants them. */
#include "cli/images.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

static kith_status parse_resize(const char *text, kith_transform *transform, kith_error *err) {
    static const struct {
        const char *word;
        kith_resize how;
    } ways[] = {
        {"squash", KITH_RESIZE_SQUASH}, {"shorter", KITH_RESIZE_SHORTER}, {"atmost", KITH_RESIZE_AT_MOST}};
    transform->resize = KITH_RESIZE_NONE;
    if (strcmp(text, "none") == 0) return KITH_OK;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const size_t n = strlen(ways[i].word);
        if (strncmp(text, ways[i].word, n) != 0) continue;
        char *end = NULL;
        const long side = strtol(text + n, &end, 10);
        if (end == text + n || *end || side < 1 || side > 4096) break;
        transform->resize = ways[i].how;
        transform->resize_to = (int)side;
        return KITH_OK;
    }
    return cli_error(err, KITH_EINVAL, "wanted squashN, shorterN, atmostN (N pixels) or none",
                     "--resize is '%.60s'", text);
}

const char *cli_resize(const kith_model_info *info, const char *given) {
    if (given) return given;
    return *info->preprocess.resize ? info->preprocess.resize : "squash256";
}

kith_status cli_transform(const kith_model_info *info, const char *resize, kith_transform *t,
                          kith_error *err) {
    *t = kith_transform_default();
    if (info->height != info->width || (info->channels != 1 && info->channels != 3))
        return cli_error(err, KITH_EUNSUPPORTED, NULL,
                         "the model takes %lld x %lld images of %lld channels; wanted square ones of 1 or 3",
                         (long long)info->height, (long long)info->width, (long long)info->channels);
    t->crop_to = (int)info->height;
    t->channels = (int)info->channels;
    t->bgr = info->preprocess.bgr;
    t->pixel_scale = info->preprocess.scale;
    for (int c = 0; c < t->channels; c++) {
        t->mean[c] = info->preprocess.mean[c];
        t->std[c] = info->preprocess.std[c];
    }
    return parse_resize(cli_resize(info, resize), t, err);
}

const char *cli_default_tap(const kith_model_info *info) {
    return info->embedding > 0 ? "embedding" : "pooled";
}

kith_status cli_tap_count(const kith_model *model, const char *tap, int64_t *ret_n, kith_error *err) {
    int n_dims = 0;
    int64_t dim[KITH_MAX_DIMS] = {1};
    const kith_status status = kith_model_tap_shape(model, tap, &n_dims, dim, err);
    if (status != KITH_OK) return status;
    *ret_n = 1;
    for (int i = 0; i < n_dims; i++) *ret_n *= dim[i];
    return KITH_OK;
}

const char *cli_model_path(const char *name, char *buf, size_t buf_bytes) {
    static const char *const files[] = {"model.safetensors", "best.safetensors"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const int n = snprintf(buf, buf_bytes, "%s/%s", name, files[i]);
        if (n > 0 && (size_t)n < buf_bytes && access(buf, F_OK) == 0) return buf;
    }
    return name;
}
