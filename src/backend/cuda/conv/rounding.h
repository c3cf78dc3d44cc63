/* How exact a weight gradient in bf16 is. Some engines split the sum over pixels into many parts and add these up
 * in bf16, which loses too many digits, and nothing in their description says so. A known gradient shows it: with
 * a constant source, the gradient at the middle of the kernel is the column sums of diff_dst. */
#ifndef KI_CUDA_ROUNDING_H
#define KI_CUDA_ROUNDING_H

#include "backend/cuda/conv/way.h"

#define KI_CONV_ROUNDING 0.006 /* the largest error allowed; one rounding to bf16 has an error of 0.0017 */

/* Is it a weight gradient in bf16, with a place of the kernel that is inside the source for every pixel? */
static inline bool ki_conv_can_check_rounding(const ki_conv_problem *p) {
    return p->pass == KI_CONV_DIFF_WEIGHTS && p->type == KI_NUMBER_BF16 && p->ph < p->kh && p->pw < p->kw &&
           (p->oh - 1) * p->sh < p->ih && (p->ow - 1) * p->sw < p->iw;
}
/* Relative L2 of the middle of diff_weights (packed bf16, not accumulating). The way is bound to io,
 * whose source is overwritten; waits. */
kith_status ki_conv_rounding(ki_backend *backend, const ki_conv_problem *problem, ki_conv_way *way,
                             const ki_conv_io *io, double *ret_off, kith_error *err);

#endif
