/* What losses on ranks share: the rank of a positive among the kept columns of its row, with a sigmoid instead of a step.
 *
 *   r(i) = 1 + sum_{j != i} sigma((s_j - s_i) / T),   sigma(z) = 1 / (1 + e^(-z))
 *
 * A row costs its positives times its columns, so a batch of m costs m^2 times the images of a class: at most m^3, where all are of
 * one class. Memory is that of the pair matrix. */
#ifndef KI_OBJECTIVE_SOFT_RANK_H
#define KI_OBJECTIVE_SOFT_RANK_H

#include "objective/pair/pairs.h"

/* How many positives (the one itself is the first) and how many negatives are ranked no later than the positive at column i. */
typedef struct ki_soft_rank {
    double pos, neg;
} ki_soft_rank;

ki_soft_rank ki_soft_rank_of(const ki_row *row, int64_t i, ki_real inverse_temperature);
/* g += the derivative by s, from those by the two counts. */
void ki_soft_rank_backward(const ki_row *row, int64_t i, ki_real inverse_temperature, ki_soft_rank by);

#endif
