/* False-match rates of a collection: on its own labels after a change, or on a data set (docs/adr/0053). */
#ifndef KI_COLLECTION_MEASURE_H
#define KI_COLLECTION_MEASURE_H

#include "kith/collection.h"

/* After a commit that changed items: measured on the index's own labels beside the model's curve (model may be NULL) and committed, where
 * that is due. Not when the user measured them on other data, or a tenth of the items has not changed since the last time; with too
 * few labels a curve of earlier ones is taken away. After a failure the index can only be freed. */
kith_status ki_measure(kith_index *index, const kith_model *model, kith_error *err);

#endif
