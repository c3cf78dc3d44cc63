/* Checks of a batch before it is evaluated. */
#ifndef KI_OBJECTIVE_CHECK_H
#define KI_OBJECTIVE_CHECK_H

#include "objective/state.h"

/* Shapes, labels and numbers of a batch against what the objective reads: KITH_ESHAPE, KITH_EINVAL,
 * KITH_ENUMERIC; the error says where. */
kith_status ki_batch_check(const ki_objective *objective, const ki_batch *batch, kith_error *err);
/* The same without the labels. */
kith_status ki_batch_check_taps(const ki_objective *objective, const ki_batch *batch, kith_error *err);

#endif
