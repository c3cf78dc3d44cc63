/* Softmax of n rows of scores that lie one behind the other, on one thread. `wide` numbers of a row are a multiple of CPU_PANEL; behind
 * the last score there are -INFINITY. */
#ifndef KI_CPU_SOFTMAX_H
#define KI_CPU_SOFTMAX_H

#include <stdint.h>

/* x becomes e^(x - the row's largest), and factor [n] what to multiply it with for weights that sum to 1. saved [n]: NULL, or
 * the logarithms of the sums of e^x. */
void cpu_soften(float *x, int64_t n, int64_t wide, float *factor, float *saved);

/* The scores x become weights again, e^(x - saved), and diff, the gradient of the weights, that of the scores. */
void cpu_soften_back(float *x, float *diff, int64_t n, int64_t wide, const float *saved);

#endif
