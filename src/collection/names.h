/* How often names that a collection gives are wrong: measured on its own labels, and kept with the index. */
#ifndef KI_COLLECTION_NAMES_H
#define KI_COLLECTION_NAMES_H

#include "judge/naming.h"
#include "kith/collection.h"

/* Which items may give a name. */
#define KI_NAMED "label != ''"

/* Measure, and note it from the next commit on. With too few labels a note that is there is taken away, and all is fine. */
kith_status ki_measure_names(kith_index *index, kith_error *err);

/* The curve: noted, or where there is no note, or the labelled items are not what they were, measured. Lives until the collection is changed,
 * freed, or has another commit. KITH_ENOTFOUND: too few labels for any. KITH_EFORMAT: the note is damaged. */
kith_status ki_collection_names(kith_collection *collection, const ki_name_curve **ret, kith_error *err);

#endif
