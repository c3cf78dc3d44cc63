/* What belongs together: rows into groups, from the lists of their neighbours.
 *
 * Two rows are alike as far as their lists are: a list weighs its first neighbours most, and the likeness is the common weight by that of
 * both (weighted Jaccard). What a neighbour weighs follows from where its score lies between the first and the last of its list, so that a
 * group in a dense place is found like one in a sparse place, and a bridge of single rows joins nothing. Groups grow by average linkage: of all pairs between two groups, those without a common neighbour
 * have the likeness 0. The groups are a tree; a level of it is chosen by labels, or by what other collections had.
 *
 * All sums are of whole numbers: neither threads nor their order change a bit. Ties go to the lower row. */
#ifndef KI_TOGETHER_H
#define KI_TOGETHER_H

#include <stdint.h>

#include "base/error.h"

enum { KI_GROUPS_K = 20, KI_GROUPS_LEVELS = 100 };

/* Neighbours of n rows, nearest first, without the rows themselves. -1: none that counts; its place is kept, so that a row with few
 * neighbours is less alike to others. k is at most KI_GROUPS_K. */
typedef struct ki_near_lists {
    int64_t n, k;
    int64_t n_rows; /* lists name rows below this; those from n on have no list here, and are in no group */
    const int64_t *near; /* [n, k] */
    const double
        *score; /* [n, k]: of all places, those without a neighbour that counts, too; NaN: there is nothing */
    /* [n]: rows with the same number here, 0 to n - 1, are one group from the start, and two such groups never become one; -1: as it
     * comes. NULL: none */
    const int64_t *seed;
} ki_near_lists;

/* How long lists of a collection of n rows are: in a small one short, because else everything is in every list. */
int64_t ki_groups_k(int64_t n);

/* Two groups that became one, by one row of each. */
typedef struct ki_joined {
    int64_t a, b;
    double likeness; /* 0 to 1, the mean of all pairs between them */
} ki_joined;

typedef struct ki_group_tree {
    int64_t n, n_joined;
    ki_joined *joined; /* the most alike first */
} ki_group_tree;

/* KITH_EINVAL: a list names a row that is not there, or the row itself. */
kith_status ki_group_tree_make(const ki_near_lists *lists, ki_group_tree *ret_tree, kith_error *err);
void ki_group_tree_release(ki_group_tree *tree); /* fine on a zeroed struct */

/* ret_group [n]: the lowest row of each row's group, if only what is at least so alike is joined. */
void ki_group_tree_cut(const ki_group_tree *tree, double least, int64_t *ret_group);

/* Pairs of rows that have labels. */
typedef struct ki_pairs_found {
    int64_t n_together; /* put together, … */
    int64_t n_wrong;    /* … and of different labels */
    int64_t n_same;     /* of one label */
    double
        deviation; /* of the part that is wrong, if groups are drawn: pairs of one group are wrong together */
} ki_pairs_found;

/* Count the pairs of groups [n] by labels [n], -1: none. */
kith_status ki_group_pairs(const int64_t *group, const int64_t *label, int64_t n, ki_pairs_found *ret_found,
                           kith_error *err);

/* The lowest of the levels 1/100, 2/100 … at which at most the part `error` of the pairs that are put together are of different labels, with
 * two standard deviations to spare, because other pairs will be put together than these; of at least 1 / error pairs, and 100.
 * *ret_level: 0 if there is none; else *ret_found is what it puts together. */
kith_status ki_group_level(const ki_group_tree *tree, const int64_t *label, double error, double *ret_level,
                           ki_pairs_found *ret_found, kith_error *err);

/* The level for an error without labels: what collections of other things needed for it at most. An estimate. */
double ki_group_level_guess(double error);
/* The lowest level from `least` on that labels, few as they are, do not speak against: at most one pair, or the part `error`, is of
 * different ones. Above 1: there is none. */
kith_status ki_group_level_unrefuted(const ki_group_tree *tree, const int64_t *label, double error,
                                     double least, double *ret_level, kith_error *err);

#endif
