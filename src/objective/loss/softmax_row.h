/* What the softmax losses share: one positive against all negatives of a row. */
#ifndef KI_OBJECTIVE_SOFTMAX_ROW_H
#define KI_OBJECTIVE_SOFTMAX_ROW_H

#include "objective/pair/pairs.h"

/* sum over kept positives p of ln(1 + sum_j e^(scale (s_j - s_p))), j the kept negatives; g receives weight *
 * its derivative. The negatives matter only through A = ln sum_j e^(scale s_j), so the cost of a row is its
 * length, not positives times negatives. */
double ki_softmax_row(const ki_pairs *pairs, const ki_row *row, ki_real scale, ki_real weight);

#endif
