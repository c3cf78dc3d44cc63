/* Moving pixels: shears, shifts and rotations of a view, by the nearest pixel, as Pillow does it. What comes from outside is the
 * background. */
#ifndef KI_WARP_H
#define KI_WARP_H

#include "data/effect/effect.h"

void ki_warp_shear_across(ki_effect_view *view, double slope); /* rows, around the upper left corner */
void ki_warp_shear_down(ki_effect_view *view, double slope);   /* columns */
void ki_warp_shift(ki_effect_view *view, int32_t across, int32_t down);
void ki_warp_rotate(ki_effect_view *view, double degrees); /* anticlockwise, around the middle */

#endif
