/* A random rotation of vectors that takes dim log dim steps: rounds of random signs and Hadamard transforms.
 *
 * After it the values of any vector look alike, drawn from one bell curve, which is what codes of a few bits for each value
 * rely on. Lengths and inner products stay as they are. */
#ifndef KI_SEARCH_ROTATION_H
#define KI_SEARCH_ROTATION_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct ki_rotation {
    int64_t dim;   /* a multiple of 16 */
    int64_t width; /* of the transform: the largest power of two up to dim */
    float *sign;   /* [rounds, dim]: 1 or -1, times the transform's 1 / sqrt(width) */
} ki_rotation;

/* The same seed gives the same rotation. */
kith_status ki_rotation_init(ki_rotation *rotation, int64_t dim, uint64_t seed, kith_error *err);
void ki_rotation_release(ki_rotation *rotation); /* fine on a zeroed struct */

/* In place, and back. */
void ki_rotation_apply(const ki_rotation *rotation, float *x);
void ki_rotation_undo(const ki_rotation *rotation, float *x);

/* Floats that it holds. */
size_t ki_rotation_numbers(const ki_rotation *rotation);

#endif
