/* Checks of a batch before it is evaluated. */
#ifndef KI_OBJECTIVE_CHECK_H
#define KI_OBJECTIVE_CHECK_H

#include "objective/state.h"

/* Shapes, labels and numbers of a batch against what the objective reads: KITH_ESHAPE, KITH_EINVAL,
 * KITH_ENUMERIC; the error says where. */
kith_status ki_batch_check(const ki_objective *objective, const ki_batch *batch, kith_error *err);
/* Shapes alone: the memory is not read, so it may be a device's. */
kith_status ki_batch_check_shapes(const ki_objective *objective, const ki_batch *batch, kith_error *err);
/* Shapes and numbers, without the labels. */
kith_status ki_batch_check_taps(const ki_objective *objective, const ki_batch *batch, kith_error *err);

#endif
