/* grey: a view without colours, as torchvision's RandomGrayscale. */
#include "data/effect/colour.h"

typedef struct settings {
    double p;
} settings;
KI_EFFECT_FITS(settings);

static const ki_option options[] = {KI_OPTION_REAL(settings, p, 0.2, 0, 1, "how often", "MoCo v2"),
                                    KI_OPTION_END};

static void apply(const void *settings_, ki_rng *rng, ki_effect_view *view) {
    (void)settings_;
    (void)rng;
    ki_colour_grey(view);
}

const ki_effect_kind ki_effect_grey = {
    .name = "grey",
    .summary = "without colours",
    .source = "torchvision RandomGrayscale",
    .options = options,
    .apply = apply,
};
