/* Groups: photos of a collection that belong together, found without names.
 *
 *     KITH_OPTIONS(kith_groups_options, options);
 *     options.error = 0.05;
 *     kith_groups groups;
 *     kith_collection_group(photos, &options, &groups, &err);
 *     for (int64_t i = 0; i < groups.n_groups; i++)
 *         printf("group %lld: %lld photos\n", groups.groups[i].number, groups.begin[i + 1] - groups.begin[i]);
 *     kith_groups_release(&groups);
 *
 * A group is of one thing, as far as the model can tell: the same species, object or person's hand. (kith/duplicates.h finds the same picture
 * twice.) Items are put together whose lists of nearest neighbours are alike, not those that merely have a high score, so that a group in
 * a dense place is found like one in a sparse place, and a bridge of single photos joins nothing.
 *
 * How much is put together follows from the error that is allowed: of the pairs within groups, which part may be of different things. Where
 * items have labels, the labels say it: they are hidden from the grouping, and counted after it. Otherwise it is an estimate, from what
 * collections of birds, characters and glyphs needed at most, and from the collection's false-match rates.
 *
 * A group has a number that stays while the group does: items that come join it or found others, and a number is never given twice. */
#ifndef KITH_GROUPS_H
#define KITH_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/collection.h"
#include "kith/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The column of the index that says an item's group. */
#define KITH_GROUPS_COLUMN "group"

typedef struct kith_groups_options {
    size_t size; /* of the struct: set by kith_groups_options_init */
    double
        error; /* of the pairs put together at most this part of different things: 0.01; above 0, below 1 */
    int64_t least; /* items that make a group: 2, or more */
    bool all;      /* group items that have a label, too */
    const char
        *where; /* group only items that this holds for (kith/index.h); NULL: all that `all` lets through */
    kith_progress_fn progress; /* may be NULL; in items */
    void *user;
} kith_groups_options;

/* The numbers above; only items without a label. */
KITH_API void kith_groups_options_init(kith_groups_options *options, size_t size);

typedef struct kith_group {
    int64_t number;  /* from 1 on */
    int64_t medoid;  /* the item that represents it: nearest to the mean of its items */
    double cohesion; /* mean score of the others with the medoid */
} kith_group;

/* Owned: kith_groups_release. */
typedef struct kith_groups {
    int64_t n_groups;
    kith_group *groups; /* [n_groups]: the largest first, of equals the one with the lower number */
    int64_t *begin;     /* [n_groups + 1]: ids[begin[i]] … ids[begin[i + 1] - 1] are group i */
    int64_t *ids;       /* of a group the medoid first, then by falling score with it */
    int64_t n_items;    /* that could be grouped */
    int64_t n_alone;    /* of these in no group */
    int64_t n_new;      /* groups that got a number now */
    double error;       /* as asked */
    /* From labels: there are ten and more, and 100 and 1 / error pairs of labelled items and more are put together. */
    bool is_measured;
    int64_t n_labels, n_pairs; /* labels, and pairs of labelled items that were put together; … */
    double precision,
        recall; /* … the part of these that have one label, and of the pairs of one label those put together; NaN: not
                                   measured */
    double level; /* how alike lists had to be, 0 to 1; above 1: nothing is alike enough */
} kith_groups;

/* Find the groups of all items, new and old. In a collection opened for writing they are written and committed: every item of a group has its
 * number in the column `group`, for `where`, and kith_collection_sync and the other additions put what is new into them. One opened for
 * reading stays as it is. A group that was there before, and holds more of its items than any other, keeps its number; the lower where two have
 * become one. The result does not depend on the number of threads. options may be NULL. KITH_EINVAL: the index has a column
 * `group` that is not from here. KITH_ENOTFOUND: no item is to be grouped. */
KITH_API kith_status kith_collection_group(kith_collection *collection, const kith_groups_options *options,
                                           kith_groups *ret_groups, kith_error *err);
KITH_API void kith_groups_release(kith_groups *groups); /* fine on a zeroed struct */

#ifdef __cplusplus
}
#endif
#endif
