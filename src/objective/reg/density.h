/* Density of classes: the mean squared distance of a class's items to their mean. */
#ifndef KI_OBJECTIVE_DENSITY_H
#define KI_OBJECTIVE_DENSITY_H

#include <stdint.h>

#include "core/error.h"
#include "core/real.h"

/* d0 [n_classes] from features x [n, dim] of a whole data set and their labels: the original densities that
 * the density regularizer keeps in proportion. The paper takes the pooled features of the starting
 * network. Classes without items get 0. KITH_EINVAL names a label outside the classes. */
kith_status ki_density_measure(const ki_real *x, const int32_t *label, int64_t n, int64_t dim,
                               int64_t n_classes, ki_real *ret_d0, kith_error *err);

#endif
