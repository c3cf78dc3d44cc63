/* Defaults written out: a recipe with every key. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "data/effect/effect.h"
#include "objective/objective.h"
#include "train/recipe.h"

static kith_status no_memory(kith_error *err) { return ki_fail_memory(err, sizeof(ki_value), "a recipe"); }

static bool in_table(const ki_option *table, const char *key) {
    for (; table->type != KI_OPTION_T_END; table++) {
        if (strcmp(table->name, key) == 0) return true;
    }
    return false;
}

/* A copy of the node under another parent; what is below it is shared. */
static kith_status append_copy(ki_arena *arena, ki_value *to, const ki_value *from, kith_error *err) {
    ki_value *copy = ki_value_new(arena, from->kind, NULL);
    if (!copy) return no_memory(err);
    *copy = *from;
    ki_value_append(to, from->key, copy);
    return KITH_OK;
}

static kith_status append_text(ki_arena *arena, ki_value *to, const char *key, const char *value,
                               kith_error *err) {
    ki_value *item = ki_value_new(arena, KI_VALUE_SCALAR, value);
    if (!item) return no_memory(err);
    ki_value_append(to, key, item);
    return KITH_OK;
}

/* Enough digits to read the same number back, whatever the locale. */
static const char *real_text(double value, char *buf, size_t buf_bytes) {
    double back = 0;
    for (int digits = 15; digits <= 17; digits += 2) {
        ki_snprintf(buf, buf_bytes, "%.*g", digits, value);
        char *comma = strchr(buf, ',');
        if (comma) *comma = '.';
        if (ki_parse_double(buf, &back) && back == value) break;
    }
    return buf;
}

static const char *default_text(const ki_option *o, char *buf, size_t buf_bytes) {
    if (o->type == KI_OPTION_T_TREE) return o->def_text ? o->def_text : "none";
    if (o->type == KI_OPTION_T_TEXT) return o->def_text ? o->def_text : "";
    if (o->type == KI_OPTION_T_REAL) return real_text(o->def, buf, buf_bytes);
    return ki_option_default_text(o, buf, buf_bytes);
}

static bool is_default(const ki_option *o, const ki_value *given) {
    char text[96];
    double a = 0, b = 0;
    if (given->kind != KI_VALUE_SCALAR) return given->kind == KI_VALUE_NULL;
    const char *def = default_text(o, text, sizeof text);
    return strcmp(given->text, def) == 0 ||
           (ki_parse_double(given->text, &a) && ki_parse_double(def, &b) && a == b);
}

/* A default that is nothing, or that must not count as a key, is shown only as a comment. */
static kith_status append_default(ki_arena *arena, ki_value *to, const ki_option *o, kith_error *err) {
    char buf[96];
    const char *text = default_text(o, buf, sizeof buf);
    if (o->type != KI_OPTION_T_TREE && !o->is_later) return append_text(arena, to, o->name, text, err);
    ki_value *item = ki_value_new(arena, KI_VALUE_NULL, text);
    if (!item) return no_memory(err);
    ki_value_append(to, o->name, item);
    return KITH_OK;
}

kith_status ki_recipe_fill(ki_arena *arena, const ki_option *table, const ki_value *map, ki_value **ret_map,
                           kith_error *err) {
    ki_value *filled = ki_value_new(arena, KI_VALUE_MAP, NULL);
    if (!filled) return no_memory(err);
    const ki_value *first = map && map->kind == KI_VALUE_MAP ? map->first : NULL;
    const ki_value *name = in_table(table, "name") ? NULL : ki_value_get(map, "name");
    if (name) KI_TRY(append_copy(arena, filled, name, err));
    for (const ki_option *o = table; o->type != KI_OPTION_T_END; o++) {
        const ki_value *given = ki_value_get(map, o->name);
        if (given && !(o->is_later && is_default(o, given)))
            KI_TRY(append_copy(arena, filled, given, err));
        else
            KI_TRY(append_default(arena, filled, o, err));
    }
    for (const ki_value *v = first; v; v = v->next) {
        if (v != name && !in_table(table, v->key)) KI_TRY(append_copy(arena, filled, v, err));
    }
    *ret_map = filled;
    return KITH_OK;
}

