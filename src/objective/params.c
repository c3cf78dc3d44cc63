/* Parameters that methods own: collecting, sharing, initialising. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "base/text.h"
#include "objective/proxy/proxies.h"
#include "objective/state.h"

kith_status ki_fail_size(kith_error *err, const char *method, const char *what) {
    ki_fail(err, KITH_EINVAL, "%s needs %s, which is not known here", method, what);
    return ki_hint(err, KITH_EINVAL,
                   "give it with the objective's sizes, or with the state or tap it comes from");
}

static kith_status append(ki_state ***items, size_t *n, size_t *capacity, ki_state *param, kith_error *err) {
    KI_TRY(ki_grow(items, capacity, *n + 1, sizeof **items, "parameters", err));
    (*items)[(*n)++] = param;
    return KITH_OK;
}

kith_status ki_state_add(ki_state_list *list, const char *name, ki_shape shape, ki_init init, double a,
                         double lr_multiplier, kith_error *err) {
    return ki_state_add_part(list, name, shape, 0, shape.dim[0], init, a, lr_multiplier, err);
}

kith_status ki_state_add_part(ki_state_list *list, const char *plain_name, ki_shape whole, int64_t first,
                              int64_t n, ki_init init, double a, double lr_multiplier, kith_error *err) {
    ki_shape shape = whole;
    shape.dim[0] = n;
    char found[64], wanted[64], name[sizeof(((ki_state *)NULL)->name) + 1];
    ki_snprintf(name, sizeof name, "%s%s%s", list->prefix ? list->prefix : "", list->prefix ? "." : "",
                plain_name);
    for (size_t i = 0; i < list->n; i++) {
        ki_state *there = list->item[i];
        if (strcmp(there->name, name) != 0) continue;
        if (!ki_shape_equal(&there->shape, &shape))
            return ki_fail(err, KITH_ESHAPE, "two terms want parameter %s with shapes %s and %s", name,
                           ki_shape_text(&there->shape, found, sizeof found),
                           ki_shape_text(&shape, wanted, sizeof wanted));
        return append(&list->added, &list->n_added, &list->added_capacity, there, err);
    }
    const int64_t count = ki_shape_count(&shape);
    if (count <= 0 || strlen(name) >= sizeof(((ki_state *)NULL)->name))
        return ki_fail(err, KITH_EINVAL, "parameter %s has shape %s", name,
                       ki_shape_text(&shape, found, sizeof found));
    ki_state *param = ki_arena_alloc(list->arena, 1, sizeof *param);
    if (!param) return ki_fail_memory(err, sizeof *param, "a parameter");
    memcpy(param->name, name, strlen(name) + 1);
    param->shape = shape;
    param->count = count;
    param->first = first;
    param->n_whole = n < whole.dim[0] ? whole.dim[0] : 0;
    param->lr_multiplier = lr_multiplier;
    param->init = init;
    param->a = a;
    KI_TRY(append(&list->item, &list->n, &list->capacity, param, err));
    KI_TRY(append(&list->added, &list->n_added, &list->added_capacity, param, err));
    if (list->is_for_check) return KITH_OK;
    KI_TRY(ki_zalloc_or(&param->value, (size_t)count, sizeof *param->value, name, err));
    if (lr_multiplier > 0) KI_TRY(ki_zalloc_or(&param->diff, (size_t)count, sizeof *param->diff, name, err));
    return KITH_OK;
}

void ki_state_sum_over_ranks(ki_state_list *list) { list->added[list->n_added - 1]->sums_over_ranks = true; }

kith_status ki_state_add_loss(ki_state_list *list, const char *method, const char *prefix, int64_t dim,
                              kith_error *err) {
    const ki_loss *loss = list->loss->record;
    if (!loss) {
        ki_fail(err, KITH_EINVAL, "%s repeats the objective's loss, and the loss is none", method);
        return ki_hint(err, KITH_EINVAL, "name a loss beside it: `kith list losses`");
    }
    if (!loss->params) return KITH_OK;
    ki_sizes sizes = *list->sizes;
    sizes.embedding = dim;
    list->prefix = prefix;
    const kith_status status = loss->params(list->loss->settings, &sizes, list, err);
    list->prefix = NULL;
    return status;
}

void ki_states_free(ki_state_list *list) {
    for (size_t i = 0; i < list->n; i++) {
        ki_free(list->item[i]->value);
        ki_free(list->item[i]->diff);
    }
    ki_free(list->item);
    ki_free(list->added);
    *list = (ki_state_list){0};
}

/* A part gets the numbers that it has in the whole. */
static void initialize(ki_state *param, uint64_t seed, uint32_t index) {
    ki_rng rng = ki_rng_at(seed, KI_RNG_INIT, index, 0x0b1ec71f);
    const ki_shape whole = ki_state_whole(param);
    const double fans = (double)(whole.dim[0] + (whole.n_dims > 1 ? whole.dim[1] : 0));
    const double glorot = sqrt(6 / fans);
    const int64_t before = param->first * (param->count / param->shape.dim[0]);
    for (int64_t i = -before; i < param->count; i++) {
        double v = param->a;
        switch (param->init) {
        case KI_INIT_CONSTANT: break;
        case KI_INIT_UNIFORM: v *= 2 * ki_rng_double(&rng) - 1; break;
        case KI_INIT_NORMAL: v *= ki_rng_normal(&rng); break;
        case KI_INIT_GLOROT: v = glorot * (2 * ki_rng_double(&rng) - 1); break;
        case KI_INIT_SIGNS: v = ki_rng_u32(&rng) & 1 ? v : -v; break;
        }
        if (i >= 0) param->value[i] = (ki_real)v;
    }
}

