/* Grids: a row of a list that gives keys several values stands for all of their combinations, which are rows of their own.
 *
 * With successive halving (Jamieson and Talwalkar 2016) every combination is trained for a few steps, the best part of them for more,
 * and so on. A run of more steps is a run of its own, from the start: schedules end where it ends, and its numbers are those
 * that the combination has without halving. Only scores of validation classes decide. */
#ifndef KI_REPRODUCE_GRID_H
#define KI_REPRODUCE_GRID_H

#include "base/buffer.h"
#include "reproduce/list.h"
#include "reproduce/outcome.h"

struct ki_list_grid {
    const char *name, *by; /* by: the score of validation classes, "map_at_r" */
    size_t n_keys, n_settings;
    const char **key;   /* [n_keys] */
    const char **value; /* [n_settings, n_keys], as people write them */
    double keep;        /* halving: the part that goes on */
    size_t n_rungs;
    int64_t *steps;         /* [n_rungs]; without halving one rung: 0, the recipe's own */
    const ki_list_row *row; /* [n_rungs, n_settings], in the list */
};

/* Put rows for the combinations in place of rows with a grid. */
kith_status ki_grid_expand(ki_list *list, kith_error *err);

/* How many of n settings go on. */
size_t ki_grid_n_kept(const ki_list_grid *grid, size_t n);
/* Of those that are alive the best by score stay alive, ties to the earlier setting; those without a score (NaN) do not. */
void ki_grid_halve(const ki_list_grid *grid, const double *score, bool *alive);

/* What was tried, the best first, as a part of the page. */
kith_status ki_grids_put(const ki_list *list, const ki_outcomes *all, ki_buffer *to, kith_error *err);

#endif