/* The schedule's name, and what that schedule reads: keys of another one would be errors. */
static kith_status fill_schedule(ki_arena *arena, ki_value *map, const ki_schedule_settings *settings,
                                 kith_error *err) {
    char text[96];
    if (map->kind == KI_VALUE_SCALAR) {
        const char *name = map->text;
        map->kind = KI_VALUE_MAP;
        map->text = NULL;
        KI_TRY(append_text(arena, map, "name", name, err));
    }
    if (map->kind != KI_VALUE_MAP) return KITH_OK;
    if (settings->name == KI_SCHEDULE_STEP && !ki_value_get(map, "factor"))
        KI_TRY(append_text(arena, map, "factor", real_text(settings->factor, text, sizeof text), err));
    if (settings->name == KI_SCHEDULE_COSINE && !ki_value_get(map, "final"))
        KI_TRY(append_text(arena, map, "final", real_text(settings->final, text, sizeof text), err));
    return KITH_OK;
}

kith_status ki_recipe_fill_optim(ki_arena *arena, const ki_value *section, ki_value **ret_map,
                                 kith_error *err) {
    ki_optim_settings settings;
    ki_value *common = NULL, *named = NULL;
    KI_TRY(ki_optim_parse(section, &settings, err));
    KI_TRY(ki_recipe_fill(arena, settings.method->options, section, &common, err));
    KI_TRY(ki_recipe_fill(arena, ki_optim_options, common, &named, err));
    if (!ki_value_get(section, "name")) {
        ki_value *with_name = ki_value_new(arena, KI_VALUE_MAP, NULL);
        if (!with_name) return no_memory(err);
        KI_TRY(append_text(arena, with_name, "name", settings.method->name, err));
        for (const ki_value *v = named->first; v; v = v->next) KI_TRY(append_copy(arena, with_name, v, err));
        named = with_name;
    }
    KI_TRY(fill_schedule(arena, (ki_value *)ki_value_get(named, "schedule"), &settings.schedule, err));
    *ret_map = named;
    return KITH_OK;
}

/* {name: …} of a method that may be written as its name alone. */
static kith_status as_map(ki_arena *arena, const ki_value *v, const char *none, ki_value **ret,
                          kith_error *err) {
    ki_value *map = ki_value_new(arena, KI_VALUE_MAP, NULL);
    if (!map) return no_memory(err);
    *ret = map;
    if (!v) return append_text(arena, map, "name", none, err);
    if (v->kind == KI_VALUE_SCALAR) return append_text(arena, map, "name", v->text, err);
    *map = *v;
    return KITH_OK;
}

static const char *name_of(const ki_value *map) { return ki_value_get(map, "name")->text; }

static kith_status append_bool(ki_arena *arena, ki_value *to, const char *key, bool value, kith_error *err) {
    if (ki_value_get(to, key)) return KITH_OK;
    return append_text(arena, to, key, value ? "true" : "false", err);
}

static kith_status fill_loss(ki_arena *arena, const ki_value *given, ki_value **ret, kith_error *err) {
    const ki_loss *loss = NULL;
    ki_value *map = NULL;
    KI_TRY(as_map(arena, given, "none", &map, err));
    if (strcmp(name_of(map), "none") == 0) return *ret = map, KITH_OK;
    KI_TRY(ki_loss_find(name_of(map), &loss, err));
    KI_TRY(ki_recipe_fill(arena, loss->method.options, map, ret, err));
    return append_bool(arena, *ret, "normalize", !loss->no_normalize, err);
}

