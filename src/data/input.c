/* Reading the `input:` section. */
#include "data/input.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/argument.h"
#include "base/text.h"
#include "data/effect/effect.h"
#include "io/yaml.h"

typedef struct settings {
    const char *resize;
    int64_t crop;
    int augment;
    const ki_value *scale;
    const ki_value *ratio;
    bool mirror;
    const char *test_resize;
    int64_t test_crop;
    int filter;
    int64_t channels;
    const ki_value *background;
    bool box;
    const ki_value *effects;
    const ki_value *sides; /* read by ki_input_sides */
} settings;

static const char *const augment_names[] = {"crop", "resized", "multiscale", "none", NULL};
static const kith_crop augment_crops[] = {KITH_CROP_RANDOM, KITH_CROP_RESIZED, KITH_CROP_MULTISCALE,
                                          KITH_CROP_CENTRE};
static const char *const filter_names[] = {"bilinear", "bicubic", "lanczos", NULL};

const ki_option ki_input_options[] = {
    KI_OPTION_TEXT(settings, resize, "squash256",
                   "before anything random: squashN, padN, shorterN, atmostN or none", "ECAML"),
    KI_OPTION_INT(settings, crop, 227, 1, 4096, "side of the network's input", "ECAML"),
    KI_OPTION_CHOICE(
        settings, augment, 0, augment_names,
        "training view: a random crop, a resized random part, a random scale and crop, or the centre",
        "ECAML"),
    KI_OPTION_TREE(settings, scale, "[0.08, 1] or [0.8, 1.8]",
                   "resized: part of the area; multiscale: longer side over crop", "JRD, HORDE"),
    KI_OPTION_TREE(settings, ratio, "[0.75, 1.3333]", "resized: width over height", "torchvision"),
    KI_OPTION_BOOL(settings, mirror, 1, "every other training image left to right", "ECAML"),
    KI_OPTION_TEXT(settings, test_resize, "", "when it differs from resize; then the centre is cropped",
                   "HORDE, JRD"),
    KI_OPTION_LATER(INT, settings, test_crop, 0, 0, 4096,
                    "side of the network's input in tests and in the finished model; 0: crop", "ours"),
    KI_OPTION_CHOICE(settings, filter, 0, filter_names, "resampling filter, always antialiased", "ours"),
    KI_OPTION_INT(settings, channels, 3, 1, 3, "3, or 1 for grey networks", "ours"),
    KI_OPTION_TREE(settings, background, "[0, 0, 0]", "RGB under transparent pixels and around small images",
                   "HORDE"),
    KI_OPTION_BOOL(settings, box, 0, "cut the item's bounding box out first", "ours"),
    KI_OPTION_LATER(
        TREE, settings, effects, "[]",
        "training: what is done to the pixels, in this order: list of {name: …, p, options}: see `kith "
        "list effects`",
        "ours"),
    KI_OPTION_LATER(
        TREE, settings, sides, "[]",
        "training: every batch has one of these sides instead of crop, drawn by the seed; crop is one "
        "of them and draws the view",
        "Touvron et al. 2019: several sizes"),
    KI_OPTION_END};

kith_status ki_resize_parse(const char *text, kith_resize *ret_resize, int *ret_to, kith_error *err) {
    static const struct {
        const char *name;
        kith_resize resize;
    } rows[] = {{"squash", KITH_RESIZE_SQUASH},
                {"shorter", KITH_RESIZE_SHORTER},
                {"atmost", KITH_RESIZE_AT_MOST},
                {"pad", KITH_RESIZE_PAD}};
    if (strcmp(text, "none") == 0) {
        *ret_resize = KITH_RESIZE_NONE;
        *ret_to = 0;
        return KITH_OK;
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const size_t n = strlen(rows[i].name);
        int64_t to = 0;
        if (strncmp(text, rows[i].name, n) != 0 || !ki_parse_int64(text + n, &to) || to < 1 || to > 16384)
            continue;
        *ret_resize = rows[i].resize;
        *ret_to = (int)to;
        return KITH_OK;
    }
    ki_fail(err, KITH_EINVAL, "resize is '%.60s'", text);
    return ki_hint(err, KITH_EINVAL,
                   "wanted squashN, padN, shorterN, atmostN (N pixels, as in squash256) or none");
}

const char *ki_resize_text(const kith_transform *transform, char *buf, size_t buf_bytes) {
    static const char *const words[] = {[KITH_RESIZE_NONE] = "none",
                                        [KITH_RESIZE_SHORTER] = "shorter",
                                        [KITH_RESIZE_SQUASH] = "squash",
                                        [KITH_RESIZE_AT_MOST] = "atmost",
                                        [KITH_RESIZE_PAD] = "pad"};
    if (transform->resize == KITH_RESIZE_NONE)
        ki_snprintf(buf, buf_bytes, "none");
    else
        ki_snprintf(buf, buf_bytes, "%s%d", words[transform->resize], transform->resize_to);
    return buf;
}

