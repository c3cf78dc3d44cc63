/* Values and labels that items were given after their segments were written: a list by column and id that overrides the columns.
 *
 * Kept as a segment without vectors (segment.h, dim 0), written once as every file of an index is (docs/adr/0182). A row is one value of
 * one item: the item's id; the number of its column, negative where the item has no value in it any more; the number, a real one by its bits; the
 * text as the path. Rows are in the order of columns, and of ids in each. */
#ifndef KI_SEARCH_UPDATES_H
#define KI_SEARCH_UPDATES_H

#include "base/arena.h"
#include "search/files/segment.h"

typedef struct ki_update {
    int64_t id, column; /* KI_COLUMN_LABEL, or one of the index's own */
    kith_value value;
} ki_update;

/* Values for many items. */
typedef struct ki_new_values {
    const int64_t *ids; /* [n]; of an id that is there twice the last counts */
    int64_t n;
    const int64_t *columns; /* [n_columns], as of an update */
    int64_t n_columns;
    const kith_value *values; /* [n, n_columns] */
} ki_new_values;

/* Zero-initialise. */
typedef struct ki_updates {
    ki_arena arena; /* of the texts that were added … */
    ki_cells texts; /* … and that were read */
    ki_update *update;
    int64_t n;
    size_t capacity;
} ki_updates;

void ki_updates_release(ki_updates *updates);
/* Behind the others, with a copy of the text; `borrow`: the text lives long enough by itself. */
kith_status ki_updates_add(ki_updates *updates, const ki_update *update, bool borrow, kith_error *err);
/* By column and id, and of several for one item the last that was added. */
kith_status ki_updates_order(ki_updates *updates, kith_error *err);
/* Of ordered updates: the one of the column and id, or NULL. */
const ki_update *ki_updates_find(const ki_updates *updates, int64_t column, int64_t id);
/* Leave out all of ids from this one on. */
void ki_updates_cut(ki_updates *updates, int64_t first_id);

/* Ordered updates. */
kith_status ki_updates_write(const ki_updates *updates, const char *path, ki_blocks_seal *ret_seal,
                             kith_error *err);
/* types [n_types] of the index's own columns. KITH_EFORMAT for what is out of order, for an id that is not below next_id, and for
 * a value that cannot be in its column. */
kith_status ki_updates_read(const char *path, ki_blocks_seal seal, int64_t next_id,
                            const kith_value_type *types, int64_t n_types, ki_updates *ret_updates,
                            kith_error *err);

/* The values of a segment's column, whose rows have these ids [cells->n], as they are after the updates, which are ordered. */
kith_status ki_updates_apply(const ki_updates *updates, int64_t column, const int64_t *ids, ki_cells *cells,
                             kith_error *err);

#endif
