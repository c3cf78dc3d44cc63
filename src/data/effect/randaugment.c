/* randaugment: n of 14 operations, drawn with replacement, all of one magnitude (Cubuk et al. 2020, arXiv 1909.13719).
 *
 * As torchvision's RandAugment: its list, its order, its magnitudes in 31 steps, the sign drawn where an operation has one; pixels are
 * moved to the nearest place. What comes from outside is input.background, which is black as in torchvision unless the recipe says
 * otherwise. */
#include <math.h>

#include "data/effect/colour.h"
#include "data/effect/tone.h"
#include "data/effect/warp.h"

typedef struct settings {
    double p;
    int64_t n, magnitude;
} settings;
KI_EFFECT_FITS(settings);

enum { STEPS = 30 }; /* magnitudes are 0 … STEPS */

static const ki_option options[] = {
    KI_OPTION_REAL(settings, p, 1, 0, 1, "how often", "torchvision"),
    KI_OPTION_INT(settings, n, 2, 1, 14, "operations in a row", "torchvision"),
    KI_OPTION_INT(settings, magnitude, 9, 0, STEPS, "of all of them", "torchvision"), KI_OPTION_END};

static void shear_x(ki_effect_view *v, double by) { ki_warp_shear_across(v, by); }
static void shear_y(ki_effect_view *v, double by) { ki_warp_shear_down(v, by); }
static void shift_x(ki_effect_view *v, double by) { ki_warp_shift(v, (int32_t)(by * v->side), 0); }
static void shift_y(ki_effect_view *v, double by) { ki_warp_shift(v, 0, (int32_t)(by * v->side)); }
static void brighten(ki_effect_view *v, double by) { ki_colour_brightness(v, 1 + by); }
static void saturate(ki_effect_view *v, double by) { ki_colour_saturation(v, 1 + by); }
static void contrast(ki_effect_view *v, double by) { ki_colour_contrast(v, 1 + by); }
static void sharpen(ki_effect_view *v, double by) { ki_tone_sharpen(v, 1 + by); }
static void posterize(ki_effect_view *v, double by) { ki_tone_posterize(v, 8 - (int)rint(by)); }
static void solarize(ki_effect_view *v, double by) { ki_tone_solarize(v, 255 - by); }
static void autocontrast(ki_effect_view *v, double by) {
    (void)by;
    ki_tone_autocontrast(v);
}
static void equalize(ki_effect_view *v, double by) {
    (void)by;
    ki_tone_equalize(v);
}
static void nothing(ki_effect_view *v, double by) {
    (void)v;
    (void)by;
}

static const struct {
    void (*apply)(ki_effect_view *v, double by);
    double most; /* at magnitude STEPS */
    bool is_signed;
} operations[] = {
    {nothing, 0, false},          {shear_x, 0.3, true},         {shear_y, 0.3, true},
    {shift_x, 150.0 / 331, true}, {shift_y, 150.0 / 331, true}, {ki_warp_rotate, 30, true},
    {brighten, 0.9, true},        {saturate, 0.9, true},        {contrast, 0.9, true},
    {sharpen, 0.9, true},         {posterize, 4, false},        {solarize, 255, false},
    {autocontrast, 0, false},     {equalize, 0, false},
};

static void apply(const void *settings_, ki_rng *rng, ki_effect_view *view) {
    const settings *s = settings_;
    for (int64_t i = 0; i < s->n; i++) {
        const uint32_t k = ki_rng_below(rng, sizeof operations / sizeof operations[0]);
        double by = operations[k].most * (double)s->magnitude / STEPS;
        if (operations[k].is_signed && ki_rng_u32(rng) >> 31) by = -by;
        operations[k].apply(view, by);
    }
}

const ki_effect_kind ki_effect_randaugment = {
    .name = "randaugment",
    .summary = "some of 14 operations, drawn at random, of one magnitude",
    .source = "torchvision RandAugment; Cubuk et al. 2020",
    .options = options,
    .apply = apply,
};
