/* Query images as pictures that a model can embed: decoded, cut to their box, where asked for mirrored, and as small as the model takes
 * them, because all of them are kept. */
#ifndef KI_MODEL_PICTURES_H
#define KI_MODEL_PICTURES_H

#include "data/transform/transform.h"
#include "kith/model.h"

typedef struct ki_picture {
    ki_image image;
    int32_t full_w, full_h; /* of the upright image that it was made from … */
    double part[4];         /* … and the part of that which it shows: x, y, width, height in its pixels */
    bool is_mirrored;
} ki_picture;

typedef struct ki_pictures {
    kith_model *model;
    kith_transform transform; /* of the model */
    ki_picture *picture;
    int64_t n, room;
    ki_bytes file;
    ki_image whole; /* the one that was decoded last */
    ki_transform_scratch scratch;
} ki_pictures;

/* Room for so many pictures. Release it, also after a failure. */
kith_status ki_pictures_init(ki_pictures *pictures, kith_model *model, int64_t room, kith_error *err);
void ki_pictures_release(ki_pictures *pictures);

/* Add an image, and behind it, if `mirrored`, its mirror image. KITH_EINVAL when its box lies outside. */
kith_status ki_pictures_add(ki_pictures *pictures, const kith_query_image *image, bool mirrored,
                            int64_t most_pixels, kith_error *err);

/* A tap's (NULL: the default one's) values of all pictures: ret_values [n, …]. */
kith_status ki_pictures_embed(const ki_pictures *pictures, const char *tap, float *ret_values,
                              kith_error *err);

#endif