/* The parameters that were just added become the method's own list. */
static kith_status take_added(ki_state_list *list, ki_state ***ret_params, size_t *ret_n, kith_error *err) {
    *ret_n = list->n_added;
    *ret_params = ki_arena_alloc(list->arena, list->n_added + 1, sizeof **ret_params);
    if (!*ret_params) return ki_fail_memory(err, sizeof **ret_params, "parameters");
    for (size_t i = 0; i < list->n_added; i++) (*ret_params)[i] = list->added[i];
    list->n_added = 0;
    return KITH_OK;
}

/* The number of classes that the saved state was made for, if a term knows it. */
static int64_t saved_classes(const ki_objective *o) {
    const ki_saved *saved = o->sizes.saved;
    const ki_loss *loss = o->loss.record;
    int64_t n = 0;
    if (!saved) return 0;
    if (loss && loss->saved_classes) n = loss->saved_classes(o->loss.settings, saved);
    for (size_t i = 0; i < o->n_regs && n == 0; i++) {
        const ki_reg *reg = o->reg[i].record;
        if (reg->saved_classes) n = reg->saved_classes(o->reg[i].settings, saved);
    }
    if (n == 0 && (o->taps & KI_TAP_BIT(KI_TAP_LOGITS))) n = ki_proxies_saved(saved, 1);
    return n;
}

/* A miner chooses among all columns of a row, and logits are read as a whole. */
static bool can_share_out(const ki_objective *o) {
    const ki_loss *loss = o->loss.record;
    return loss && loss->joins_columns && !o->miner->mine && !(o->taps & KI_TAP_BIT(KI_TAP_LOGITS)) &&
           o->sizes.n_parts > 1 && o->sizes.n_classes >= o->sizes.n_parts;
}

kith_status ki_states_collect(ki_objective *o, kith_error *err) {
    ki_state_list *list = &o->params;
    const ki_loss *loss = o->loss.record;
    const int64_t n_saved = saved_classes(o);
    if (n_saved > 0) o->sizes.n_classes = n_saved;
    if (!can_share_out(o)) o->sizes.part = o->sizes.n_parts = 0;
    list->arena = &o->arena;
    list->loss = &o->loss;
    list->sizes = &o->sizes;
    /* The loss sees one head at a time, and what it learns is of that size. */
    ki_sizes of_head = o->sizes;
    if (of_head.heads > 1) of_head.embedding /= of_head.heads;
    if (loss && loss->params) KI_TRY(loss->params(o->loss.settings, &of_head, list, err));
    KI_TRY(take_added(list, &o->loss.param, &o->loss.n_params, err));
    if (loss && loss->is_proxy) o->proxies = o->loss.param[0];
    if ((o->taps & KI_TAP_BIT(KI_TAP_LOGITS)) && !o->proxies) {
        if (!o->sizes.n_classes)
            return ki_fail_size(err, "a term that reads logits", "the number of classes");
        if (!o->sizes.embedding)
            return ki_fail_size(err, "a term that reads logits", "the embedding's dimension");
        KI_TRY(ki_state_add(list, "proxies", KI_SHAPE2(o->sizes.n_classes, o->sizes.embedding),
                            KI_INIT_UNIFORM, 0.1, 1, err));
        o->proxies = list->added[0];
        list->n_added = 0;
    }
    if (o->memory.size > 0) {
        KI_TRY(ki_memory_params(&o->memory, &o->sizes, list, err));
        list->n_added = 0;
    }
    for (size_t i = 0; i < o->n_regs; i++) {
        ki_reg_use *reg = &o->reg[i];
        if (reg->record->params) KI_TRY(reg->record->params(reg->settings, &o->sizes, list, err));
        KI_TRY(take_added(list, &reg->param, &reg->n_params, err));
    }
    for (size_t i = 0; i < list->n && !list->is_for_check; i++)
        initialize(list->item[i], o->seed, (uint32_t)i);
    return KITH_OK;
}

ki_state *ki_objective_param(ki_objective *objective, size_t i) {
    return i < objective->params.n ? objective->params.item[i] : NULL;
}

ki_state *ki_objective_param_named(ki_objective *objective, const char *name) {
    for (size_t i = 0; i < objective->params.n; i++) {
        if (strcmp(objective->params.item[i]->name, name) == 0) return objective->params.item[i];
    }
    return NULL;
}

void ki_objective_hush(ki_objective *o) { o->is_quiet = true; }

void ki_objective_clear_diffs(ki_objective *objective) {
    for (size_t i = 0; i < objective->params.n; i++) {
        ki_state *param = objective->params.item[i];
        if (param->diff) memset(param->diff, 0, (size_t)param->count * sizeof *param->diff);
    }
}

static bool starts(const ki_reg_use *reg) {
    return reg->record->start && (!reg->record->starts || reg->record->starts(reg->settings));
}

unsigned ki_objective_start_taps(const ki_objective *objective) {
    unsigned taps = 0;
    for (size_t i = 0; i < objective->n_regs; i++) {
        const ki_reg_use *reg = &objective->reg[i];
        if (starts(reg)) taps |= KI_TAP_BIT(reg->record->starts_from);
    }
    return taps;
}

kith_status ki_objective_start(ki_objective *objective, ki_tap tap, const ki_features *features,
                               kith_error *err) {
    for (size_t i = 0; i < objective->n_regs; i++) {
        const ki_reg_use *reg = &objective->reg[i];
        if (starts(reg) && reg->record->starts_from == tap)
            KI_TRY(reg->record->start(reg->settings, features, reg->param, err));
    }
    return KITH_OK;
}
