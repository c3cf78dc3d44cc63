/* Soft histograms: a number between two nodes is shared between them linearly. */
#ifndef KI_OBJECTIVE_BINS_H
#define KI_OBJECTIVE_BINS_H

#include <stdbool.h>
#include <stdint.h>

/* The node below a place on an axis whose nodes are 0 … n_nodes - 1, and the distance from it. A place beyond
 * the ends is moved to the end, and false says that it has no gradient. */
static inline bool ki_bins_place(double at, int64_t n_nodes, int64_t *ret_node, double *ret_past) {
    int64_t node = at > 0 ? (int64_t)at : 0;
    if (node > n_nodes - 2) node = n_nodes - 2;
    const double past = at - (double)node;
    *ret_node = node;
    *ret_past = past < 0 ? 0 : past > 1 ? 1 : past;
    return past >= 0 && past <= 1;
}

#endif
