/* From a recipe's `optim:` section to settings. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "optim/optim.h"

#define X(name) extern const ki_optim_method ki_optim_##name;
#include "optim/table.def"
#undef X

#define X(name) &ki_optim_##name,
static const ki_optim_method *const methods[] = {
#include "optim/table.def"
};
#undef X
enum { N_METHODS = sizeof methods / sizeof methods[0] };

const ki_optim_method *ki_optim_method_at(int i) { return i >= 0 && i < N_METHODS ? methods[i] : NULL; }

/* What the section holds beside the method's own options. */
typedef struct section {
    double lr, weight_decay, clip, layer_decay, ema;
    int64_t accumulate, steps, epochs, warmup, head_only;
    const ki_value *multipliers, *decay_multipliers, *schedule;
} section;

const ki_option ki_optim_options[] = {
    KI_OPTION_REAL(section, lr, 1e-4, 0, 1e6, "learning rate at its highest", "ours; papers: 1e-5 … 5e-4"),
    KI_OPTION_REAL(section, weight_decay, 0, 0, 1e6, "pull of every value towards 0", "HORDE: none"),
    KI_OPTION_INT(section, steps, 0, 0, 1e12, "updates of a run (or say epochs)", "ours"),
    KI_OPTION_INT(section, epochs, 0, 0, 1e9, "the length in passes over the training images", "ours"),
    KI_OPTION_TREE(
        section, multipliers, "{}",
        "on lr, by group (backbone, embedding, bias, proxies, regularizers), layer or pattern (layer4.*)",
        "ours"),
    KI_OPTION_TREE(section, decay_multipliers, "{}", "on weight_decay, by group, layer or pattern", "ours"),
    KI_OPTION_TREE(section, schedule, "constant", "{name: constant|step|cosine, at, factor, final}", "ours"),
    KI_OPTION_INT(section, warmup, 0, 0, 1e12, "steps over which lr grows from 0", "ours"),
    KI_OPTION_INT(section, head_only, 0, 0, 1e12,
                  "first steps in which only the embedding layer and the objective learn", "ours"),
    KI_OPTION_REAL(section, clip, 0, 0, 1e30, "most norm of the whole gradient; 0: any", "ours"),
    KI_OPTION_INT(section, accumulate, 1, 1, 1e6, "batches whose gradients are averaged in one step", "ours"),
    KI_OPTION_LATER(REAL, section, layer_decay, 1, 1e-3, 1,
                    "the rate of each layer of the network is that of the next times this; 1: one rate",
                    "BEiT and MAE: 0.65 … 0.75"),
    KI_OPTION_LATER(
        REAL, section, ema, 0, 0, 0.9999999,
        "how much a moving average of the network keeps at each step; the average is then what is "
        "evaluated and saved; 0: none",
        "DeiT and ConvNeXt: 0.9999"),
    KI_OPTION_END};

enum { MOST_KEYS = 64 };

/* The names in an options table, after those already in names; ends with NULL. */
static size_t add_names(const ki_option *options, const char *names[MOST_KEYS], size_t n) {
    for (; options->type != KI_OPTION_T_END && n < MOST_KEYS - 1; options++) names[n++] = options->name;
    names[n] = NULL;
    return n;
}

static kith_status find_method(const ki_value *map, const ki_optim_method **ret, kith_error *err) {
    const ki_value *name = ki_value_get(map, "name");
    const char *known[N_METHODS];
    *ret = methods[0];
    if (!name) return KITH_OK;
    if (name->kind != KI_VALUE_SCALAR) {
        char found[80];
        return ki_fail(err, KITH_EINVAL, "optim: name is %s; wanted the name of an optimizer",
                       ki_value_describe(name, found, sizeof found));
    }
    for (int i = 0; i < N_METHODS; i++) {
        known[i] = methods[i]->name;
        if (strcmp(known[i], name->text) == 0) return *ret = methods[i], KITH_OK;
    }
    ki_fail_unknown(err, "optimizer", name->text, known, N_METHODS);
    return ki_prefix(err, KITH_ENOTFOUND, "optim");
}

static kith_status add_rule(ki_optim_settings *s, const ki_value *v, const char *where, bool is_decay,
                            kith_error *err) {
    char found[80];
    double factor = 0;
    if (v->kind != KI_VALUE_SCALAR || !ki_parse_double(v->text, &factor) || !(factor >= 0) || isinf(factor)) {
        ki_fail(err, KITH_EINVAL, "optim.%s: %s is %s", where, v->key,
                ki_value_describe(v, found, sizeof found));
        return ki_hint(err, KITH_EINVAL, "wanted a number of at least 0");
    }
    if (s->n_rules == KI_OPTIM_MOST_RULES)
        return ki_fail(err, KITH_EINVAL, "optim: over %d multipliers", KI_OPTIM_MOST_RULES);
    s->rule[s->n_rules++] =
        (ki_optim_rule){.key = v->key, .lr = is_decay ? 1 : factor, .decay = is_decay ? factor : 1};
    return KITH_OK;
}

static kith_status parse_rules(ki_optim_settings *s, const ki_value *map, const char *where, bool is_decay,
                               kith_error *err) {
    char found[80];
    if (!map || map->kind == KI_VALUE_NULL) return KITH_OK;
    if (map->kind != KI_VALUE_MAP) {
        ki_fail(err, KITH_EINVAL, "optim.%s is %s", where, ki_value_describe(map, found, sizeof found));
        return ki_hint(err, KITH_EINVAL, "write a map, as in %s: {embedding: 10}", where);
    }
    for (const ki_value *v = map->first; v; v = v->next) KI_TRY(add_rule(s, v, where, is_decay, err));
    return KITH_OK;
}

/* Two tables share one section, so each must accept the other's keys. */
static kith_status parse_tables(const ki_value *map, ki_optim_settings *s, section *common, kith_error *err) {
    const char *names[MOST_KEYS] = {"name"};
    char where[40];
    ki_snprintf(where, sizeof where, "optim (%s)", s->method->name);
    add_names(ki_optim_options, names, 1);
    KI_TRY(ki_options_parse(s->method->options, map, names, where, s, err));
    add_names(s->method->options, names, 1);
    return ki_options_parse(ki_optim_options, map, names, where, common, err);
}

kith_status ki_optim_parse(const ki_value *map, ki_optim_settings *ret_settings, kith_error *err) {
    ki_optim_settings s = {.method = NULL};
    section common;
    KI_TRY(find_method(map, &s.method, err));
    KI_TRY(parse_tables(map, &s, &common, err));
    if (common.steps > 0 && common.epochs > 0)
        return ki_fail(err, KITH_EINVAL, "optim: both steps and epochs are given; wanted one of them");
    s.lr = common.lr;
    s.weight_decay = common.weight_decay;
    s.clip = common.clip;
    s.accumulate = common.accumulate;
    s.layer_decay = common.layer_decay;
    s.ema = common.ema;
    s.multipliers = common.multipliers;
    s.decay_multipliers = common.decay_multipliers;
    s.schedule = (ki_schedule_settings){.lr = common.lr,
                                        .steps = common.steps,
                                        .epochs = common.epochs,
                                        .warmup = common.warmup,
                                        .head_only = common.head_only};
    KI_TRY(ki_schedule_parse(common.schedule, &s.schedule, err));
    KI_TRY(parse_rules(&s, s.multipliers, "multipliers", false, err));
    KI_TRY(parse_rules(&s, s.decay_multipliers, "decay_multipliers", true, err));
    ki_optim_step step = {0};
    KI_TRY(s.method->complete(&s, &step, err));
    *ret_settings = s;
    return KITH_OK;
}
