/* Soft histograms on the device (bins.h): sums of fractions, in the order in which threads come. They are kept as
 * whole multiples of 2^-36, whose sum is the same in any order. */
#ifndef KI_OBJECTIVE_BINS_CUH
#define KI_OBJECTIVE_BINS_CUH

#include "objective/cuda/row.cuh"

typedef unsigned long long ki_cuda_bin;
static const double KI_BIN_ONE = 68719476736.0; /* 2^36: 2^27 pairs fit */

static __device__ __forceinline__ void ki_bin_add(ki_cuda_bin *at, double share) {
    atomicAdd(at, (ki_cuda_bin)llround(share * KI_BIN_ONE));
}
static __device__ __forceinline__ double ki_bin_get(ki_cuda_bin count) { return (double)count / KI_BIN_ONE; }

/* The node below a place on the axis, and the distance from it; false when it is beyond the ends. */
static __device__ __forceinline__ bool ki_bin_place(double at, int n_nodes, int *node, double *past) {
    int below = at > 0 ? (at < (double)n_nodes ? (int)at : n_nodes) : 0;
    if (below > n_nodes - 2) below = n_nodes - 2;
    const double rest = at - (double)below;
    *node = below;
    *past = rest < 0 ? 0 : rest > 1 ? 1 : rest;
    return rest >= 0 && rest <= 1;
}

#endif
