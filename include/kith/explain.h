/* Why two images match: their cosine as a sum over positions.
 *
 * The last feature map of a network has a small grid of positions, 7 x 7 for GoogLeNet. Pooling and a linear layer make the
 * vector from it, so that the cosine of two vectors is a sum over the positions of either map: nothing is estimated. Where something
 * else makes the vector, a class token for instance, there is no such sum. Then what is shown is an estimate, and says so.
 *
 *     kith_explanation why;
 *     kith_model_explain(model, &query, 1, &hit, NULL, &why, &err);
 *     // where why.estimate is empty:
 *     // sum of why.query[0].share + why.query[0].rest == sum of why.hit.share + why.hit.rest == why.score
 *     kith_explanation_release(&why);
 */
#ifndef KITH_EXPLAIN_H
#define KITH_EXPLAIN_H

#include <stdint.h>

#include "kith/model.h"
#include "kith/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The shares of one image's positions in the score. `view` is where the grid lies on the upright image: x, y, width, height in
 * pixels. It may reach beyond the image, where the network saw background. */
typedef struct kith_shares {
    double *share; /* [rows, columns], from the upper left; below 0: it speaks against the match */
    double rest;   /* of the linear layer's bias, which has no position; of an estimate 0 */
    double view[4];
    int64_t width, height; /* of the upright image, in pixels */
} kith_shares;

/* Owned: kith_explanation_release. */
typedef struct kith_explanation {
    double score; /* the cosine of the query and the hit */
    int64_t rows, columns;
    kith_shares *query; /* [n]: of each image of the query. All shares and all rests together are the score */
    int64_t n;
    kith_shares hit; /* its shares and its rest together are the score, too */
    /* Empty: all this is exact. Else a line for people: why the score is no sum over positions, and what the shares are instead, those of the
     * cosine of both averaged maps. They sum to that cosine, not to the score */
    char estimate[256];
} kith_explanation;

/* Explain the cosine of a query (as kith_model_query has it: one image, or several with weights; options NULL: the defaults)
 * and an image. `hit` may have a box; its weight and the options' flips do not count for it. With flips, the shares of the
 * mirror image are added to those of the image, each where it lies in the image.
 *
 * With max pooling a channel's share goes to the position where it is largest. Sums are exact: they miss the score by
 * rounding of doubles only (below 1e-12). From the cosine of the vectors, which are computed in float, the score differs by their
 * rounding: about 1e-7, and more where a device computes in bf16.
 *
 * Estimated are networks that pool by class, class_avg or attention, and those with a layer and a function between their pool and
 * their vectors (MobileNetV3 with its head): each image is taken for the average of its last feature map, which says where the two look
 * alike to the network, but not what its last layers made of that. `score` is that of the vectors.
 *
 * KITH_EUNSUPPORTED for the tap "map", whose vectors have no position that could be told from another. */
KITH_API kith_status kith_model_explain(kith_model *model, const kith_query_image *query, int64_t n,
                                        const kith_query_image *hit, const kith_query_options *options,
                                        kith_explanation *ret_explanation, kith_error *err);
KITH_API void kith_explanation_release(kith_explanation *explanation); /* NULL, and a zeroed one, are fine */

/* Draw it as .png or .jpg: the images that were explained side by side, each in grey with the shares over it, from red to yellow,
 * blue where they are below 0. After a failure the file is as it was before. */
KITH_API kith_status kith_explanation_draw(const kith_explanation *explanation, const kith_query_image *query,
                                           const kith_query_image *hit, const char *out, kith_error *err);

#ifdef __cplusplus
}
#endif
#endif
