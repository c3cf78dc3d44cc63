/* Glyphs: characters of an invented alphabet. A class is a set of strokes; an image is those strokes drawn by
 * an unsteady hand. */
#ifndef KI_GLYPH_H
#define KI_GLYPH_H

#include "data/image/image.h"
#include "kith/data.h"

enum { KI_GLYPH_MOST_STROKES = 5, KI_GLYPH_MOST_POINTS = 5 };

typedef struct ki_glyph {
    int n_strokes;
    struct {
        int n_points;
        double x[KI_GLYPH_MOST_POINTS], y[KI_GLYPH_MOST_POINTS]; /* in [-1, 1] */
    } stroke[KI_GLYPH_MOST_STROKES];
} ki_glyph;

/* The class's strokes: a function of (seed, class). */
ki_glyph ki_glyph_make(uint64_t seed, uint32_t class_);
/* Image number `image` of the class, into ret_image (1 channel, 3 with colour). */
kith_status ki_glyph_draw(const ki_glyph *glyph, const kith_synth_options *settings, uint32_t class_,
                          uint32_t image, ki_image *ret_image, kith_error *err);

#endif
