/* What several runs come to: the mean and how far it can be trusted. */
#ifndef KI_ESTIMATE_H
#define KI_ESTIMATE_H

#include "kith/train.h"

/* Quantile 0.975 of Student's t; freedom from 1. */
double ki_t_quantile(int freedom);

/* The mean of n values and its 95 % interval by Student's t; NaN values are left out. */
kith_estimate ki_estimate_mean(const double *values, int n);

#endif
