/* config.json of timm and of transformers, and the table's rows. */
#include "net/contract.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/path.h"
#include "base/text.h"
#include "hub/cache.h"
#include "io/file.h"
#include "io/json.h"

enum { MOST_SIDE = 4096 };
static const double usual_crop = 0.875; /* timm's DEFAULT_CROP_PCT */

/* ---- config.json ---- */

static bool number(const ki_value *value, double *ret) {
    return value && value->kind == KI_VALUE_SCALAR && !value->is_quoted && ki_parse_double(value->text, ret);
}

static bool is_word(const ki_value *value, const char *word) {
    return value && value->kind == KI_VALUE_SCALAR && value->is_quoted && strcmp(value->text, word) == 0;
}

static bool three_numbers(const ki_value *list, double ret[3]) {
    if (!list || list->kind != KI_VALUE_LIST || list->n_items != 3) return false;
    for (size_t i = 0; i < 3; i++) {
        if (!number(ki_value_at(list, i), &ret[i])) return false;
    }
    return true;
}

static bool is_said(const ki_value *value) { return value && value->kind != KI_VALUE_NULL; }

/* The first one is kept. */
static void note(ki_contract *c, const char *what, const ki_value *found) {
    if (*c->note) return;
    ki_snprintf(c->note, sizeof c->note, "%s: %s is %.60s", c->source, what, ki_config_text(found));
}

static void read_pixels(const ki_value *means, const ki_value *stds, ki_contract *c) {
    double mean[3], std[3];
    if (!is_said(means) && !is_said(stds)) return;
    if (!three_numbers(means, mean)) {
        note(c, "mean", means);
        return;
    }
    bool is_good = three_numbers(stds, std);
    for (int i = 0; i < 3 && is_good; i++) is_good = fabs(mean[i]) <= 1000 && std[i] > 1e-6 && std[i] <= 1000;
    if (!is_good) {
        note(c, "std", stds);
        return;
    }
    memcpy(c->mean, mean, sizeof mean);
    memcpy(c->std, std, sizeof std);
    c->has_pixels = true;
}

/* timm: the shorter side (or both, squashed) becomes floor(side / crop_pct), then the centre is cut out. */
static void read_resize(const ki_value *cfg, ki_contract *c) {
    const ki_value *mode = ki_value_get(cfg, "crop_mode"), *filter = ki_value_get(cfg, "interpolation");
    static const char *const filters[] = {"bilinear", "bicubic", "lanczos"};
    const ki_value *crop = ki_value_get(cfg, "crop_pct");
    double part = usual_crop;
    const bool squashes = is_word(mode, "squash"), is_number = number(crop, &part) || !is_said(crop);
    if (!is_number || !(part >= 0.1 && part <= 1) || (double)c->side / part > MOST_SIDE) {
        note(c, "crop_pct", crop);
        return;
    }
    if (is_said(mode) && !squashes && !is_word(mode, "center")) {
        note(c, "crop_mode", mode);
        return;
    }
    ki_snprintf(c->resize, sizeof c->resize, "%s%d", squashes ? "squash" : "shorter",
                (int)floor((double)c->side / part));
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        if (is_word(filter, filters[i])) ki_snprintf(c->filter, sizeof c->filter, "%s", filters[i]);
    }
    if (is_said(filter) && !*c->filter) note(c, "interpolation", filter);
}

static void read_timm(const ki_value *cfg, ki_contract *c) {
    const ki_value *sizes = ki_value_get(cfg, "input_size");
    double size[3];
    if (!three_numbers(sizes, size) || size[0] != 3 || size[1] != size[2] ||
        !(size[1] >= 1 && size[1] <= MOST_SIDE && size[1] == floor(size[1]))) {
        if (is_said(cfg)) note(c, "input_size", sizes);
        return;
    }
    c->is_there = true;
    c->source = "config.json";
    c->side = (int64_t)size[1];
    read_pixels(ki_value_get(cfg, "mean"), ki_value_get(cfg, "std"), c);
    read_resize(cfg, c);
}

kith_status ki_contract_parse(const char *json, size_t n, ki_contract *ret, kith_error *err) {
    ki_contract c = {.source = "config.json"};
    ki_value *root = NULL;
    *ret = (ki_contract){0};
    const kith_status status = ki_json_parse(json, n, "config.json", &c.arena, &root, err);
    if (status != KITH_OK) {
        ki_arena_release(&c.arena);
        return status;
    }
    c.config = root;
    read_timm(ki_value_get(root, "pretrained_cfg"), &c);
    *ret = c;
    return KITH_OK;
}

void ki_contract_release(ki_contract *contract) {
    ki_arena_release(&contract->arena);
    *contract = (ki_contract){0};
}

