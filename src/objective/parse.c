/* From a recipe's `objective:` section to an objective. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "objective/gemm.h"
#include "objective/state.h"

static const char *const loss_keys[] = {"name", "normalize", NULL};
static const char *const miner_keys[] = {"name", NULL};
static const char *const reg_keys[] = {"name", "weight", "warmup", "normalize", "stops_at_embedding", NULL};

/* What every term may have besides its own options. */
typedef struct common {
    double weight;
    int64_t warmup;
    bool normalize, stops_at_embedding;
} common;

static const ki_option common_options[] = {
    KI_OPTION_REAL(common, weight, 1, -1e9, 1e9, "factor of the term in the total", "-"),
    KI_OPTION_INT(common, warmup, 0, 0, 1e9, "steps over which the weight grows from 0", "-"),
    KI_OPTION_BOOL(common, normalize, 0, "L2-normalise the embedding first", "-"),
    KI_OPTION_BOOL(common, stops_at_embedding, 0, "train the embedding layer only, nothing below it", "-"),
    KI_OPTION_END};

/* `binomial` and `{name: binomial, …}` both name a method. */
static kith_status method_name(const ki_value *v, const char *where, const char **ret_name, kith_error *err) {
    char found[80];
    const ki_value *name = v && v->kind == KI_VALUE_MAP ? ki_value_get(v, "name") : v;
    if (!name || name->kind != KI_VALUE_SCALAR) {
        ki_fail(err, KITH_EINVAL, "%s has no name: it is %s", where,
                ki_value_describe(v, found, sizeof found));
        return ki_hint(err, KITH_EINVAL, "write {name: …, option: …}; `kith list` prints the names");
    }
    *ret_name = name->text;
    return KITH_OK;
}

static const ki_value *options_of(const ki_value *v) { return v && v->kind == KI_VALUE_MAP ? v : NULL; }

static kith_status settings_parse(ki_objective *o, const ki_method *method, const ki_value *v,
                                  const char *const *also, const char *section, void **ret_settings,
                                  kith_error *err) {
    char where[96];
    ki_snprintf(where, sizeof where, "%s (%s)", section, method->name);
    *ret_settings = ki_arena_alloc(&o->arena, 1, method->settings_bytes);
    if (!*ret_settings) return ki_fail_memory(err, method->settings_bytes, "settings");
    return ki_options_parse(method->options, options_of(v), also, where, *ret_settings, err);
}

enum { MOST_KEYS = 64 };

static kith_status common_parse(const ki_method *method, const ki_value *v, const char *section, common *ret,
                                kith_error *err) {
    const char *also[MOST_KEYS + 2];
    size_t n = 0;
    also[n++] = "name";
    for (const ki_option *option = method->options; option->type != KI_OPTION_T_END && n < MOST_KEYS;
         option++)
        also[n++] = option->name;
    also[n] = NULL;
    return ki_options_parse(common_options, options_of(v), also, section, ret, err);
}

static kith_status parse_loss(ki_objective *o, const ki_value *v, kith_error *err) {
    const char *name = NULL;
    common c;
    if (!v) {
        ki_fail(err, KITH_EINVAL, "objective has no loss");
        return ki_hint(err, KITH_EINVAL,
                       "write loss: {name: …}; `kith list losses` prints them, none is one of them");
    }
    KI_TRY(method_name(v, "objective.loss", &name, err));
    if (strcmp(name, "none") == 0) return KITH_OK;
    KI_TRY(ki_loss_find(name, &o->loss.record, err));
    const ki_method *method = &o->loss.record->method;
    KI_TRY(settings_parse(o, method, v, loss_keys, "objective.loss", &o->loss.settings, err));
    KI_TRY(common_parse(method, v, "objective.loss", &c, err));
    o->loss.normalize = ki_value_get(v, "normalize") ? c.normalize : !o->loss.record->no_normalize;
    o->taps |= KI_TAP_BIT(KI_TAP_EMBEDDING);
    return KITH_OK;
}

static kith_status parse_miner(ki_objective *o, const ki_value *v, kith_error *err) {
    const char *name = "all";
    if (v) KI_TRY(method_name(v, "objective.miner", &name, err));
    KI_TRY(ki_miner_find(name, &o->miner, err));
    return settings_parse(o, &o->miner->method, v, miner_keys, "objective.miner", &o->miner_settings, err);
}

static kith_status parse_reg(ki_objective *o, const ki_value *v, ki_reg_use *reg, kith_error *err) {
    const char *name = NULL;
    common c;
    KI_TRY(method_name(v, "objective.regularizers", &name, err));
    KI_TRY(ki_reg_find(name, &reg->record, err));
    const ki_method *method = &reg->record->method;
    KI_TRY(settings_parse(o, method, v, reg_keys, "objective.regularizers", &reg->settings, err));
    if (reg->record->complete) reg->record->complete(reg->settings, o->sizes.saved);
    KI_TRY(common_parse(method, v, "objective.regularizers", &c, err));
    reg->weight = c.weight;
    reg->warmup = c.warmup;
    reg->normalize = ki_value_get(v, "normalize") ? c.normalize : reg->record->normalize;
    reg->stops =
        ki_value_get(v, "stops_at_embedding") ? c.stops_at_embedding : reg->record->stops_at_embedding;
    reg->taps = reg->record->taps;
    if (reg->record->taps_of) KI_TRY(reg->record->taps_of(reg->settings, &reg->taps, err));
    o->taps |= reg->taps;
    if (reg->taps & KI_TAP_BIT(KI_TAP_LOGITS)) o->taps |= KI_TAP_BIT(KI_TAP_EMBEDDING);
    return KITH_OK;
}

