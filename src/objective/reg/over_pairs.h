/* What the regularizers over the pairs of a batch share: the pair view of a tap, and the gradient. */
#ifndef KI_OBJECTIVE_OVER_PAIRS_H
#define KI_OBJECTIVE_OVER_PAIRS_H

#include "objective/pair/pairs.h"
#include "objective/reg/reg.h"

/* Inner products of the tap's rows, all pairs kept. */
kith_status ki_reg_pairs_build(const ki_reg_in *in, ki_tap tap, ki_pairs *ret_pairs, kith_error *err);

/* From dL/ds times `scale` to the gradient at the tap, added with the term's weight. */
kith_status ki_reg_pairs_backward(const ki_reg_in *in, const ki_reg_out *out, const ki_pairs *pairs,
                                  ki_real *g, double scale, ki_tap tap, kith_error *err);

/* A sum over pairs of embeddings by their squared distances: the value is the sum of what the rows return, and
 * the gradient is scale times what they write. fn has the settings as its context. */
kith_status ki_reg_pairs_sum(const ki_reg_in *in, ki_pairs *pairs, ki_row_fn fn, double scale,
                             ki_reg_out *out, kith_error *err);

#endif
