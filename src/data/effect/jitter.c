/* jitter: brightness, contrast, saturation and hue changed by random amounts, in random order.
 *
 * As torchvision's ColorJitter: a setting x draws a factor from max(0, 1 - x) … 1 + x, and hue a turn from -x … x. The defaults are
 * those of MoCo v2 (Chen et al. 2020, arXiv 2003.04297). */
#include "data/effect/colour.h"

typedef struct settings {
    double p, brightness, contrast, saturation, hue;
} settings;
KI_EFFECT_FITS(settings);

static const ki_option options[] = {
    KI_OPTION_REAL(settings, p, 0.8, 0, 1, "how often", "MoCo v2"),
    KI_OPTION_REAL(settings, brightness, 0.4, 0, 8, "a factor of 1 - x … 1 + x", "MoCo v2"),
    KI_OPTION_REAL(settings, contrast, 0.4, 0, 8, "a factor of 1 - x … 1 + x", "MoCo v2"),
    KI_OPTION_REAL(settings, saturation, 0.4, 0, 8, "a factor of 1 - x … 1 + x", "MoCo v2"),
    KI_OPTION_REAL(settings, hue, 0.1, 0, 0.5, "a turn of -x … x of the circle", "MoCo v2"),
    KI_OPTION_END};

static double factor(ki_rng *rng, double x) { return ki_effect_uniform(rng, x < 1 ? 1 - x : 0, 1 + x); }

static void apply(const void *settings_, ki_rng *rng, ki_effect_view *view) {
    const settings *s = settings_;
    int64_t order[] = {0, 1, 2, 3};
    ki_rng_shuffle(rng, order, 4);
    const double brightness = factor(rng, s->brightness), contrast = factor(rng, s->contrast),
                 saturation = factor(rng, s->saturation), hue = ki_effect_uniform(rng, -s->hue, s->hue);
    for (int i = 0; i < 4; i++) {
        if (order[i] == 0 && s->brightness > 0) ki_colour_brightness(view, brightness);
        if (order[i] == 1 && s->contrast > 0) ki_colour_contrast(view, contrast);
        if (order[i] == 2 && s->saturation > 0) ki_colour_saturation(view, saturation);
        if (order[i] == 3 && s->hue > 0) ki_colour_hue(view, hue);
    }
}

const ki_effect_kind ki_effect_jitter = {
    .name = "jitter",
    .summary = "brightness, contrast, saturation and hue by random amounts, in random order",
    .source = "torchvision ColorJitter",
    .options = options,
    .apply = apply,
};
