/* Changes of colour, the parts that jitter, grey and RandAugment are made of: Pillow's definitions, which torchvision uses for
 * images of bytes. A factor of 1 changes nothing. */
#ifndef KI_COLOUR_H
#define KI_COLOUR_H

#include "data/effect/effect.h"

void ki_colour_brightness(ki_effect_view *view, double factor); /* 0: black */
void ki_colour_contrast(ki_effect_view *view, double factor);   /* 0: the grey that the view has on average */
void ki_colour_saturation(ki_effect_view *view, double factor); /* 0: grey */
void ki_colour_grey(ki_effect_view *view);
/* The hue turned by a part of the circle, -0.5 … 0.5. */
void ki_colour_hue(ki_effect_view *view, double turn);

/* a + factor * (b - a), cut to bytes, of n pixels; dst may be b. */
void ki_colour_blend(const uint8_t *a, const uint8_t *b, double factor, size_t n, uint8_t *dst);
/* Every value of a plane through a table. */
void ki_colour_map(uint8_t *plane, size_t n, const uint8_t table[256]);

#endif
