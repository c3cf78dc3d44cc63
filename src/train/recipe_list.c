/* Sections of a recipe that are lists: teachers, and several data sets. */
#include <limits.h>
#include <string.h>

#include "base/text.h"
#include "hub/name.h"
#include "net/model_file.h"
#include "train/recipe.h"

/* `own`, then ki_pooling_names. */
static const char *const teacher_pools[] = {"own",   "avg",       "max",       "both", "gem",
                                            "class", "class_avg", "attention", NULL};
_Static_assert(sizeof teacher_pools / sizeof teacher_pools[0] == KI_N_POOLINGS + 2, "every pooling");

const ki_option ki_recipe_teacher_options[] = {
    KI_OPTION_TEXT(ki_recipe_teacher, weights, "", "a safetensors file, a run or hub:NAME", "ours"),
    KI_OPTION_TEXT(ki_recipe_teacher, backbone, "", "the network, where the file does not say it", "ours"),
    KI_OPTION_CHOICE(ki_recipe_teacher, pool, KI_POOL_OF_FILE, teacher_pools,
                     "pooling of its last feature map; own: as its file says, else avg", "ours"),
    KI_OPTION_TREE(ki_recipe_teacher, settings, "{}", "the backbone's own options", "ours"), KI_OPTION_END};

const char *ki_recipe_teacher_pool(const ki_recipe_teacher *teacher) {
    return teacher->pool == KI_POOL_OF_FILE ? NULL : teacher_pools[teacher->pool];
}

kith_status ki_recipe_settings_text(const ki_value *map, char *ret, size_t bytes, kith_error *err) {
    size_t used = 0;
    ret[0] = '\0';
    for (const ki_value *v = map ? map->first : NULL; v; v = v->next) {
        const int n = ki_snprintf(ret + used, bytes - used, "%s%s=%s", used ? "," : "", v->key,
                                  v->kind == KI_VALUE_SCALAR ? v->text : "");
        if (n < 0 || (size_t)n >= bytes - used) return ki_fail(err, KITH_EINVAL, "settings is too long");
        used += (size_t)n;
    }
    return KITH_OK;
}

static kith_status read_teacher(ki_recipe *r, const ki_value *v, int t, kith_error *err) {
    ki_recipe_teacher *teacher = &r->teacher[t];
    char where[32], found[80], file[PATH_MAX];
    ki_snprintf(where, sizeof where, "teachers.%d", t);
    if (v->kind != KI_VALUE_MAP) {
        ki_fail(err, KITH_EINVAL, "%s is %s", where, ki_value_describe(v, found, sizeof found));
        return ki_hint(err, KITH_EINVAL, "write a map, as in teachers: [{weights: FILE}]");
    }
    KI_TRY(ki_options_parse(ki_recipe_teacher_options, v, NULL, where, teacher, err));
    if (!*teacher->weights) {
        ki_fail(err, KITH_EINVAL, "%s has no weights", where);
        return ki_hint(err, KITH_EINVAL, "name its file, as in teachers: [{weights: FILE}]");
    }
    const kith_status status = ki_model_file_find(teacher->weights, file, sizeof file, err);
    /* Opening it says why not; a recipe may be read where its weights are not. */
    if (status == KITH_ENOTFOUND && ki_hub_is_name(teacher->weights)) return KITH_OK;
    if (status != KITH_OK) return ki_prefix(err, status, "%s.weights", where);
    teacher->weights = ki_arena_strdup(&r->arena, file);
    return teacher->weights ? KITH_OK : ki_fail_memory(err, strlen(file), "a path");
}

kith_status ki_recipe_read_teachers(ki_recipe *r, kith_error *err) {
    const ki_value *list = r->teachers_list;
    char found[80];
    r->n_teachers = 0;
    if (!list || list->kind == KI_VALUE_NULL) return KITH_OK;
    if (list->kind != KI_VALUE_LIST) {
        ki_fail(err, KITH_EINVAL, "teachers is %s; wanted a list",
                ki_value_describe(list, found, sizeof found));
        return ki_hint(err, KITH_EINVAL, "write one line `- {weights: FILE}` for each");
    }
    if (list->n_items > KI_MOST_TEACHERS)
        return ki_fail(err, KITH_EINVAL, "teachers has %zu items; at most %d are possible", list->n_items,
                       KI_MOST_TEACHERS);
    for (const ki_value *v = list->first; v; v = v->next) KI_TRY(read_teacher(r, v, r->n_teachers++, err));
    return KITH_OK;
}

kith_status ki_recipe_check_teachers(const ki_recipe *r, const ki_objective *objective, kith_error *err) {
    for (int t = 0; t < r->n_teachers; t++) {
        if (ki_objective_taps(objective) & KI_TAP_BIT(ki_tap_of_teacher(t))) continue;
        ki_fail(err, KITH_EINVAL, "teachers.%d: no term of the objective learns from it", t);
        return ki_hint(err, KITH_EINVAL,
                       "add a regularizer with teacher: %d (`kith list regularizers`), or leave it out", t);
    }
    return KITH_OK;
}

kith_status ki_recipe_fill_list(ki_arena *arena, const ki_option *table, ki_value *list, kith_error *err) {
    for (ki_value *v = list->first; v; v = v->next) {
        ki_value *filled = NULL;
        KI_TRY(ki_recipe_fill(arena, table, v, &filled, err));
        v->kind = KI_VALUE_MAP;
        v->text = NULL;
        v->first = filled->first;
        v->last = filled->last;
        v->n_items = filled->n_items;
    }
    return KITH_OK;
}
