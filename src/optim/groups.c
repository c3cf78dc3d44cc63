/* Groups of parameters and the multipliers that rules give them. */
#include "optim/groups.h"

#include <fnmatch.h>
#include <string.h>

#include "base/text.h"

static const char *const group_names[KI_OPTIM_N_GROUPS] = {"backbone", "embedding", "proxies",
                                                           "regularizers"};

const char *ki_optim_group_name(ki_optim_group group) { return group_names[group]; }

/* Is `layer` the name, or the part of it before one of its dots? */
static bool is_under(const char *name, const char *layer) {
    const size_t n = strlen(layer);
    return strncmp(name, layer, n) == 0 && (name[n] == '.' || name[n] == '\0');
}

static bool is_last(const char *name, const char *word) {
    const char *dot = strrchr(name, '.');
    return strcmp(dot ? dot + 1 : name, word) == 0;
}

ki_optim_group ki_optim_group_of(const char *name, bool is_objective) {
    if (is_objective) return is_last(name, "proxies") ? KI_OPTIM_PROXIES : KI_OPTIM_REGULARIZERS;
    return is_under(name, "embedding") ? KI_OPTIM_EMBEDDING : KI_OPTIM_BACKBONE;
}

static bool is_pattern(const char *key) { return strpbrk(key, "*?[") != NULL; }

/* A pattern fits a parameter that it matches, or that lies in a layer it matches: blocks.[0-3] fits blocks.2.attn.qkv.weight. A star
 * stands for dots as well. */
static bool fits(const char *pattern, const char *name) {
    char layer[256];
    if (fnmatch(pattern, name, 0) == 0) return true;
    for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.')) {
        const size_t n = (size_t)(dot - name);
        if (n >= sizeof layer) return false;
        memcpy(layer, name, n);
        layer[n] = '\0';
        if (fnmatch(pattern, layer, 0) == 0) return true;
    }
    return false;
}

static bool rule_holds(const char *key, const ki_optim_param *param) {
    if (strcmp(key, group_names[ki_optim_group_of(param->name, param->is_objective)]) == 0) return true;
    if (strcmp(key, "bias") == 0) return !param->is_objective && is_last(param->name, "bias");
    return is_pattern(key) ? fits(key, param->name) : is_under(param->name, key);
}

/* The name among the groups and among all layers that is nearest to the key; into buf. */
static const char *nearest(const char *key, const ki_optim_param *params, int n_params, char *buf,
                           size_t buf_bytes) {
    const char *best = NULL, *candidate = buf;
    int best_distance = 0;
    static const char *const fixed[] = {"backbone", "embedding", "bias", "proxies", "regularizers"};
    best = ki_nearest(key, fixed, sizeof fixed / sizeof fixed[0]);
    if (best) {
        best_distance = ki_edit_distance(key, best);
        strncpy(buf, best, buf_bytes - 1);
    }
    for (int i = 0; i < n_params; i++) {
        for (const char *end = params[i].name; *end;) {
            char layer[128];
            end += strcspn(end + 1, ".") + 1;
            const size_t n = (size_t)(end - params[i].name);
            if (n >= sizeof layer || n >= buf_bytes) break;
            memcpy(layer, params[i].name, n);
            layer[n] = '\0';
            candidate = layer;
            if (!ki_nearest(key, &candidate, 1)) continue;
            const int distance = ki_edit_distance(key, layer);
            if (best && distance >= best_distance) continue;
            memcpy(buf, layer, n + 1);
            best = buf;
            best_distance = distance;
        }
    }
    return best ? buf : NULL;
}

static kith_status fail_pattern(const char *key, const ki_optim_param *params, int n_params,
                                kith_error *err) {
    ki_fail(err, KITH_ENOTFOUND, "optim: a multiplier is for '%.60s', and nothing that learns is called so",
            key);
    if (n_params == 0) return KITH_ENOTFOUND;
    return ki_hint(err, KITH_ENOTFOUND,
                   "a pattern is for whole names; the first of %d is %.60s, the last is %.60s", n_params,
                   params[0].name, params[n_params - 1].name);
}

kith_status ki_optim_check_rules(const ki_optim_settings *settings, const ki_optim_param *params,
                                 int n_params, kith_error *err) {
    for (int i = 0; i < settings->n_rules; i++) {
        const char *key = settings->rule[i].key;
        bool holds = false;
        for (int k = 0; k < n_params && !holds; k++) holds = rule_holds(key, &params[k]);
        if (holds) continue;
        if (is_pattern(key)) return fail_pattern(key, params, n_params, err);
        char buf[128] = "";
        const char *near = nearest(key, params, n_params, buf, sizeof buf);
        ki_fail(err, KITH_ENOTFOUND,
                "optim: a multiplier is for '%.60s', and nothing that learns is called so", key);
        if (near && strcmp(near, key) != 0) return ki_hint(err, KITH_ENOTFOUND, "did you mean '%s'?", near);
        return ki_hint(err, KITH_ENOTFOUND,
                       "name backbone, embedding, bias, proxies, regularizers or a layer that is there");
    }
    return KITH_OK;
}

void ki_optim_multipliers(const ki_optim_settings *settings, const ki_optim_param *param, double *ret_lr,
                          double *ret_decay) {
    *ret_lr = param->lr > 0 ? param->lr : 1;
    *ret_decay = 1;
    for (int i = 0; i < settings->n_rules; i++) {
        if (!rule_holds(settings->rule[i].key, param)) continue;
        *ret_lr *= settings->rule[i].lr;
        *ret_decay *= settings->rule[i].decay;
    }
}
