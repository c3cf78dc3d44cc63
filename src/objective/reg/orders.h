/* Limits of high-order moments, for the host and for kernels (moments.h: what they are). */
#ifndef KI_OBJECTIVE_ORDERS_H
#define KI_OBJECTIVE_ORDERS_H

#include <stdbool.h>

enum { KI_HORDE_MOST_ORDERS = 8, KI_MOST_PROJECTIONS = 35 /* 2 + 3 + … + 8 */ };

/* How many projections orders 2 … `orders` take: cascaded orders share theirs, otherwise order k has k of its
 * own. */
static inline int ki_moments_projections(int orders, bool cascaded) {
    return cascaded ? orders : orders * (orders + 1) / 2 - 1;
}

#endif
