/* Checks of a batch before it is evaluated. */
#ifndef KI_OBJECTIVE_CHECK_H
#define KI_OBJECTIVE_CHECK_H

#include "objective/state.h"

/* Shapes, labels and numbers of a batch against what the objective reads: KITH_ESHAPE, KITH_EINVAL,
 * KITH_ENUMERIC; the error says where. */
kith_status ki_batch_check(const ki_objective *objective, const ki_batch *batch, kith_error *err);
/* Shapes alone: the memory is not read, so it may be a device's. */
kith_status ki_batch_check_shapes(const ki_objective *objective, const ki_batch *batch, kith_error *err);
/* Are the rows without a class (label -1) of a whole batch the last ones, and can the terms do without them? KITH_EINVAL: another row
 * follows them, or nothing is left for a term that reads classes; KITH_EUNSUPPORTED: such a term reads the map. */
kith_status ki_batch_check_classes(const ki_objective *objective, const ki_batch *batch, kith_error *err);
/* How many rows have a class: those before the first without. */
int64_t ki_batch_labelled(const ki_batch *batch);
/* The same checks for a batch of m rows, of which the first n_labelled have a class. */
kith_status ki_batch_check_labelled(const ki_objective *objective, int64_t m, int64_t n_labelled,
                                    kith_error *err);
/* Shapes and numbers, without the labels. */
kith_status ki_batch_check_taps(const ki_objective *objective, const ki_batch *batch, kith_error *err);

#endif
