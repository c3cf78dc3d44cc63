/* config.json of timm, and the table's rows. */
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

static void read_pixels(const ki_value *cfg, ki_contract *c) {
    double mean[3], std[3];
    if (!three_numbers(ki_value_get(cfg, "mean"), mean) || !three_numbers(ki_value_get(cfg, "std"), std))
        return;
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
    if (mode && mode->kind != KI_VALUE_NULL && !squashes && !is_word(mode, "center")) return;
    ki_snprintf(c->resize, sizeof c->resize, "%s%d", squashes ? "squash" : "shorter",
                (int)floor((double)c->side / part));
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        if (is_word(filter, filters[i])) ki_snprintf(c->filter, sizeof c->filter, "%s", filters[i]);
    }
}

void ki_contract_parse(const char *json, size_t n, ki_contract *ret) {
    ki_arena arena = {0};
    ki_value *root = NULL;
    ki_contract c = {.source = "config.json"};
    double size[3];
    *ret = (ki_contract){0};
    if (ki_json_parse(json, n, "config.json", &arena, &root, NULL) == KITH_OK) {
        const ki_value *cfg = ki_value_get(root, "pretrained_cfg");
        if (three_numbers(ki_value_get(cfg, "input_size"), size) && size[0] == 3 && size[1] == size[2] &&
            size[1] >= 1 && size[1] <= MOST_SIDE && size[1] == floor(size[1])) {
            c.is_there = true;
            c.side = (int64_t)size[1];
            read_pixels(cfg, &c);
            read_resize(cfg, &c);
            *ret = c;
        }
    }
    ki_arena_release(&arena);
}

/* ---- the table ---- */

/* "224 shorter235 bicubic". */
static void take_row(const ki_hub_row *row, ki_contract *ret) {
    ki_contract c = {.is_there = true, .source = "kith's table"};
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

void ki_contract_find(const char *weights, ki_contract *ret) {
    ki_path folder, config;
    char repo[KI_HUB_REPO], *text = NULL;
    size_t n = 0;
    const bool is_hub = ki_hub_repo_of_path(weights, repo);
    *ret = (ki_contract){0};
    if (folder_of(weights, is_hub, &folder) &&
        ki_path_print(&config, NULL, "%s/config.json", folder.s) == KITH_OK && ki_is_file("%s", config.s) &&
        ki_file_read(config.s, MOST_CONFIG, &text, &n, NULL) == KITH_OK) {
        ki_contract_parse(text, n, ret);
        ki_free(text);
    }
    const ki_hub_row *row = is_hub ? ki_hub_row_of_repo(repo) : NULL;
    if (row && !ret->is_there) take_row(row, ret);
}
