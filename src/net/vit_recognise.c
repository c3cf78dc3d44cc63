/* Which vision transformer a file holds: from the shapes of its tensors, the library whose names they have, and its config.json. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "net/vit.h"

extern const ki_naming ki_names_vit_transformers, ki_names_vit_dinov2, ki_names_vit_clip, ki_names_vit_siglip,
    ki_names_vit_torchvision, ki_names_vit_openai, ki_names_vit_timm, ki_names_vit_dinov2_original;

/* ---- the text ---- */

static void append(ki_recognised *r, const char *key, const char *value) {
    const size_t used = strlen(r->settings);
    ki_snprintf(r->settings + used, sizeof r->settings - used, "%s%s=%s", used ? "," : "", key, value);
}

static void append_int(ki_recognised *r, const char *key, int64_t value) {
    char text[24];
    ki_snprintf(text, sizeof text, "%lld", (long long)value);
    append(r, key, text);
}

static void append_switch(ki_recognised *r, const char *key, bool is_on) {
    append(r, key, ki_vit_switches[is_on ? KI_VIT_YES : KI_VIT_NO]);
}

static bool has(const ki_named *t, const char *name) {
    kith_array shape;
    return ki_named_get(t, name, &shape);
}

/* ---- what the library says ---- */

/* The first key that config.json has, of those that libraries have for the same; NULL: none. */
static const char *key_of(const ki_contract *config, const char *const *keys) {
    for (; *keys; keys++) {
        const ki_value *value = ki_config_get(config, *keys);
        if (value && value->kind != KI_VALUE_NULL) return *keys;
    }
    return NULL;
}

static void blame(ki_recognised *r, const ki_contract *config, const char *key, const char *wanted) {
    if (*r->fault) return;
    ki_snprintf(r->fault, sizeof r->fault, "config.json says %s is %.40s; wanted %s", key,
                ki_config_text(ki_config_get(config, key)), wanted);
}

static ki_vit_kind kind_of(const ki_named *t, const ki_contract *config, int64_t patch) {
    const ki_naming *table = ki_named_table(t);
    const char *type = ki_config_word(config, "model_type");
    if (table == &ki_names_vit_clip || table == &ki_names_vit_openai || has(t, "norm_pre.weight"))
        return KI_VIT_CLIP;
    if (table == &ki_names_vit_siglip || has(t, "attn_pool.probe.weight")) return KI_VIT_SIGLIP;
    if (table == &ki_names_vit_dinov2 || table == &ki_names_vit_dinov2_original) return KI_VIT_DINOV2;
    if (has(t, "blocks.0.ls1.gamma") && patch == 14) return KI_VIT_DINOV2;
    if (table == &ki_names_vit_transformers && type && strcmp(type, "deit") == 0) return KI_VIT_DEIT;
    if (table == &ki_names_vit_transformers || ki_config_word(config, "architecture")) return KI_VIT_PLAIN;
    if (table == &ki_names_vit_timm && !has(t, "head.weight")) return KI_VIT_DINO;
    return KI_VIT_DEIT;
}

/* How the library itself would resample positions. */
static const char *positions_of(const ki_named *t, ki_vit_kind kind, const ki_contract *config) {
    const ki_naming *table = ki_named_table(t);
    const bool has_registers = has(t, "tokens.registers");
    if (table == &ki_names_vit_timm && ki_config_word(config, "architecture")) return "antialias";
    if (kind == KI_VIT_DINOV2 && has_registers) return "antialias";
    if (table == &ki_names_vit_transformers || table == &ki_names_vit_dinov2) return "bicubic";
    return "auto";
}

static const char *act_of(const ki_named *t, const ki_contract *config, ki_recognised *r) {
    static const char *const keys[] = {"hidden_act", "act_layer", NULL};
    static const struct {
        const char *theirs, *ours;
    } words[] = {{"gelu", "gelu"},           {"gelu_pytorch_tanh", "gelu_tanh"},
                 {"gelu_new", "gelu_tanh"},  {"gelu_fast", "gelu_tanh"},
                 {"gelu_tanh", "gelu_tanh"}, {"quick_gelu", "quick_gelu"}};
    const char *architecture = ki_config_word(config, "architecture");
    const char *key = key_of(config, keys), *word = key ? ki_config_word(config, key) : NULL;
    for (size_t i = 0; word && i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(word, words[i].theirs) == 0) return words[i].ours;
    }
    if (key) blame(r, config, key, "gelu, gelu_pytorch_tanh or quick_gelu");
    /* One that would be several settings must not get there. */
    if (word) return strpbrk(word, ",=") ? "?" : word;
    if (architecture && strstr(architecture, "so400m")) return "gelu_tanh";
    if (architecture) return strstr(architecture, "quickgelu") ? "quick_gelu" : "gelu";
    return ki_named_table(t) == &ki_names_vit_timm ? "gelu" : "auto";
}

/* 64 numbers for each head, but for a few sizes. */
static int64_t heads_of(int64_t width, const ki_contract *config, ki_recognised *r) {
    static const char *const keys[] = {"num_attention_heads", "num_heads", "heads", NULL};
    static const int64_t of_16[] = {1152, 1280, 1408, 1664}; /* so400m, huge, giant, bigG */
    const char *key = key_of(config, keys);
    double n = 0;
    if (key) {
        const bool is_whole =
            ki_config_number(config, key, &n) && n >= 1 && n <= (double)width && n == floor(n);
        if (is_whole && width % (int64_t)n == 0) return (int64_t)n;
        char wanted[60];
        ki_snprintf(wanted, sizeof wanted, "a divisor of the width, %lld", (long long)width);
        blame(r, config, key, wanted);
    }
    for (size_t i = 0; i < sizeof of_16 / sizeof of_16[0]; i++) {
        if (width == of_16[i]) return 16;
    }
    return width >= 64 ? width / 64 : 1;
}

