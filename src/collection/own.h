/* What in the cache kith itself made. Everything else that lies there is somebody's, and is neither listed nor removed. */
#ifndef KI_COLLECTION_OWN_H
#define KI_COLLECTION_OWN_H

#include <stdbool.h>

/* Is PHOTOS/NAME an entry: a folder (no link) with a name as kith gives them, and in it the record that belongs to that name, or nothing
 * but files of kith's? */
bool ki_own_entry(const char *photos, const char *name);

/* Is PHOTOS/NAME an entry that a killed process was removing? */
bool ki_own_leftover(const char *photos, const char *name);

/* Is MODELS/NAME a kept model: a file (no link) named by a hash? */
bool ki_own_model(const char *models, const char *name);

#endif
