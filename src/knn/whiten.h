/* A linear map that whitens directions: for a network's last linear layer, which can take it in. */
#ifndef KI_WHITEN_H
#define KI_WHITEN_H

#include <stdbool.h>
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

/* The first n_axes eigenvectors of M, those of the largest eigenvalues first, as a map of rows into so many numbers: ret_map
 * [n_axes, dim]. Plain, cosines stay what they are, but for what lies outside of the axes. With is_white each is
 * multiplied by sqrt(s / (l + KI_WHITEN_SOFTNESS s)), so that all axes together are the map above, rotated. n_axes from 1 to dim; with
 * few rows the last ones span what no row has. KITH_EINVAL as above. */
kith_status ki_whiten_axes(const float *rows, int64_t n, int64_t dim, int64_t n_axes, bool is_white,
                           double *ret_map, kith_error *err);

#endif
