/* --set a.b=c: one value of the tree, found by its path. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "io/yaml.h"
#include "train/recipe.h"

enum { MOST_NAMES = 64 };

static kith_status fail_path(kith_error *err, const char *text, const char *why) {
    ki_fail(err, KITH_EINVAL, "--set %.120s: %s", text, why);
    return ki_hint(err, KITH_EINVAL,
                   "write key=value with dots between keys, as in optim.lr=1e-4 or "
                   "objective.regularizers.0.weight=0.2");
}

/* `loss: binomial` becomes {name: binomial}, so that options can be put beside the name. */
static kith_status make_map(ki_arena *arena, ki_value *at, kith_error *err) {
    const char *name = at->kind == KI_VALUE_SCALAR ? at->text : NULL;
    at->kind = KI_VALUE_MAP;
    at->text = NULL;
    if (!name) return KITH_OK;
    ki_value *entry = ki_value_new(arena, KI_VALUE_SCALAR, name);
    if (!entry) return ki_fail_memory(err, sizeof *entry, "a recipe");
    ki_value_append(at, "name", entry);
    return KITH_OK;
}

/* The entry `key` of a map or list; if it does not exist, it is made, without a value. */
static kith_status enter(ki_arena *arena, ki_value *at, const char *key, const char *text, ki_value **ret,
                         kith_error *err) {
    int64_t number = 0;
    const bool is_number = ki_parse_int64(key, &number) && number >= 0;
    if (at->kind != KI_VALUE_LIST && at->kind != KI_VALUE_MAP) KI_TRY(make_map(arena, at, err));
    if (at->kind == KI_VALUE_LIST) {
        if (!is_number || (size_t)number > at->n_items)
            return fail_path(err, text, "there is no such item in the list");
        *ret = (ki_value *)ki_value_at(at, (size_t)number);
    } else {
        *ret = (ki_value *)ki_value_get(at, key);
    }
    if (*ret) return KITH_OK;
    *ret = ki_value_new(arena, KI_VALUE_NULL, NULL);
    const char *kept = ki_arena_strdup(arena, key);
    if (!*ret || !kept) return ki_fail_memory(err, sizeof **ret, "a recipe");
    ki_value_append(at, at->kind == KI_VALUE_MAP ? kept : NULL, *ret);
    return KITH_OK;
}

kith_status ki_recipe_set(ki_arena *arena, ki_value *root, const char *text, kith_error *err) {
    const char *equals = strchr(text, '=');
    if (!equals || equals == text) return fail_path(err, text, "there is no '='");
    char *path = ki_arena_strndup(arena, text, (size_t)(equals - text));
    if (!path) return ki_fail_memory(err, strlen(text), "a recipe");
    ki_value *at = root, *value = NULL;
    for (char *key = path; key;) {
        char *dot = strchr(key, '.');
        if (dot) *dot = '\0';
        if (!*key) return fail_path(err, text, "a key is empty");
        KI_TRY(enter(arena, at, key, text, &at, err));
        key = dot ? dot + 1 : NULL;
    }
    KI_TRY(ki_yaml_parse(equals + 1, strlen(equals + 1), "--set", arena, &value, err));
    at->kind = value->kind;
    at->text = value->text;
    at->first = value->first;
    at->last = value->last;
    at->n_items = value->n_items;
    return KITH_OK;
}
