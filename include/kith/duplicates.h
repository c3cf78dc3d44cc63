/* Duplicates: the same picture more than once in an index, apart from pictures that are merely similar.
 *
 * The same picture is one photograph or drawing that was copied, resized, saved again at another quality, mirrored, or cut by up
 * to a tenth of its sides. Nearest neighbours, of the vectors and, in an index of up to 65,536 items, of very small pictures,
 * are the candidates; the pictures, read again, decide. */
#ifndef KITH_DUPLICATES_H
#define KITH_DUPLICATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/data.h"
#include "kith/index.h"
#include "kith/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kith_duplicates_options {
    size_t size;          /* of the struct: set by kith_duplicates_options_init */
    const char *where;    /* only among the items that this holds for; NULL: all. Borrowed for the call */
    const char *folder;   /* where paths that are not absolute begin; NULL: the working folder */
    int64_t n_candidates; /* nearest neighbours looked at for each item: 8, at most 100 */
    double least;         /* how alike pictures must be, 0 to 1: 0.95 */
    kith_progress_fn progress; /* may be NULL; in items */
    void *user;
} kith_duplicates_options;

/* The numbers above. */
KITH_API void kith_duplicates_options_init(kith_duplicates_options *options, size_t size);

/* One picture of a group. */
typedef struct kith_duplicate {
    int64_t id;
    bool is_same_file; /* its contents are those of the group's first */
    bool is_mirrored;  /* it is the mirror image of the group's first */
    double
        likeness; /* with the group's first, -1 to 1; a group may hold pictures that are alike only in steps */
} kith_duplicate;

typedef struct kith_duplicates {
    int64_t n_groups;
    int64_t
        *begin; /* [n_groups + 1]: pictures begin[i] … begin[i + 1] - 1 are group i; largest group first */
    kith_duplicate *pictures; /* the largest file of a group first */
    int64_t n_looked_at;      /* items whose picture was read */
    int64_t n_unread;         /* items without a picture that can be read */
} kith_duplicates;

/* Find the groups of the same picture. Items without a path, or whose file cannot be read, are in none, unless their contents
 * are known to be equal. The result does not depend on the number of threads. */
KITH_API kith_status kith_duplicates_find(const kith_index *index, const kith_duplicates_options *options,
                                          kith_duplicates *ret_duplicates, kith_error *err);
/* The same for all items of a data set, whose numbers are the ids; `where` and `folder` do not count. All pictures are compared
 * with all in their smallest form: a minute for 100,000. */
KITH_API kith_status kith_dataset_duplicates(const kith_dataset *dataset,
                                             const kith_duplicates_options *options,
                                             kith_duplicates *ret_duplicates, kith_error *err);
KITH_API void kith_duplicates_release(kith_duplicates *duplicates); /* fine on a zeroed struct */

#ifdef __cplusplus
}
#endif
#endif