static void append_eps(const ki_contract *config, ki_recognised *r) {
    static const char *const keys[] = {"layer_norm_eps", "norm_eps", NULL};
    const char *key = key_of(config, keys);
    double eps = 0;
    char text[40];
    if (!key) return;
    if (!ki_config_number(config, key, &eps) || !(eps > 0 && eps < 1)) {
        blame(r, config, key, "a number above 0 and below 1");
        return;
    }
    ki_snprintf(text, sizeof text, "%.9g", eps);
    append(r, "eps", text);
}

static void append_pixels(const ki_contract *config, ki_recognised *r) {
    static const double mean[] = {0.485, 0.5, 0.48145466}; /* of red: imagenet, half, clip */
    for (int i = 0; config->has_pixels && i < 3; i++) {
        if (fabs(config->mean[0] - mean[i]) < 1e-4) append(r, "pixels", ki_vit_pixels[i + 1]);
    }
}

/* ---- what the shapes say ---- */

/* The side of the grid, and whether the class token has a row of its own: n = side^2 or 1 + side^2. */
static bool read_positions(const ki_named *t, bool has_class, int64_t *ret_side, bool *ret_class_position) {
    const int64_t n = ki_named_extent(t, "tokens.positions", -2);
    for (int own = 0; own <= has_class; own++) {
        const int64_t side = n > own ? (int64_t)(sqrt((double)(n - own)) + 0.5) : 0;
        if (side < 1 || side * side != n - own) continue;
        *ret_side = side;
        *ret_class_position = own == 1;
        return true;
    }
    return false;
}

/* A config.json of a network of other sizes is not this file's, and its heads would be wrong, too. */
static void check_sizes(const ki_named *t, const ki_contract *config, ki_recognised *r) {
    const int64_t width = ki_named_extent(t, "blocks.0.norm1.weight", -1);
    const struct {
        const char *key;
        int64_t wanted;
    } rows[] = {{"hidden_size", width},
                {"num_features", width},
                {"num_hidden_layers", ki_named_depth(t, "blocks.#.norm1.weight")},
                {"patch_size", ki_named_extent(t, "patch_embed.proj.weight", -1)},
                {"intermediate_size", ki_named_extent(t, "blocks.0.mlp.fc2.weight", -1)}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ki_config_check_number(config, rows[i].key, rows[i].wanted, r->fault, sizeof r->fault);
}

static void append_shapes(const ki_named *t, const ki_contract *config, int64_t patch, int64_t side,
                          bool has_class, ki_recognised *r) {
    const int64_t width = ki_named_extent(t, "blocks.0.norm1.weight", -1);
    const int64_t mlp = ki_named_extent(t, "blocks.0.mlp.fc2.weight", -1);
    const int64_t fc1 = ki_named_extent(t, "blocks.0.mlp.fc1.weight", 0);
    append_int(r, "width", width);
    append_int(r, "depth", ki_named_depth(t, "blocks.#.norm1.weight"));
    append_int(r, "heads", heads_of(width, config, r));
    append_int(r, "patch", patch);
    append_int(r, "mlp", mlp);
    append_int(r, "registers", ki_named_extent(t, "tokens.registers", -2));
    append_int(r, "grid", side);
    append_switch(r, "class_token", has_class);
    append_switch(r, "pre_norm", has(t, "norm_pre.weight"));
    append_switch(r, "patch_bias", has(t, "patch_embed.proj.bias"));
    append_switch(r, "attention_pool", has(t, "attn_pool.probe.weight"));
    append(r, "final_norm", has(t, "norm.weight") ? "true" : "false");
    append(r, "qkv_bias", has(t, "blocks.0.attn.qkv.bias") ? "true" : "false");
    append(r, "swiglu", fc1 > 0 && fc1 == 2 * mlp ? "true" : "false");
    append(r, "layer_scale", has(t, "blocks.0.ls1.gamma") ? "1e-05" : "0");
}

bool ki_vit_recognise(const ki_backbone *self, const ki_named *t, const ki_contract *config,
                      ki_recognised *ret) {
    ki_recognised r = {.settings = ""};
    const bool has_class = has(t, "tokens.class");
    const int64_t width = ki_named_extent(t, "blocks.0.norm1.weight", -1);
    const int64_t patch = ki_named_extent(t, "patch_embed.proj.weight", -1);
    int64_t side = 0;
    bool has_class_position = false;
    if (width < 1 || patch < 1 || !read_positions(t, has_class, &side, &has_class_position)) return false;
    const ki_vit_kind kind = kind_of(t, config, patch);
    check_sizes(t, config, &r);
    append(&r, "kind", ki_vit_kinds[kind]);
    append_shapes(t, config, patch, side, has_class, &r);
    append_switch(&r, "class_position", has_class_position);
    append(&r, "act", act_of(t, config, &r));
    append(&r, "positions", positions_of(t, kind, config));
    append_eps(config, &r);
    append_pixels(config, &r);
    r.pool = has(t, "attn_pool.probe.weight") ? KI_POOLING_ATTENTION
             : has_class                      ? KI_POOLING_CLASS
                                              : KI_POOLING_AVG;
    r.side = kind == KI_VIT_DINOV2 ? 0 : side * patch;
    ki_vit_settings own;
    ki_options_default(self->options, &own);
    r.sureness = 1 / (1 + fabs(log((double)width / (double)own.width)));
    *ret = r;
    return true;
}
