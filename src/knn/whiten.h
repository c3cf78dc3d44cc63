/* A linear map that whitens directions: for a network's last linear layer, which can take it in. */
#ifndef KI_WHITEN_H
#define KI_WHITEN_H

#include <stdint.h>

#include "base/error.h"

/* Of the mean variance, added to each before its root is divided by: one that is small among some rows need not be small among
 * others, and noise stays small. */
#define KI_WHITEN_SOFTNESS 0.1

/* From rows [n, dim], of which only the directions count: M is the mean of x x^T over rows of length 1, l are its eigenvalues, s is
 * the mean of all l but the largest (which is mostly that of the mean row).
 *
 *   ret_map [dim, dim] = sqrt(s) (M + KI_WHITEN_SOFTNESS s I)^(-1/2)
 *
 * It is symmetric. KITH_EINVAL: fewer than 2 rows, or all of them have one direction. */
kith_status ki_whiten_map(const float *rows, int64_t n, int64_t dim, double *ret_map, kith_error *err);

#endif
