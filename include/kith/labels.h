/* Class labels from a file, for embeddings that were made elsewhere.
 *
 * Numbers stay as they are. Names are numbered 0, 1, … in the order in which they first appear, over all the
 * files that one kith_labels reads: the labels of queries and of a gallery then agree. */
#ifndef KITH_LABELS_H
#define KITH_LABELS_H

#include "kith/array.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kith_labels kith_labels;

/* None yet. Used by one thread at a time. */
KITH_API kith_status kith_labels_new(kith_labels **ret_labels, kith_error *err);
KITH_API void kith_labels_free(kith_labels *labels); /* NULL is fine */

/* One label per row of an embedding, as int64 [n]; release it with kith_array_release. `labels` may be NULL if the
 * names are not needed and no other file must have the same numbers. The file is
 *   .npy  integers of any type, bool or text (numpy's U and S), of shape [n] or [n, 1];
 *   .csv  the column `label` of a table with a header line, or the only column of one without;
 *   else  text with one label per line; blank lines do not count.
 * If every line of a text is a whole number, the labels are numbers. A pipe can be read, too. KITH_EFORMAT: the
 * file is not valid, or contains names where another file of these labels contained numbers; KITH_EUNSUPPORTED and
 * KITH_ESHAPE: an array that cannot be labels. */
KITH_API kith_status kith_labels_read(kith_labels *labels, const char *path, kith_array *ret_ids,
                                      kith_error *err);

/* How many names there are, and the name of an id; NULL past the end, and where the labels are numbers. */
KITH_API int64_t kith_labels_n_names(const kith_labels *labels);
KITH_API const char *kith_labels_name(const kith_labels *labels, int64_t id);

#ifdef __cplusplus
}
#endif
#endif