static kith_status fill_miner(ki_arena *arena, const ki_value *given, ki_value **ret, kith_error *err) {
    const ki_miner *miner = NULL;
    ki_value *map = NULL;
    KI_TRY(as_map(arena, given, "all", &map, err));
    KI_TRY(ki_miner_find(name_of(map), &miner, err));
    return ki_recipe_fill(arena, miner->method.options, map, ret, err);
}

static kith_status fill_reg(ki_arena *arena, const ki_value *given, ki_value **ret, kith_error *err) {
    const ki_reg *reg = NULL;
    ki_value *map = NULL;
    KI_TRY(as_map(arena, given, "none", &map, err));
    KI_TRY(ki_reg_find(name_of(map), &reg, err));
    KI_TRY(ki_recipe_fill(arena, reg->method.options, map, ret, err));
    if (!ki_value_get(*ret, "weight")) KI_TRY(append_text(arena, *ret, "weight", "1", err));
    if (!ki_value_get(*ret, "warmup")) KI_TRY(append_text(arena, *ret, "warmup", "0", err));
    KI_TRY(append_bool(arena, *ret, "normalize", reg->normalize, err));
    return append_bool(arena, *ret, "stops_at_embedding", reg->stops_at_embedding, err);
}

kith_status ki_recipe_fill_input(ki_arena *arena, const ki_option *table, const ki_value *section,
                                 ki_value **ret_map, kith_error *err) {
    KI_TRY(ki_recipe_fill(arena, table, section, ret_map, err));
    ki_value *effects = (ki_value *)ki_value_get(*ret_map, "effects");
    ki_value *list = ki_value_new(arena, KI_VALUE_LIST, NULL);
    if (!list) return no_memory(err);
    if (!effects || effects->kind != KI_VALUE_LIST) return KITH_OK;
    for (const ki_value *v = effects->first; v; v = v->next) {
        const ki_effect_kind *kind = NULL;
        ki_value *map = NULL, *filled = NULL;
        KI_TRY(as_map(arena, v, "none", &map, err));
        KI_TRY(ki_effect_find(name_of(map), &kind, err));
        KI_TRY(ki_recipe_fill(arena, kind->options, map, &filled, err));
        ki_value_append(list, NULL, filled);
    }
    effects->first = list->first;
    effects->last = list->last;
    return KITH_OK;
}

kith_status ki_recipe_fill_objective(ki_arena *arena, const ki_value *section, ki_value **ret_map,
                                     kith_error *err) {
    ki_value *map = ki_value_new(arena, KI_VALUE_MAP, NULL), *loss = NULL, *miner = NULL;
    ki_value *regs = ki_value_new(arena, KI_VALUE_LIST, NULL);
    if (!map || !regs) return no_memory(err);
    KI_TRY(fill_loss(arena, ki_value_get(section, "loss"), &loss, err));
    KI_TRY(fill_miner(arena, ki_value_get(section, "miner"), &miner, err));
    ki_value_append(map, "loss", loss);
    ki_value_append(map, "miner", miner);
    const ki_value *memory = ki_value_get(section, "memory");
    if (memory) {
        KI_TRY(append_copy(arena, map, memory, err));
    } else {
        ki_value *none = ki_value_new(arena, KI_VALUE_NULL, "{size: …, warmup: 1000}");
        if (!none) return no_memory(err);
        ki_value_append(map, "memory", none);
    }
    static const char *const widths[] = {"nested", "nested_weights"};
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        const ki_value *given = ki_value_get(section, widths[i]);
        if (given && given->n_items > 0) KI_TRY(append_copy(arena, map, given, err));
    }
    const ki_value *list = ki_value_get(section, "regularizers");
    for (const ki_value *v = list ? list->first : NULL; v; v = v->next) {
        ki_value *reg = NULL;
        KI_TRY(fill_reg(arena, v, &reg, err));
        ki_value_append(regs, NULL, reg);
    }
    ki_value_append(map, "regularizers", regs);
    *ret_map = map;
    return KITH_OK;
}