static const ki_value *find(const ki_contract *contract, const char *key, bool is_of_all) {
    static const char *const parts[] = {"vision_config", "backbone_config", "model_args"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const ki_value *inner = ki_value_get(ki_value_get(contract->config, parts[i]), key);
        if (inner) return inner; /* the root of CLIP's file is of both towers */
    }
    if (ki_value_get(contract->config, parts[0]) && !is_of_all) return NULL;
    return ki_value_get(contract->config, key);
}

const ki_value *ki_config_get(const ki_contract *contract, const char *key) {
    return find(contract, key, false);
}

bool ki_config_number(const ki_contract *contract, const char *key, double *ret) {
    return number(ki_config_get(contract, key), ret);
}

const char *ki_config_word(const ki_contract *contract, const char *key) {
    const ki_value *value = find(contract, key, true);
    return value && value->kind == KI_VALUE_SCALAR && value->is_quoted ? value->text : NULL;
}

const char *ki_config_text(const ki_value *value) {
    if (!value) return "missing";
    if (value->kind == KI_VALUE_SCALAR) return value->text;
    return value->kind == KI_VALUE_NULL ? "null" : value->kind == KI_VALUE_LIST ? "a list" : "a map";
}

void ki_config_check_number(const ki_contract *contract, const char *key, int64_t wanted, char *fault,
                            size_t bytes) {
    double said = 0;
    if (*fault || !ki_config_number(contract, key, &said) || said == (double)wanted) return;
    ki_snprintf(fault, bytes, "config.json says %s is %g, but that of the tensors is %lld", key, said,
                (long long)wanted);
}

void ki_config_check_word(const ki_contract *contract, const char *key, const char *wanted, char *fault,
                          size_t bytes) {
    const ki_value *value = ki_config_get(contract, key);
    if (*fault || !is_said(value) || is_word(value, wanted)) return;
    ki_snprintf(fault, bytes, "config.json says %s is %.40s; this network has %s", key, ki_config_text(value),
                wanted);
}

/* ---- preprocessor_config.json ---- */

static bool is_off(const ki_value *root, const char *key) {
    const ki_value *value = ki_value_get(root, key);
    return value && value->kind == KI_VALUE_SCALAR && strcmp(value->text, "false") == 0;
}

/* A side as older files have it, 224, or newer ones, {"height": 224, "width": 224}; 0: neither. */
static int64_t side_of(const ki_value *value) {
    double h = 0, w = 0;
    if (!number(value, &h)) {
        if (!number(ki_value_get(value, "height"), &h) || !number(ki_value_get(value, "width"), &w) || h != w)
            return 0;
    }
    return h >= 1 && h <= MOST_SIDE && h == floor(h) ? (int64_t)h : 0;
}

static void set_resize(ki_contract *c, const char *how, int64_t to) {
    ki_snprintf(c->resize, sizeof c->resize, "%s%d", how, (int)to);
}

/* ConvNeXt's own: the shorter side becomes side / crop_pct, from 384 on both are squashed. */
static void read_convnext(const ki_value *root, ki_contract *c) {
    double part = usual_crop;
    number(ki_value_get(root, "crop_pct"), &part);
    if (!(part >= 0.1 && part <= 1)) return;
    const bool squashes = c->side >= 384;
    if (!squashes && (double)c->side / part > MOST_SIDE) return;
    set_resize(c, squashes ? "squash" : "shorter", squashes ? c->side : (int64_t)((double)c->side / part));
}

/* What becomes of the sides of an image; false: it cannot be understood. */
static bool read_sides(const ki_value *root, ki_contract *c) {
    const ki_value *type = ki_value_get(root, "image_processor_type");
    if (!type) type = ki_value_get(root, "feature_extractor_type");
    const bool is_convnext = type && type->kind == KI_VALUE_SCALAR && strstr(type->text, "ConvNext");
    const ki_value *size = ki_value_get(root, "size");
    const int64_t squashed = side_of(size), shorter = side_of(ki_value_get(size, "shortest_edge"));
    const int64_t crop = is_off(root, "do_center_crop") ? 0 : side_of(ki_value_get(root, "crop_size"));
    const int64_t to = shorter ? shorter : squashed;
    if (to == 0 || is_off(root, "do_resize")) return false;
    /* a plain number is the shorter side where the image is cropped, as in CLIP's older files */
    const bool keeps_shape = shorter || (crop && size->kind == KI_VALUE_SCALAR);
    c->side = crop ? crop : to;
    if (is_convnext)
        read_convnext(root, c);
    else
        set_resize(c, keeps_shape ? "shorter" : "squash", to);
    return true;
}

