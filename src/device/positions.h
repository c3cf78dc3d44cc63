/* Positions stored for one grid of tokens, resampled to another (the op `tokens`).
 *
 * Resampling is a sum of products along each axis: position (y, x) of the new grid is the sum of y.weight * x.weight * stored
 * over the terms of y and of x. The terms are PyTorch's: interpolate with mode bicubic (a = -0.75) or bilinear and
 * align_corners=False, or bicubic with antialias=True (a = -0.5). For gradients there are the same terms by the stored
 * positions. All sums have a fixed order. */
#ifndef KI_POSITIONS_H
#define KI_POSITIONS_H

#include "base/error.h"
#include "base/real.h"
#include "device/op.h"

/* Row i has the terms first[i] to first[i + 1] - 1: weight[k] times element at[k] of the other grid. */
typedef struct ki_position_terms {
    int64_t n; /* rows */
    int32_t *first, *at;
    ki_real *weight;
} ki_position_terms;

typedef struct ki_positions {
    int64_t h, w, grid_h, grid_w;
    bool is_same;                     /* nothing is resampled, and there are no terms */
    ki_position_terms y, x;           /* of the new grid's rows and columns */
    ki_position_terms y_back, x_back; /* of the stored grid's */
} ki_positions;

/* For a map of h x w. Without positions (grid_h 0) it is the same. */
kith_status ki_positions_init(const ki_tokens_attr *attr, int64_t h, int64_t w, ki_positions *ret_positions,
                              kith_error *err);
void ki_positions_release(ki_positions *positions); /* fine on a zeroed one */

/* Row y of the new grid, dst [w, c], from stored [grid_h, grid_w, c]. */
void ki_positions_row(const ki_positions *positions, int64_t y, int64_t c, const ki_real *stored,
                      ki_real *dst);
/* Row y of the stored grid, diff_stored [grid_w, c], += from the new grid's gradient diff [h, w, c]. */
void ki_positions_back_row(const ki_positions *positions, int64_t y, int64_t c, const ki_real *diff,
                           ki_real *diff_stored);

#endif
