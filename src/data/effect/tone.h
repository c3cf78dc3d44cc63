/* Changes of tone, each as Pillow defines it: sharper edges, fewer levels, inverted highlights, spread histograms. */
#ifndef KI_TONE_H
#define KI_TONE_H

#include "data/effect/effect.h"

void ki_tone_sharpen(ki_effect_view *view, double factor);     /* 0: smoothed; 1: as it is */
void ki_tone_posterize(ki_effect_view *view, int bits);        /* bits of each value that are kept, 1 … 8 */
void ki_tone_solarize(ki_effect_view *view, double threshold); /* values from the threshold on are inverted */
void ki_tone_autocontrast(ki_effect_view *view); /* darkest to 0, brightest to 255, by channel */
void ki_tone_equalize(ki_effect_view *view);     /* equally many pixels of each value, by channel */

#endif
