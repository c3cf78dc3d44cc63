/* A linear map that whitens directions: for a network's last linear layer, which can take it in. */
#ifndef KI_WHITEN_H
#define KI_WHITEN_H

#include <stdint.h>

#include "core/error.h"

/* From rows [n, dim], of which only the directions count: M is the mean of x x^T over rows of length 1, l are its eigenvalues, s is
 * the mean of all l but the largest (which is mostly that of the mean row).
 *
 *   ret_map [dim, dim] = sqrt(s) (M + 0.1 s I)^(-1/2)
 *
 * It is symmetric. A variance that is small among these rows need not be small among others: the tenth of the mean keeps noise small.
 * At least 2 rows. */
kith_status ki_whiten_map(const float *rows, int64_t n, int64_t dim, double *ret_map, kith_error *err);

#endif
