/* Shares: what each position of a feature map adds to a product of the vector that is made from it.
 *
 * A vector is a map [heads, channels, positions] pooled over its positions and mapped linearly, so that it is a sum over
 * positions and a bias. Average pooling gives every position of a channel its part; max pooling gives the channel's whole value
 * to the position where it is largest, the first of several; the generalised mean is shared out as the powers are. A layer norm between the two
 * divides by one number for the whole image, as normalising does, and is linear otherwise. The product of the vector with any other is then the same
 * sum, term by term. Everything is computed in double. */
#ifndef KI_SHARES_H
#define KI_SHARES_H

#include "device/op.h"

/* Pointers are borrowed. */
typedef struct ki_shares {
    ki_global_pool pool;
    double power;                       /* of the generalised mean */
    int64_t heads, channels, positions; /* channels of one head */
    const float *gamma, *beta;          /* [channels], of a layer norm behind the pool; NULL: none */
    double eps;                         /* its */
    int64_t dim;                        /* of one head's vector: `channels` without weights */
    const float *weights;               /* [dim, channels]; NULL: the vector is the pooled map */
    const float *bias;                  /* [dim]; NULL: none */
    bool unit_heads;                    /* each head's vector is normalised */
} ki_shares;

/* The vector [heads * dim] of a map, and what each head's was divided by [heads]. */
kith_status ki_shares_vector(const ki_shares *shares, const float *map, double *ret_vector, double *ret_norm,
                             kith_error *err);

/* The product of that vector with `other` [heads * dim]: the sum of ret_share [positions], and *ret_rest for the bias. */
kith_status ki_shares_product(const ki_shares *shares, const float *map, const double *norm,
                              const double *other, double *ret_share, double *ret_rest, kith_error *err);

#endif
