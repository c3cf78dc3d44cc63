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

enum { MOST_CONFIG = 1 << 20, MOST_SIDE = 4096 };
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

static void read_pixels(const ki_value *means, const ki_value *stds, ki_contract *c) {
    double mean[3], std[3];
    if (!three_numbers(means, mean) || !three_numbers(stds, std)) return;
    for (int i = 0; i < 3; i++) {
        if (!(fabs(mean[i]) <= 100 && std[i] > 1e-6 && std[i] <= 100)) return;
    }
    memcpy(c->mean, mean, sizeof mean);
    memcpy(c->std, std, sizeof std);
    c->has_pixels = true;
}

/* timm: the shorter side (or both, squashed) becomes floor(side / crop_pct), then the centre is cut out. */
static void read_resize(const ki_value *cfg, ki_contract *c) {
    const ki_value *mode = ki_value_get(cfg, "crop_mode"), *filter = ki_value_get(cfg, "interpolation");
    static const char *const filters[] = {"bilinear", "bicubic", "lanczos"};
    double part = usual_crop;
    if (number(ki_value_get(cfg, "crop_pct"), &part) && !(part >= 0.1 && part <= 1)) return;
    const bool squashes = is_word(mode, "squash");
    if ((double)c->side / part > MOST_SIDE) return;
    if (mode && mode->kind != KI_VALUE_NULL && !squashes && !is_word(mode, "center")) return;
    ki_snprintf(c->resize, sizeof c->resize, "%s%d", squashes ? "squash" : "shorter",
                (int)floor((double)c->side / part));
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        if (is_word(filter, filters[i])) ki_snprintf(c->filter, sizeof c->filter, "%s", filters[i]);
    }
}

static void read_timm(const ki_value *cfg, ki_contract *c) {
    double size[3];
    if (!three_numbers(ki_value_get(cfg, "input_size"), size) || size[0] != 3 || size[1] != size[2] ||
        !(size[1] >= 1 && size[1] <= MOST_SIDE && size[1] == floor(size[1])))
        return;
    c->is_there = true;
    c->source = "config.json";
    c->side = (int64_t)size[1];
    read_pixels(ki_value_get(cfg, "mean"), ki_value_get(cfg, "std"), c);
    read_resize(cfg, c);
}

void ki_contract_parse(const char *json, size_t n, ki_contract *ret) {
    ki_contract c = {.source = "config.json"};
    ki_value *root = NULL;
    *ret = (ki_contract){0};
    if (ki_json_parse(json, n, "config.json", &c.arena, &root, NULL) != KITH_OK) {
        ki_arena_release(&c.arena);
        return;
    }
    c.config = root;
    read_timm(ki_value_get(root, "pretrained_cfg"), &c);
    *ret = c;
}

void ki_contract_release(ki_contract *contract) {
    ki_arena_release(&contract->arena);
    *contract = (ki_contract){0};
}

const ki_value *ki_config_get(const ki_contract *contract, const char *key) {
    static const char *const parts[] = {"vision_config", "backbone_config", "model_args"};
    const ki_value *found = ki_value_get(contract->config, key);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const ki_value *inner = ki_value_get(ki_value_get(contract->config, parts[i]), key);
        if (inner) return inner; /* the root of CLIP's file is of both towers */
    }
    return found;
}

bool ki_config_number(const ki_contract *contract, const char *key, double *ret) {
    return number(ki_config_get(contract, key), ret);
}

const char *ki_config_word(const ki_contract *contract, const char *key) {
    const ki_value *value = ki_config_get(contract, key);
    return value && value->kind == KI_VALUE_SCALAR && value->is_quoted ? value->text : NULL;
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

void ki_contract_add_processor(const char *json, size_t n, ki_contract *c) {
    static const char *const filters[] = {[1] = "lanczos", [2] = "bilinear", [3] = "bicubic"};
    ki_arena arena = {0};
    ki_value *root = NULL;
    double filter = 0;
    if (ki_json_parse(json, n, "preprocessor_config.json", &arena, &root, NULL) == KITH_OK &&
        read_sides(root, c)) {
        c->is_there = true;
        c->source = "preprocessor_config.json";
        if (number(ki_value_get(root, "resample"), &filter) && filter >= 1 && filter <= 3)
            ki_snprintf(c->filter, sizeof c->filter, "%s", filters[(int)filter]);
        if (!is_off(root, "do_normalize"))
            read_pixels(ki_value_get(root, "image_mean"), ki_value_get(root, "image_std"), c);
    }
    ki_arena_release(&arena);
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

/* The text of a file beside the weights, or NULL. */
static char *read_beside(const ki_path *folder, const char *name, size_t *ret_n) {
    ki_path path;
    char *text = NULL;
    if (ki_path_print(&path, NULL, "%s/%s", folder->s, name) != KITH_OK || !ki_is_file("%s", path.s) ||
        ki_file_read(path.s, MOST_CONFIG, &text, ret_n, NULL) != KITH_OK)
        return NULL;
    return text;
}

void ki_contract_find(const char *weights, ki_contract *ret) {
    ki_path folder;
    char repo[KI_HUB_REPO], *text = NULL;
    size_t n = 0;
    const bool is_hub = ki_hub_repo_of_path(weights, repo);
    const bool has_folder = folder_of(weights, is_hub, &folder);
    *ret = (ki_contract){0};
    if (has_folder && (text = read_beside(&folder, "config.json", &n))) ki_contract_parse(text, n, ret);
    ki_free(text);
    text = NULL;
    if (has_folder && !ret->is_there && (text = read_beside(&folder, "preprocessor_config.json", &n)))
        ki_contract_add_processor(text, n, ret);
    ki_free(text);
    const ki_hub_row *row = is_hub ? ki_hub_row_of_repo(repo) : NULL;
    if (row && !ret->is_there) take_row(row, ret);
}
