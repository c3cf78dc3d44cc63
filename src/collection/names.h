/* How often names that a collection gives are wrong: measured on its own labels, and kept with the index. */
#ifndef KI_COLLECTION_NAMES_H
#define KI_COLLECTION_NAMES_H

#include "judge/naming.h"
#include "kith/collection.h"

/* Which items may give a name. */
#define KI_NAMED "label != ''"

/* Measure on the labels of the last commit, and note it; with too few of them a note that is there is taken away. *ret_is_changed: there
 * is something to commit. */
kith_status ki_measure_names(kith_index *index, bool *ret_is_changed, kith_error *err);

/* The curve: noted, or where there is no note, or the labelled items are not what they were, measured. Lives until the collection is changed,
 * freed, or has another commit. KITH_ENOTFOUND: too few labels for any. KITH_EFORMAT: the note is damaged. */
kith_status ki_collection_names(kith_collection *collection, const ki_name_curve **ret, kith_error *err);

#endif
