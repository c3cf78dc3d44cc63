/* The list of a reproduction: rows (a recipe, what it is compared with), the order to run them in, the orders and
 * curves to show. research/recipes/cub/tables.yaml is one, and says what the keys mean. */
#ifndef KI_REPRODUCE_LIST_H
#define KI_REPRODUCE_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/value.h"
#include "kith/experimental/reproduce.h"

typedef struct ki_list_grid ki_list_grid; /* reproduce/grid.h */

/* Percentages are R@1; NaN: none. */
typedef struct ki_list_row {
    const char *name, *recipe; /* recipe: "": as the name */
    const char *of;            /* "": a row with runs of its own */
    const char *block;         /* of the result: "test", or a variant */
    const char *group, *table, *baseline, *note;
    const ki_value *set;   /* list of "key=value", or NULL */
    const ki_value *paper; /* map from source to percent, or NULL */
    double pytorch, target;
    const ki_value *grid, *halving; /* in the file alone: such a row becomes many */
    const char *by;
    /* One of those: which combination of which grid, and in which round of halving. NULL: an ordinary row. */
    const ki_list_grid *in;
    size_t setting, rung;
} ki_list_row;

typedef struct ki_list_pass {
    const ki_value *groups; /* list of names */
    const char *seeds;      /* "all" or a number */
} ki_list_pass;

typedef struct ki_list_table {
    const char *name, *title;
    const ki_value *set; /* overrides of its rows, before their own; or NULL */
} ki_list_table;

typedef struct ki_list_order {
    const char *title, *metric; /* "recall.1", "nmi" … */
    const ki_value *rows;       /* map from row to the paper's number or nothing, best first */
} ki_list_order;

typedef struct ki_list_curve {
    const char *name, *title;
    const ki_value *rows; /* list of names: a line for each … */
    const char *variants; /* … or a row with a line for each of its variants (base/variant.h); "": none */
    const char *orders;   /* an earlier name of `variants` */
} ki_list_curve;

/* What the page begins with: a drawing and a short table of methods, each beside its row's baseline. */
typedef struct ki_list_method {
    const char *method, *row;
} ki_list_method;

typedef struct ki_list_summary {
    const char *name, *title; /* name "": there is none */
    const ki_value *rows;
    ki_list_method *method;
    size_t n;
} ki_list_summary;

/* A drawing of gains over how much the baselines overfit, a colour for each series of rows. */
typedef struct ki_list_series {
    const char *title;
    const ki_value *rows; /* list of names, each with a baseline */
} ki_list_series;

typedef struct ki_list_gains {
    const char *name, *title; /* name "": there is none */
    const ki_value *series;
    ki_list_series *item;
    size_t n;
} ki_list_gains;

/* Everything lives in the arena. */
typedef struct ki_list {
    ki_arena arena;
    const char *path, *folder, *title;
    const ki_value *set; /* overrides of all rows, before their own; or NULL */
    ki_list_row *row;
    ki_list_pass *pass;
    ki_list_table *table;
    ki_list_order *order;
    ki_list_curve *curve;
    ki_list_summary summary;
    ki_list_gains gains;
    ki_list_grid *grid;
    size_t n_rows, n_passes, n_tables, n_orders, n_curves, n_grids;
} ki_list;

/* Every key is checked, and every name of a row, a table or a group that is used must be there. */
kith_status ki_list_read(const char *path, ki_list *ret_list, kith_error *err);
void ki_list_release(ki_list *list); /* fine on a zeroed struct */

const ki_list_row *ki_list_find(const ki_list *list, const char *name); /* NULL: none */
/* The row whose runs this row's figures come from. */
const ki_list_row *ki_list_source(const ki_list *list, const ki_list_row *row);
const ki_list_table *ki_list_table_of(const ki_list *list, const ki_list_row *row); /* NULL: none */

/* run.c: what cannot be left out of the options is there. */
kith_status ki_reproduce_check(const kith_reproduce_options *options, kith_error *err);

#endif
