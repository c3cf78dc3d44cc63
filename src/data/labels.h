/* Class labels from files already in memory; see kith/labels.h. */
#ifndef KI_LABELS_H
#define KI_LABELS_H

#include "base/error.h"
#include "kith/labels.h"

/* As kith_labels_read; `name` is what errors call the file, and its ending says what it is. */
kith_status ki_labels_parse(kith_labels *labels, const char *bytes, size_t n, const char *name,
                            kith_array *ret_ids, kith_error *err);

#endif
