/* Effects: reading their list, and applying it to a view. */
#include "data/effect/effect.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

static const ki_effect_kind *const kinds[] = {
#define X(name) &ki_effect_##name,
#include "data/effect/table.def"
#undef X
};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

/* Blocks of random numbers that each effect of a list has for itself. */
enum { STREAM_BITS = 27 };

const ki_effect_kind *ki_effect_at(int64_t i) { return i >= 0 && i < N_KINDS ? kinds[i] : NULL; }

kith_status ki_effect_find(const char *name, const ki_effect_kind **ret_kind, kith_error *err) {
    const char *names[N_KINDS];
    for (int i = 0; i < N_KINDS; i++) {
        names[i] = kinds[i]->name;
        if (strcmp(kinds[i]->name, name) == 0) return *ret_kind = kinds[i], KITH_OK;
    }
    return ki_fail_unknown(err, "effect", name, names, N_KINDS);
}

double ki_effect_uniform(ki_rng *rng, double from, double to) {
    return from + (to - from) * ki_rng_double(rng);
}

kith_status ki_effect_numbers(const ki_value *list, const char *name, size_t n, double *ret,
                              kith_error *err) {
    if (!list || list->kind == KI_VALUE_NULL) return KITH_OK;
    bool good = list->kind == KI_VALUE_LIST && list->n_items == n;
    for (size_t i = 0; good && i < n; i++) {
        const ki_value *item = ki_value_at(list, i);
        good = item->kind == KI_VALUE_SCALAR && ki_parse_double(item->text, &ret[i]) && isfinite(ret[i]);
    }
    if (good) return KITH_OK;
    char found[80];
    return ki_fail(err, KITH_EINVAL, "%s is %s; wanted a list of %zu numbers", name,
                   ki_value_describe(list, found, sizeof found), n);
}

kith_status ki_effect_range(const ki_value *list, const char *name, double least, double ret[2],
                            kith_error *err) {
    KI_TRY(ki_effect_numbers(list, name, 2, ret, err));
    if (ret[0] >= least && ret[0] <= ret[1]) return KITH_OK;
    return ki_fail(err, KITH_EINVAL, "%s is %g … %g; wanted %g <= from <= to", name, ret[0], ret[1], least);
}

static kith_status parse_one(const ki_value *item, const char *where, int crop, kith_effect *ret,
                             kith_error *err) {
    static const char *const also[] = {"name", NULL};
    const ki_value *name = item->kind == KI_VALUE_MAP ? ki_value_get(item, "name") : item;
    const ki_value *map = item->kind == KI_VALUE_MAP ? item : NULL;
    char found[80], inner[64];
    if (!name || name->kind != KI_VALUE_SCALAR)
        return ki_fail(err, KITH_EINVAL, "%s is %s; wanted {name: …} (see `kith list effects`)", where,
                       ki_value_describe(item, found, sizeof found));
    const ki_effect_kind *kind = NULL;
    const kith_status status = ki_effect_find(name->text, &kind, err);
    if (status != KITH_OK) return ki_prefix(err, status, "%s", where);
    memset(ret, 0, sizeof *ret);
    while (kinds[ret->kind] != kind) ret->kind++;
    ki_snprintf(inner, sizeof inner, "%s (%s)", where, kind->name);
    KI_TRY(ki_options_parse(kind->options, map, also, inner, ret->setting, err));
    const kith_status checked = kind->check ? kind->check(ret->setting, crop, err) : KITH_OK;
    return checked == KITH_OK ? checked : ki_prefix(err, checked, "%s", inner);
}

kith_status ki_effects_parse(const ki_value *list, kith_transform *t, kith_error *err) {
    char text[80];
    t->n_effects = 0;
    if (!list || list->kind == KI_VALUE_NULL) return KITH_OK;
    if (list->kind != KI_VALUE_LIST)
        return ki_fail(err, KITH_EINVAL, "input: effects is %s; wanted a list, as in [{name: jitter}]",
                       ki_value_describe(list, text, sizeof text));
    if (list->n_items > KITH_MOST_EFFECTS)
        return ki_fail(err, KITH_EINVAL, "input: %zu effects; the most are %d", list->n_items,
                       KITH_MOST_EFFECTS);
    for (size_t i = 0; i < list->n_items; i++) {
        ki_snprintf(text, sizeof text, "input.effects.%zu", i);
        KI_TRY(parse_one(ki_value_at(list, i), text, t->crop_to, &t->effect[i], err));
    }
    t->n_effects = (int)list->n_items;
    return KITH_OK;
}

kith_status ki_effects_check(const kith_transform *t, kith_error *err) {
    if (t->n_effects < 0 || t->n_effects > KITH_MOST_EFFECTS)
        return ki_fail(err, KITH_EINVAL, "n_effects is %d; wanted 0 … %d", t->n_effects, KITH_MOST_EFFECTS);
    for (int i = 0; i < t->n_effects; i++) {
        if (t->effect[i].kind < 0 || t->effect[i].kind >= N_KINDS)
            return ki_fail(err, KITH_EINVAL, "effect %d is of kind %d; wanted 0 … %d", i, t->effect[i].kind,
                           N_KINDS - 1);
    }
    return KITH_OK;
}

void ki_effects_apply(const kith_transform *t, const ki_rng *rng, ki_effect_view *view) {
    for (int i = 0; i < t->n_effects; i++) {
        const kith_effect *effect = &t->effect[i];
        double p = 0;
        ki_rng own = *rng;
        own.counter[0] = (uint32_t)i << STREAM_BITS;
        memcpy(&p, effect->setting, sizeof p);
        if (ki_rng_double(&own) < p) kinds[effect->kind]->apply(effect->setting, &own, view);
    }
}

/* Loops may read and write a little past the end of a plane. */
static size_t plane_bytes(size_t side, size_t width) { return ki_round_up(side * side * width, 64) + 64; }

kith_status ki_view_shape(ki_effect_view *v, const kith_transform *t, kith_error *err) {
    const size_t side = (size_t)t->crop_to, bytes = plane_bytes(side, 1), wide = plane_bytes(side, 2);
    const size_t row = ki_round_up(4 * side, 64) + 64;
    KI_TRY(ki_grow(&v->memory, &v->capacity, 6 * bytes + wide + 2 * row + 64, 1, "a view", err));
    uint8_t *at = v->memory + (64 - (uintptr_t)v->memory % 64) % 64;
    for (int c = 0; c < 3; c++, at += 2 * bytes) {
        v->plane[c] = at;
        v->spare[c] = at + bytes;
    }
    v->wide = (uint16_t *)(void *)at;
    v->sum = (uint32_t *)(void *)(at + wide);
    v->edge = at + wide + row;
    v->side = t->crop_to;
    memcpy(v->background, t->background, sizeof v->background);
    for (int c = 0; c < 3; c++) {
        /* A mean of one channel is that of grey. */
        const int k = t->channels == 1 ? 0 : t->bgr ? 2 - c : c;
        const double mean = rint(t->mean[k] / t->pixel_scale);
        v->mean[c] = (uint8_t)(mean < 0 ? 0 : mean > 255 ? 255 : mean);
    }
    return KITH_OK;
}

void ki_view_release(ki_effect_view *view) {
    ki_free(view->memory);
    *view = (ki_effect_view){0};
}

void ki_view_swap(ki_effect_view *v) {
    for (int c = 0; c < 3; c++) {
        uint8_t *plane = v->plane[c];
        v->plane[c] = v->spare[c];
        v->spare[c] = plane;
    }
}
