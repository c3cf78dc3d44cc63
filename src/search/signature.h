/* A signature: what a picture looks like from afar, to tell the same picture from a similar one.
 *
 * The same picture means one photograph or drawing that was resized, saved again at another quality, mirrored, or lost a
 * little at its edges. Another photograph of the same thing is similar, and not the same. */
#ifndef KI_SIGNATURE_H
#define KI_SIGNATURE_H

#include "data/image/image.h"
#include "data/transform/resample.h"

enum { KI_SIGNATURE_SIDE = 32, KI_SIGNATURE_COARSE = 8 };

typedef struct ki_signature {
    uint8_t grey[KI_SIGNATURE_SIDE * KI_SIGNATURE_SIDE];         /* the picture, squashed */
    int8_t colour[2][KI_SIGNATURE_COARSE * KI_SIGNATURE_COARSE]; /* red - green and blue - green, halved */
    float coarse[KI_SIGNATURE_COARSE * KI_SIGNATURE_COARSE]; /* grey, of mean 0 and length 1; 0 when flat */
    float aspect;                                            /* width / height */
    bool is_there;                                           /* the picture could be read */
} ki_signature;

/* Least side an image should be decoded with for its signature. */
enum { KI_SIGNATURE_LEAST_SIDE = 2 * KI_SIGNATURE_SIDE };

/* The signature of a decoded image. `scratch` and `small` are memory to use, one of each per thread. */
kith_status ki_signature_make(const ki_image *image, ki_resampler *scratch, ki_image *small,
                              ki_signature *ret_signature, kith_error *err);

/* How alike two pictures are, -1 to 1: the correlation of their grey values in the best position of one inside the other, with
 * up to a tenth of each side cut off. *ret_mirrored: they are alike as mirror images. Pictures of quite another form or colour
 * are -1 alike. */
double ki_signature_likeness(const ki_signature *a, const ki_signature *b, bool *ret_mirrored);

/* The coarse values of the picture, or of its mirror image: ret_values [8 * 8]. Their inner product is a rough likeness. */
void ki_signature_looks(const ki_signature *signature, bool mirrored, float *ret_values);

/* From this likeness on two pictures are the same. */
#define KI_SIGNATURE_SAME 0.95

#endif
