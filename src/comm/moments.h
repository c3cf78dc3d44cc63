/* Means and variances of numbers that are spread over ranks, and small sums in double: what a batch norm needs. */
#ifndef KI_COMM_MOMENTS_H
#define KI_COMM_MOMENTS_H

#include "comm/comm.h"

/* For each of `c` channels: mean and sum of squared deviations from it, of this rank's n numbers (n > 0 on every rank) and
 * afterwards of all ranks' numbers, whose count is *ret_n. */
kith_status ki_comm_moments(ki_comm *comm, double n, double *mean, double *squares, int64_t c, double *ret_n,
                            kith_error *err);
/* x [n] = the sum of all ranks' x, in the order of the ranks. Meant for a few thousand numbers. */
kith_status ki_comm_sum_doubles(ki_comm *comm, double *x, int64_t n, kith_error *err);

#endif
