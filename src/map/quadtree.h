/* A quadtree over points in the plane, in preorder. A walk is one loop over an array, and skipping a
 * subtree is one jump. Built from points sorted along a Z-order curve, so that its shape depends on
 * the points alone. */
#ifndef KI_QUADTREE_H
#define KI_QUADTREE_H

#include <stdint.h>

#include "base/error.h"

typedef struct ki_quadnode {
    double x, y;   /* centre of mass */
    double n;      /* points below */
    double side2;  /* squared side of the cell; 0 for a leaf, which is always used whole */
    int32_t after; /* the next node when this one is used as a whole or skipped */
} ki_quadnode;

typedef struct ki_quadtree {
    int32_t n_points, n_nodes, most_nodes;
    ki_quadnode *node;
    uint64_t *code; /* [n_points] place on the curve and, below, the point's number */
    uint64_t *spare;
    const double *xy;
} ki_quadtree;

kith_status ki_quadtree_init(int32_t n_points, ki_quadtree *ret_tree, kith_error *err);
void ki_quadtree_release(ki_quadtree *tree);

/* Build over xy [n_points, 2]; takes no memory. */
void ki_quadtree_build(ki_quadtree *tree, const double *xy);

/* Sums over all points p (the one at (x, y) itself included, which adds 1 to z and nothing to the force):
 * z += w, force += w^2 ((x, y) - p) with w = 1 / (1 + |(x, y) - p|^2); cells of side < theta * distance
 * count as one point. */
void ki_quadtree_repel(const ki_quadtree *tree, double x, double y, double theta2, double *ret_force,
                       double *ret_z);

#endif