kith_status ki_filter_parse(const char *text, kith_filter *ret_filter, kith_error *err) {
    int n = 0;
    for (; filter_names[n]; n++) {
        if (strcmp(text, filter_names[n]) != 0) continue;
        *ret_filter = (kith_filter)n;
        return KITH_OK;
    }
    return ki_fail_unknown(err, "filter", text, filter_names, (size_t)n);
}

const char *ki_filter_name(kith_filter filter) { return filter_names[filter]; }

static kith_status parse_numbers(const ki_value *list, const char *name, size_t n, double *ret,
                                 kith_error *err) {
    const kith_status status = ki_effect_numbers(list, name, n, ret, err);
    return status == KITH_OK ? status : ki_prefix(err, status, "input");
}

kith_status ki_input_parse(const ki_value *map, kith_transform *ret_train, kith_transform *ret_test,
                           kith_error *err) {
    settings s;
    KITH_OPTIONS(kith_transform, t);
    KI_TRY(ki_options_parse(ki_input_options, map, NULL, "input", &s, err));
    if (s.channels == 2) return ki_fail(err, KITH_EINVAL, "input: channels is 2; wanted 1 or 3");
    t.crop_to = (int)s.crop;
    t.crop = augment_crops[s.augment];
    t.filter = (kith_filter)s.filter;
    t.mirror = s.mirror;
    t.use_box = s.box;
    t.channels = (int)s.channels;
    if (t.crop == KITH_CROP_MULTISCALE) t.scale[0] = 0.8, t.scale[1] = 1.8;
    KI_TRY(parse_numbers(s.scale, "scale", 2, t.scale, err));
    KI_TRY(parse_numbers(s.ratio, "ratio", 2, t.ratio, err));
    double ground[3] = {0};
    KI_TRY(parse_numbers(s.background, "background", 3, ground, err));
    for (int c = 0; c < 3; c++) {
        if (!(ground[c] >= 0 && ground[c] <= 255))
            return ki_fail(err, KITH_EINVAL, "input: background has %g; wanted 0 … 255", ground[c]);
        t.background[c] = (uint8_t)(ground[c] + 0.5);
    }
    KI_TRY(ki_effects_parse(s.effects, &t, err));
    kith_status status = ki_resize_parse(s.resize, &t.resize, &t.resize_to, err);
    if (status != KITH_OK) return ki_prefix(err, status, "input");
    status = kith_transform_check(&t, err);
    if (status != KITH_OK) return ki_prefix(err, status, "input");
    kith_transform test = t;
    test.crop = KITH_CROP_CENTRE;
    test.mirror = false;
    test.n_effects = 0;
    if (s.test_crop > 0) test.crop_to = (int)s.test_crop;
    if (*s.test_resize) {
        status = ki_resize_parse(s.test_resize, &test.resize, &test.resize_to, err);
        if (status != KITH_OK) return ki_prefix(err, status, "input: test_resize");
    } else if (t.crop == KITH_CROP_RESIZED || t.crop == KITH_CROP_MULTISCALE) {
        /* The usual margin around a centre crop, 256 for 224. */
        test.resize = KITH_RESIZE_SHORTER;
        test.resize_to = (test.crop_to * 8 + 6) / 7;
    }
    /* With shorterN a crop may be larger than N: it shows more of the longer side, on background. */
    const int most = test.resize == KITH_RESIZE_SHORTER ? 2 * test.resize_to : test.resize_to;
    if (s.test_crop > 0 && test.resize != KITH_RESIZE_NONE && test.crop_to > most) {
        ki_fail(err, KITH_EINVAL, "input: test_crop is %d, of test images of %d pixels", test.crop_to,
                test.resize_to);
        return ki_hint(err, KITH_EINVAL, "make test_resize larger, as in test_resize: shorter%d",
                       (test.crop_to * 8 + 6) / 7);
    }
    *ret_train = t;
    *ret_test = test;
    return KITH_OK;
}

kith_status kith_transform_open_recipe(const char *recipe_path, kith_transform *ret_train,
                                       kith_transform *ret_test, kith_error *err) {
    KI_NEED(err, recipe_path, ret_train, ret_test);
    kith_status status = KITH_OK;
    ki_arena arena = {0};
    ki_value *root = NULL;
    KI_CHECK(ki_yaml_read(recipe_path, &arena, &root, err));
    ki_value_drop_nothings(root);
    status = ki_input_parse(ki_value_get(root, "input"), ret_train, ret_test, err);
    if (status != KITH_OK) ki_prefix(err, status, "%s", recipe_path);
done:
    ki_arena_release(&arena);
    return status;
}
