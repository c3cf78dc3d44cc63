/* What of the network learns: model.freeze and model.lora. */
#include <string.h>

#include "train/recipe.h"

const ki_option ki_recipe_lora_options[] = {
    KI_OPTION_INT(ki_recipe_lora, rank, 8, 1, 1024, "of the additions", "Hu et al. 2022, section 7.2: 4, 8"),
    KI_OPTION_REAL(ki_recipe_lora, alpha, 16, 1e-6, 1e6, "they are multiplied by alpha / rank", "ours: 2"),
    KI_OPTION_TREE(ki_recipe_lora, layers, "all linear layers of the backbone",
                   "names of linear layers or what these end with, as [attn.qkv, mlp.*]",
                   "Dettmers et al. 2023"),
    KI_OPTION_END};

static kith_status read_layers(ki_recipe *r, const ki_value *list, kith_error *err) {
    char found[80];
    if (!list || list->kind == KI_VALUE_NULL) return KITH_OK;
    for (const ki_value *v = list->kind == KI_VALUE_LIST ? list->first : NULL; v; v = v->next) {
        if (v->kind != KI_VALUE_SCALAR || r->adapt.n_layers == KI_MOST_LORA_LAYERS) break;
        r->lora_layer[r->adapt.n_layers++] = v->text;
    }
    if (list->kind == KI_VALUE_LIST && list->n_items > 0 && list->n_items == (size_t)r->adapt.n_layers)
        return KITH_OK;
    ki_fail(err, KITH_EINVAL, "model.lora: layers is %s; wanted a list of 1 to %d names",
            ki_value_describe(list, found, sizeof found), KI_MOST_LORA_LAYERS);
    return ki_hint(err, KITH_EINVAL, "as in [attn.qkv, attn.proj]; leave it out for all linear layers");
}

kith_status ki_recipe_read_adaptation(ki_recipe *r, kith_error *err) {
    const ki_value *given = r->model.lora;
    char found[80];
    ki_recipe_lora lora;
    r->adapt = (ki_adaptation){.freeze = r->model.freeze, .layers = r->lora_layer};
    if (!given || given->kind == KI_VALUE_NULL) return KITH_OK;
    if (given->kind != KI_VALUE_MAP) {
        ki_fail(err, KITH_EINVAL, "model: lora is %s", ki_value_describe(given, found, sizeof found));
        return ki_hint(err, KITH_EINVAL, "write a map, as in lora: {rank: 8}");
    }
    KI_TRY(ki_options_parse(ki_recipe_lora_options, given, NULL, "model.lora", &lora, err));
    r->adapt.rank = lora.rank;
    r->adapt.alpha = lora.alpha;
    return read_layers(r, lora.layers, err);
}

kith_status ki_recipe_fill_model(ki_arena *arena, const ki_option *table, const ki_value *section,
                                 ki_value **ret_map, kith_error *err) {
    ki_value *lora = NULL;
    KI_TRY(ki_recipe_fill(arena, table, section, ret_map, err));
    for (ki_value *v = (*ret_map)->first; v; v = v->next) {
        if (v->kind != KI_VALUE_MAP || strcmp(v->key, "lora") != 0) continue;
        KI_TRY(ki_recipe_fill(arena, ki_recipe_lora_options, v, &lora, err));
        v->first = lora->first;
        v->last = lora->last;
        v->n_items = lora->n_items;
    }
    return KITH_OK;
}
