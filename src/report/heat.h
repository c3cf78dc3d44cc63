/* Heat maps: the shares of an explanation (kith/explain.h) laid over pictures.
 *
 * A picture is shown in grey. Where shares are large it glows red to yellow, where they are below 0 it is blue; the largest
 * share of a picture is full colour. What the network did not see is pale. */
#ifndef KI_HEAT_H
#define KI_HEAT_H

#include "data/image/image.h"
#include "kith/explain.h"

/* The picture is of the whole upright image, at any scale. ret_image is RGB of the same size. */
kith_status ki_heat_lay(const ki_image *picture, const kith_explanation *why, const kith_shares *shares,
                        ki_image *ret_image, kith_error *err);

/* The query's images and the hit in a row, longer sides of 480 pixels. */
kith_status ki_heat_draw(const kith_explanation *why, const kith_query_image *query,
                         const kith_query_image *hit, ki_image *ret_image, kith_error *err);

#endif
