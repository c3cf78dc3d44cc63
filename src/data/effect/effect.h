/* Effects: what is done to the pixels of a training view after it was cut out: colours, blur, erased parts.
 *
 *     input: {effects: [{name: jitter, brightness: 0.4, hue: 0.1, p: 0.8}, {name: erase}]}
 *
 * They follow torchvision's definitions on bytes (Pillow's arithmetic), to one grey level. An effect is a pure function of
 * its settings and of its random numbers. These come from a stream of their own for each effect of the list, so adding one
 * changes neither what is cut out nor what the others draw. */
#ifndef KI_EFFECT_H
#define KI_EFFECT_H

#include "base/option.h"
#include "base/rng.h"
#include "kith/data.h"

/* A view of side x side pixels as three planes; zero-initialise, memory is kept for the next view. */
typedef struct ki_effect_view {
    int32_t side;
    uint8_t *plane[3]; /* red, green, blue */
    uint8_t *spare[3]; /* of the same size, for what cannot be done in place: ki_view_swap */
    uint16_t *wide;    /* a plane of wider numbers */
    uint32_t *sum;     /* a row of wider numbers */
    uint8_t *edge;     /* a row with borders: 3 * side */
    uint8_t background[3], mean[3];
    uint8_t *memory;
    size_t capacity;
} ki_effect_view;

/* Room for a view; contents undefined. */
kith_status ki_view_shape(ki_effect_view *view, const kith_transform *transform, kith_error *err);
void ki_view_release(ki_effect_view *view);
/* The spare planes become the planes. */
void ki_view_swap(ki_effect_view *view);

typedef struct ki_effect_kind {
    const char *name, *summary, *source;
    const ki_option
        *options; /* of the settings, whose first field is `double p`: how often the effect is made */
    /* Lists (TREE) into numbers, and what a range cannot check; `crop` is the side of a view. May be NULL. */
    kith_status (*check)(void *settings, int crop, kith_error *err);
    void (*apply)(const void *settings, ki_rng *rng, ki_effect_view *view);
} ki_effect_kind;

#define X(name) extern const ki_effect_kind ki_effect_##name;
#include "data/effect/table.def"
#undef X

/* The rows of table.def; NULL past the end. */
const ki_effect_kind *ki_effect_at(int64_t i);
kith_status ki_effect_find(const char *name, const ki_effect_kind **ret_kind, kith_error *err);

/* The list of a recipe, or NULL, into transform->effect. */
kith_status ki_effects_parse(const ki_value *list, kith_transform *transform, kith_error *err);
/* KITH_EINVAL: numbers that ki_effects_parse cannot have made. */
kith_status ki_effects_check(const kith_transform *transform, kith_error *err);

/* All effects of the transform, in order. `rng` names the view: it is not drawn from. */
void ki_effects_apply(const kith_transform *transform, const ki_rng *rng, ki_effect_view *view);

/* ---- for the effects ---- */

double ki_effect_uniform(ki_rng *rng, double from, double to);
/* A list of exactly n finite numbers; NULL: ret stays as it is. */
kith_status ki_effect_numbers(const ki_value *list, const char *name, size_t n, double *ret, kith_error *err);
/* The same of two numbers, least <= from <= to. */
kith_status ki_effect_range(const ki_value *list, const char *name, double least, double ret[2],
                            kith_error *err);

/* Copies the settings into the array that a kith_effect has for them. */
#define KI_EFFECT_FITS(settings) \
    _Static_assert(sizeof(settings) <= sizeof((kith_effect *)0)->setting, "an effect's settings")

#endif