static kith_status parse_regs(ki_objective *o, const ki_value *list, kith_error *err) {
    if (!list || list->kind == KI_VALUE_NULL) return KITH_OK;
    if (list->kind != KI_VALUE_LIST) {
        char found[80];
        ki_fail(err, KITH_EINVAL, "objective.regularizers is %s; wanted a list",
                ki_value_describe(list, found, sizeof found));
        return ki_hint(err, KITH_EINVAL, "write one line `- {name: …, weight: …}` for each");
    }
    o->reg = ki_arena_alloc(&o->arena, list->n_items + 1, sizeof *o->reg);
    if (!o->reg) return ki_fail_memory(err, sizeof *o->reg, "regularizers");
    for (const ki_value *v = list->first; v; v = v->next) KI_TRY(parse_reg(o, v, &o->reg[o->n_regs++], err));
    return KITH_OK;
}

/* Terms are named after their method; the second of the same name is name_2. */
static kith_status name_terms(ki_objective *o, kith_error *err) {
    const size_t n_loss = o->loss.record ? 1 : 0;
    o->n_terms = n_loss + o->n_regs;
    o->term = ki_arena_alloc(&o->arena, o->n_terms + 1, sizeof *o->term);
    if (!o->term) return ki_fail_memory(err, sizeof *o->term, "terms");
    if (n_loss) o->term[0] = (ki_term){.name = o->loss.record->method.name, .weight = 1};
    for (size_t i = 0; i < o->n_regs; i++) {
        const char *name = o->reg[i].record->method.name;
        int n_before = 0;
        for (size_t j = 0; j < i; j++) n_before += o->reg[j].record == o->reg[i].record;
        if (n_before) name = ki_arena_printf(&o->arena, "%s_%d", name, n_before + 1);
        if (!name) return ki_fail_memory(err, 64, "a term's name");
        o->term[n_loss + i] = (ki_term){.name = name, .weight = o->reg[i].weight};
    }
    return KITH_OK;
}

static kith_status check_keys(const ki_value *section, kith_error *err) {
    static const char *const keys[] = {"loss", "miner", "memory", "nested", "nested_weights", "regularizers"};
    char found[80];
    if (!section || section->kind != KI_VALUE_MAP)
        return ki_fail(err, KITH_EINVAL, "objective is %s; wanted a map with loss, miner, regularizers",
                       ki_value_describe(section, found, sizeof found));
    for (const ki_value *v = section->first; v; v = v->next) {
        bool is_known = false;
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) is_known |= strcmp(keys[i], v->key) == 0;
        if (!is_known)
            return ki_fail_unknown(err, "key of objective", v->key, keys, sizeof keys / sizeof keys[0]);
    }
    return KITH_OK;
}

/* What an ensemble of heads cannot have. */
static kith_status check_heads(const ki_objective *o, kith_error *err) {
    const int64_t heads = o->sizes.heads;
    if (heads == 1) return KITH_OK;
    if (heads < 1 || o->sizes.embedding < heads || o->sizes.embedding % heads != 0)
        return ki_fail(err, KITH_EINVAL, "an embedding of %lld numbers is no %lld heads side by side",
                       (long long)o->sizes.embedding, (long long)heads);
    for (size_t i = 0; i < o->n_regs; i++) {
        const ki_reg_use *reg = &o->reg[i];
        const char *name = reg->record->method.name;
        if (reg->taps & KI_TAP_BIT(KI_TAP_LOGITS)) {
            ki_fail(err, KITH_EINVAL, "%s reads logits, which an ensemble of %lld heads does not have", name,
                    (long long)heads);
            return ki_hint(err, KITH_EINVAL, "leave logits out of its layers, or train a model of one head");
        }
        if (reg->stops && (reg->taps & KI_TAP_BIT(KI_TAP_EMBEDDING))) {
            ki_fail(err, KITH_EINVAL, "%s stops at the embedding layer, which %lld heads share", name,
                    (long long)heads);
            return ki_hint(err, KITH_EINVAL, "write stops_at_embedding: false, or train a model of one head");
        }
    }
    return KITH_OK;
}

static kith_status parse_nested(ki_objective *o, const ki_value *section, kith_error *err) {
    KI_TRY(ki_nested_parse(section, o->sizes.embedding, &o->nested, err));
    if (o->nested.n == 0 || (o->loss.record && o->sizes.heads <= 1)) return KITH_OK;
    if (!o->loss.record) {
        ki_fail(err, KITH_EINVAL, "objective.nested goes with a loss; the loss is none");
        return ki_hint(err, KITH_EINVAL, "leave nested out: regularizers see the whole embedding");
    }
    ki_fail(err, KITH_EINVAL, "objective.nested goes with a model of one head; this one has %lld",
            (long long)o->sizes.heads);
    return ki_hint(err, KITH_EINVAL, "leave nested out, or write model.heads: 1");
}

