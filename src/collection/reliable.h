/* The chance that a hit is wrong, of a collection: measured on its labels, kept as a note of its index, told of hits. */
#ifndef KI_COLLECTION_RELIABLE_H
#define KI_COLLECTION_RELIABLE_H

#include "collection/collection.h"
#include "kith/reliability.h"

/* Measure on the labels of the last commit, and note it; too few of them: note that nothing is known. *ret_is_changed: there is something
 * to commit. */
kith_status ki_reliable_measure(kith_index *index, bool *ret_is_changed, kith_error *err);

/* Is there a note that can be read? */
bool ki_reliable_is_there(const kith_index *index);

/* KITH_ENOTFOUND: nothing is known. KITH_EFORMAT: the note is damaged. */
kith_status ki_reliable_read(const kith_index *index, kith_reliability *ret, kith_error *err);

#endif
