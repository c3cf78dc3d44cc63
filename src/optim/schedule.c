/* Learning rates by step: parsing a schedule and its value. */
#include "optim/schedule.h"

#include <math.h>

#include "base/text.h"

static const char *const names[] = {"constant", "step", "cosine", NULL};

const ki_option ki_schedule_options[] = {
    KI_OPTION_CHOICE(ki_schedule_settings, name, KI_SCHEDULE_CONSTANT, names, "how the rate moves", "ours"),
    KI_OPTION_TREE(
        ki_schedule_settings, at, "[]",
        "step: where the rate falls, a rising list in epochs when `epochs` is given, else in steps", "ours"),
    KI_OPTION_REAL(ki_schedule_settings, factor, 0.1, 0, 1, "step: on the rate at each of `at`", "JRD, MS"),
    KI_OPTION_REAL(ki_schedule_settings, final, 0, 0, 1, "cosine: the last rate as a part of lr",
                   "Loshchilov and Hutter 2017"),
    KI_OPTION_END};

static kith_status fail_at(const ki_value *found, kith_error *err) {
    char text[80];
    ki_fail(err, KITH_EINVAL, "optim.schedule: at is %s", ki_value_describe(found, text, sizeof text));
    return ki_hint(err, KITH_EINVAL, "wanted a list of at most %d rising numbers over 0, as in at: [20, 40]",
                   KI_SCHEDULE_MOST_AT);
}

static kith_status parse_at(ki_schedule_settings *s, kith_error *err) {
    s->n_at = 0;
    if (!s->at || s->at->kind == KI_VALUE_NULL) return KITH_OK;
    if (s->at->kind != KI_VALUE_LIST || s->at->n_items > KI_SCHEDULE_MOST_AT) return fail_at(s->at, err);
    double last = 0;
    for (const ki_value *v = s->at->first; v; v = v->next) {
        double at = 0;
        if (v->kind != KI_VALUE_SCALAR || !ki_parse_double(v->text, &at) || !(at > last) || isinf(at))
            return fail_at(v, err);
        s->at_value[s->n_at++] = last = at;
    }
    return KITH_OK;
}

/* A key of another schedule is a mistake: it would do nothing. */
static kith_status check_belongs(const ki_value *map, int name, kith_error *err) {
    static const struct {
        const char *key;
        int name;
    } rows[] = {{"at", KI_SCHEDULE_STEP}, {"factor", KI_SCHEDULE_STEP}, {"final", KI_SCHEDULE_COSINE}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!ki_value_get(map, rows[i].key) || rows[i].name == name) continue;
        ki_fail(err, KITH_EINVAL, "optim.schedule: %s does nothing in schedule %s", rows[i].key, names[name]);
        return ki_hint(err, KITH_EINVAL, "it belongs to name: %s", names[rows[i].name]);
    }
    return KITH_OK;
}

kith_status ki_schedule_parse(const ki_value *map, ki_schedule_settings *settings, kith_error *err) {
    ki_schedule_settings parsed = *settings;
    /* `schedule: cosine` is short for {name: cosine}. */
    ki_value entry, whole = {.kind = KI_VALUE_MAP, .first = &entry, .last = &entry, .n_items = 1};
    if (map && map->kind == KI_VALUE_SCALAR) {
        entry = (ki_value){.kind = KI_VALUE_SCALAR, .text = map->text, .key = "name", .line = map->line};
        map = &whole;
    }
    KI_TRY(ki_options_parse(ki_schedule_options, map, NULL, "optim.schedule", &parsed, err));
    KI_TRY(check_belongs(map, parsed.name, err));
    KI_TRY(parse_at(&parsed, err));
    if (parsed.name == KI_SCHEDULE_STEP && parsed.n_at == 0) {
        ki_fail(err, KITH_EINVAL, "optim.schedule: step without at");
        return ki_hint(err, KITH_EINVAL, "say where the rate falls, as in at: [20, 40]");
    }
    *settings = parsed;
    return KITH_OK;
}

static double falls(const ki_schedule_settings *s, int64_t step, int64_t n_steps) {
    /* `at` is in epochs if the length is, and is converted to steps. */
    const double per = s->epochs > 0 ? (double)n_steps / (double)s->epochs : 1;
    double factor = 1;
    for (int i = 0; i < s->n_at; i++) {
        if ((double)step >= rint(s->at_value[i] * per)) factor *= s->factor;
    }
    return factor;
}

ki_schedule_point ki_schedule_at(const ki_schedule_settings *s, int64_t step, int64_t n_steps) {
    static const double pi = 3.14159265358979323846;
    double factor = 1;
    if (step < s->warmup)
        factor = (double)(step + 1) / (double)s->warmup;
    else if (s->name == KI_SCHEDULE_COSINE && n_steps > s->warmup + 1) {
        /* From 1 at the first step after the warm-up to `final` at the last. */
        const double place = (double)(step - s->warmup) / (double)(n_steps - s->warmup - 1);
        factor = s->final + (1 - s->final) * 0.5 * (1 + cos(pi * (place < 1 ? place : 1)));
    }
    if (s->name == KI_SCHEDULE_STEP) factor *= falls(s, step, n_steps);
    return (ki_schedule_point){.lr = s->lr * factor, .head_only = step < s->head_only};
}