static kith_status check_map(const ki_objective *o, kith_error *err) {
    for (size_t i = 0; o->sizes.no_map && i < o->n_regs; i++) {
        if (!(o->reg[i].taps & KI_TAP_BIT(KI_TAP_MAP))) continue;
        ki_fail(err, KITH_EINVAL,
                "%s reads the feature map, which a network that takes features does not have",
                o->reg[i].record->method.name);
        return ki_hint(err, KITH_EINVAL, "leave it out, or the layer `map` of it: it is for images");
    }
    return KITH_OK;
}

static kith_status build(ki_objective *o, const ki_value *section, kith_error *err) {
    KI_TRY(check_keys(section, err));
    KI_TRY(parse_loss(o, ki_value_get(section, "loss"), err));
    KI_TRY(parse_miner(o, ki_value_get(section, "miner"), err));
    KI_TRY(ki_memory_parse(ki_value_get(section, "memory"), &o->memory, err));
    if (o->memory.size > 0 && (!o->loss.record || o->loss.record->is_proxy)) {
        ki_fail(err, KITH_EINVAL, "objective.memory goes with a pair loss; the loss is %s",
                o->loss.record ? o->loss.record->method.name : "none");
        return ki_hint(err, KITH_EINVAL, "leave memory out: a proxy loss compares with its proxies");
    }
    KI_TRY(parse_nested(o, section, err));
    KI_TRY(parse_regs(o, ki_value_get(section, "regularizers"), err));
    KI_TRY(check_map(o, err));
    KI_TRY(name_terms(o, err));
    KI_TRY(ki_states_collect(o, err));
    o->sizes.saved = NULL; /* borrowed until now */
    if (o->sizes.heads == 0) o->sizes.heads = 1;
    KI_TRY(check_heads(o, err));
    return ki_objective_schedule_make(o, err);
}

kith_status ki_objective_outline(const ki_value *section, const ki_sizes *sizes, ki_objective **ret_objective,
                                 kith_error *err) {
    ki_objective *o = NULL;
    KI_TRY(ki_zalloc_or(&o, 1, sizeof *o, "an objective", err));
    o->sizes = *sizes;
    o->params.is_for_check = true;
    const kith_status status = build(o, section, err);
    if (status == KITH_OK)
        *ret_objective = o;
    else
        ki_objective_free(o);
    return status;
}

bool ki_objective_needs_pairs(const ki_value *section) {
    const char *name = NULL;
    const ki_loss *loss = NULL;
    ki_memory memory = {0};
    if (method_name(ki_value_get(section, "loss"), "objective.loss", &name, NULL) != KITH_OK) return false;
    if (ki_loss_find(name, &loss, NULL) != KITH_OK || loss->is_proxy) return false;
    return ki_memory_parse(ki_value_get(section, "memory"), &memory, NULL) != KITH_OK || memory.size == 0;
}

kith_status ki_objective_new(const ki_value *section, const ki_sizes *sizes, uint64_t seed,
                             ki_objective **ret_objective, kith_error *err) {
    ki_objective *o = NULL;
    KI_TRY(ki_gemm_prepare(err));
    KI_TRY(ki_zalloc_or(&o, 1, sizeof *o, "an objective", err));
    o->sizes = *sizes;
    o->seed = seed;
    o->vec = ki_vec_get();
    const kith_status status = build(o, section, err);
    if (status != KITH_OK) {
        ki_objective_free(o);
        return status;
    }
    *ret_objective = o;
    return KITH_OK;
}

void ki_objective_free(ki_objective *objective) {
    if (!objective) return;
    ki_states_free(&objective->params);
    ki_work_release(&objective->work);
    ki_arena_release(&objective->arena);
    ki_free(objective);
}

unsigned ki_objective_taps(const ki_objective *objective) {
    return objective->taps & ~KI_TAP_BIT(KI_TAP_LOGITS);
}

const ki_loss *ki_objective_loss(const ki_objective *objective) { return objective->loss.record; }

int64_t ki_objective_centers(const ki_objective *objective) {
    const ki_loss *loss = objective->loss.record;
    if (!loss || !loss->is_proxy) return 0;
    return loss->n_centers ? loss->n_centers(objective->loss.settings) : 1;
}

double ki_objective_sample(const ki_objective *objective) {
    const ki_loss *loss = objective->loss.record;
    return loss ? ki_options_real(loss->method.options, objective->loss.settings, "sample", 1) : 1;
}

size_t ki_objective_term_count(const ki_objective *objective) { return objective->n_terms; }

const char *ki_objective_term_name(const ki_objective *objective, size_t i) {
    return objective->term[i].name;
}

size_t ki_objective_work_bytes(const ki_objective *objective) {
    return objective->work_peak > objective->work.peak_bytes ? objective->work_peak
                                                             : objective->work.peak_bytes;
}