/* Pixels are multiplied by a factor before mean and std, mostly by 1/255. Ours are from 0 to 1 there. */
static void read_normalisation(const ki_value *root, ki_contract *c) {
    const ki_value *said = ki_value_get(root, "rescale_factor");
    double factor = 1.0 / 255;
    if (is_said(said) && (!number(said, &factor) || !(factor > 1e-6 && factor <= 1))) {
        note(c, "rescale_factor", said);
        return;
    }
    if (is_off(root, "do_rescale")) factor = 1;
    if (is_off(root, "do_normalize")) {
        for (int i = 0; i < 3; i++) c->mean[i] = 0, c->std[i] = 1;
        c->has_pixels = true;
    } else {
        read_pixels(ki_value_get(root, "image_mean"), ki_value_get(root, "image_std"), c);
    }
    const double k = 255 * factor;
    for (int i = 0; i < 3 && fabs(k - 1) > 1e-6; i++) c->mean[i] /= k, c->std[i] /= k;
}

static void read_filter(const ki_value *root, ki_contract *c) {
    static const char *const filters[] = {[1] = "lanczos", [2] = "bilinear", [3] = "bicubic"};
    const ki_value *said = ki_value_get(root, "resample");
    double filter = 0;
    if (!is_said(said)) return;
    if (number(said, &filter) && (filter == 1 || filter == 2 || filter == 3))
        ki_snprintf(c->filter, sizeof c->filter, "%s", filters[(int)filter]);
    else
        note(c, "resample", said);
}

kith_status ki_contract_add_processor(const char *json, size_t n, ki_contract *c, kith_error *err) {
    ki_arena arena = {0};
    ki_value *root = NULL;
    const kith_status status = ki_json_parse(json, n, "preprocessor_config.json", &arena, &root, err);
    if (status == KITH_OK) {
        c->source = "preprocessor_config.json";
        c->is_there = read_sides(root, c);
        if (c->is_there) {
            read_filter(root, c);
            read_normalisation(root, c);
        } else {
            note(c, is_off(root, "do_resize") ? "do_resize" : "size",
                 ki_value_get(root, is_off(root, "do_resize") ? "do_resize" : "size"));
        }
    }
    ki_arena_release(&arena);
    return status;
}

/* ---- the table ---- */

/* "224 shorter235 bicubic". */
static void take_row(const ki_hub_row *row, ki_contract *ret) {
    ki_contract c = *ret;
    c.is_there = true;
    c.source = "kith's table";
    char side[16] = "", *to[] = {side, c.resize, c.filter};
    const char *s = row->input;
    for (size_t i = 0; i < 3; i++) {
        const size_t n = strcspn(s, " ");
        ki_snprintf(to[i], sizeof side, "%.*s", (int)n, s);
        s += n + (s[n] == ' ');
    }
    if (ki_parse_int64(side, &c.side)) *ret = c;
}

/* ---- beside the weights ---- */

/* A snapshot's file is a link, and config.json is beside the link. Any other link stands for its file. */
static bool folder_of(const char *weights, bool is_hub, ki_path *ret) {
    char whole[PATH_MAX];
    const char *path = is_hub ? weights : realpath(weights, whole);
    const char *slash = path ? strrchr(path, '/') : NULL;
    if (!path) return false;
    return ki_path_print(ret, NULL, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".") == KITH_OK;
}

/* The text of a file beside the weights; NULL: there is none. */
static kith_status read_beside(const ki_path *folder, const char *name, char **ret, size_t *ret_n,
                               kith_error *err) {
    ki_path path;
    *ret = NULL;
    if (ki_path_print(&path, NULL, "%s/%s", folder->s, name) != KITH_OK || !ki_is_file("%s", path.s))
        return KITH_OK;
    return ki_file_read(path.s, KI_HUB_MOST_CONFIG, ret, ret_n, err);
}

static kith_status find_in(const ki_path *folder, ki_contract *ret, kith_error *err) {
    char *text = NULL;
    size_t n = 0;
    KI_TRY(read_beside(folder, "config.json", &text, &n, err));
    kith_status status = text ? ki_contract_parse(text, n, ret, err) : KITH_OK;
    ki_free(text);
    if (status != KITH_OK || ret->is_there) return status;
    KI_TRY(read_beside(folder, "preprocessor_config.json", &text, &n, err));
    status = text ? ki_contract_add_processor(text, n, ret, err) : KITH_OK;
    ki_free(text);
    return status;
}

kith_status ki_contract_find(const char *weights, ki_contract *ret, kith_error *err) {
    ki_path folder;
    char repo[KI_HUB_REPO];
    const bool is_hub = ki_hub_repo_of_path(weights, repo);
    ki_contract c = {0};
    const kith_status status = folder_of(weights, is_hub, &folder) ? find_in(&folder, &c, err) : KITH_OK;
    if (status != KITH_OK) {
        ki_contract_release(&c);
        return ki_hint(err, status,
                       "it lies beside the weights and says how they are used: mend or remove it");
    }
    const ki_hub_row *row = is_hub ? ki_hub_row_of_repo(repo) : NULL;
    if (row && !c.is_there) take_row(row, &c);
    *ret = c;
    return KITH_OK;
}
