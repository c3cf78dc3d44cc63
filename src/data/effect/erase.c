/* erase: a random rectangle replaced by a colour or by noise, as torchvision's RandomErasing (Zhong et al. 2020, arXiv 1708.04896).
 *
 * Ten tries for an area (a part of the view) and an aspect (height over width, log-uniform) that fit; else nothing is erased. torchvision
 * erases after normalising, where 0 is the mean of the images: that mean, to the nearest grey level, is the default colour here. */
#include <math.h>
#include <string.h>

#include "data/effect/effect.h"

typedef struct settings {
    double p;
    const ki_value *scale, *ratio, *value;
    int fill;
    double area[2], log_ratio[2], colour[3];
} settings;
KI_EFFECT_FITS(settings);

enum { TRIES = 10, FILL_MEAN = 0, FILL_NOISE, FILL_COLOUR };
static const char *const fills[] = {"mean", "noise", "colour", NULL};

static const ki_option options[] = {
    KI_OPTION_REAL(settings, p, 0.5, 0, 1, "how often", "torchvision"),
    KI_OPTION_TREE(settings, scale, "[0.02, 0.33]", "part of the view's area", "torchvision"),
    KI_OPTION_TREE(settings, ratio, "[0.3, 3.3]", "height over width", "torchvision"),
    KI_OPTION_CHOICE(
        settings, fill, 0, fills,
        "the mean of the model's input, noise around it (a deviation of 64 grey levels), or `value`",
        "torchvision"),
    KI_OPTION_TREE(settings, value, "[0, 0, 0]", "fill: colour: RGB, 0 … 255", "ours"),
    KI_OPTION_END};

static kith_status check(void *settings_, int crop, kith_error *err) {
    settings *s = settings_;
    (void)crop;
    double scale[2] = {0.02, 0.33}, ratio[2] = {0.3, 3.3}, colour[3] = {0};
    KI_TRY(ki_effect_range(s->scale, "scale", 0, scale, err));
    KI_TRY(ki_effect_range(s->ratio, "ratio", 0.01, ratio, err));
    KI_TRY(ki_effect_numbers(s->value, "value", 3, colour, err));
    if (scale[1] > 1)
        return ki_fail(err, KITH_EINVAL, "scale is %g … %g; wanted at most 1", scale[0], scale[1]);
    for (int c = 0; c < 3; c++) {
        if (!(colour[c] >= 0 && colour[c] <= 255))
            return ki_fail(err, KITH_EINVAL, "value has %g; wanted 0 … 255", colour[c]);
        s->colour[c] = rint(colour[c]);
    }
    s->scale = s->ratio = s->value = NULL;
    memcpy(s->area, scale, sizeof scale);
    s->log_ratio[0] = log(ratio[0]), s->log_ratio[1] = log(ratio[1]);
    return KITH_OK;
}

/* Normal noise of one deviation in 64 grey levels, cut to bytes. */
static uint8_t noise(ki_rng *rng, uint8_t mean) {
    const double value = rint(mean + 64 * ki_rng_normal(rng));
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static void fill(const settings *s, ki_rng *rng, ki_effect_view *v, int32_t x, int32_t y, int32_t w,
                 int32_t h) {
    for (int c = 0; c < 3; c++) {
        uint8_t colour = v->mean[c];
        if (s->fill == FILL_COLOUR) colour = (uint8_t)s->colour[c];
        for (int32_t row = y; row < y + h; row++) {
            uint8_t *dst = v->plane[c] + (size_t)row * (size_t)v->side + x;
            if (s->fill != FILL_NOISE) {
                memset(dst, colour, (size_t)w);
                continue;
            }
            for (int32_t i = 0; i < w; i++) dst[i] = noise(rng, colour);
        }
    }
}

static void apply(const void *settings_, ki_rng *rng, ki_effect_view *v) {
    const settings *s = settings_;
    const double area = (double)v->side * v->side;
    for (int i = 0; i < TRIES; i++) {
        const double erased = area * ki_effect_uniform(rng, s->area[0], s->area[1]);
        const double aspect = exp(ki_effect_uniform(rng, s->log_ratio[0], s->log_ratio[1]));
        const double h = rint(sqrt(erased * aspect)), w = rint(sqrt(erased / aspect));
        if (!(h < v->side && w < v->side)) continue;
        const int32_t y = (int32_t)ki_rng_below(rng, (uint32_t)(v->side - (int32_t)h + 1)),
                      x = (int32_t)ki_rng_below(rng, (uint32_t)(v->side - (int32_t)w + 1));
        fill(s, rng, v, x, y, (int32_t)w, (int32_t)h);
        return;
    }
}

const ki_effect_kind ki_effect_erase = {
    .name = "erase",
    .summary = "a random rectangle replaced by a colour or by noise",
    .source = "torchvision RandomErasing; Zhong et al. 2020",
    .options = options,
    .check = check,
    .apply = apply,
};
