/* High-order moments of the columns of a feature map, through products of projections, block by block.
 *
 *   p_t = f w_t, f [m * hw, c] the map's positions, w_t [c, dim];  phi_k = p_1 p_2 … p_k / sqrt(dim)
 *   g_k [m, dim] = mean of phi_k over the positions of an item
 *
 * cascaded: all orders 2 … K share w_1 … w_K. Otherwise every order k has k projections of its own, in the
 * order 2: w_1 w_2, 3: w_3 w_4 w_5, …
 *
 * A column of phi depends on the same column of the projections alone. So blocks of columns are handled one
 * after another with large matrix products, and the memory for [m * hw, dim] is limited: the blocks that fit
 * in keep_bytes are kept for backward, the others are computed again there. */
#ifndef KI_OBJECTIVE_MOMENTS_H
#define KI_OBJECTIVE_MOMENTS_H

#include "objective/reg/orders.h"
#include "objective/reg/reg.h"

typedef struct ki_moments {
    int64_t m, c, hw, dim;
    int orders; /* K */
    bool cascaded;
    const ki_real *w[KI_MOST_PROJECTIONS];
    ki_real *g[KI_HORDE_MOST_ORDERS + 1]; /* [2] … [K], each [m, dim]; before backward: dL/dg_k */
    size_t keep_bytes;                    /* 0 when no backward follows */
    ki_work *work;

    /* The rest belongs to moments.c. */
    ki_real *f;       /* [m * hw, c] */
    ki_real *scratch; /* one block: [n_w, m * hw, block] */
    ki_real **kept;   /* the same for the first n_kept blocks */
    int64_t block, n_kept;
} ki_moments;

/* Fills in g; all memory is taken from work. */
kith_status ki_moments_forward(ki_moments *moments, const ki_tap_data *map, kith_error *err);

/* From dL/dg: adds to diff_map (laid out as the map) and to diff_w[t] where it is not NULL. */
kith_status ki_moments_backward(ki_moments *moments, ki_real *diff_map, ki_real *const *diff_w,
                                kith_error *err);

#endif
