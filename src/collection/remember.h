/* The model of a collection, as its index remembers it: the file, and the options that the file does not hold. They say how to
 * open the model; whether that gives the model that made the index is decided by its identity. */
#ifndef KI_COLLECTION_REMEMBER_H
#define KI_COLLECTION_REMEMBER_H

#include "kith/index.h"
#include "kith/model.h"

/* Write into a new index what ki_remembered_model needs, and, where the model's file has one for the index's metric, the curve of
 * false-match rates. Counts from the next commit on. */
kith_status ki_remember_model(kith_index *index, kith_model *model, kith_error *err);

/* Open the model that the index was made with. Of the options only the weights, if they lie elsewhere now, device, precision, tf32
 * and batch count. KITH_ENOTFOUND: the index does not say which model made it; KITH_EINVAL: the file is another model now. */
kith_status ki_remembered_model(const kith_index *index, const kith_model_options *options,
                                kith_model **ret_model, kith_error *err);

/* Was the index made by the name `general`, and not by the name of a file? */
bool ki_remembers_general(const kith_index *index);

/* Options for making the index anew by another model of that name or at that place: what they leave open is as the index was made. Another
 * side has the resizing in proportion. Where they name another network, nothing is taken. The texts are the index's. */
kith_status ki_remembered_options(const kith_index *index, kith_model_options *options, kith_error *err);

/* KITH_EINVAL unless the model made the index. */
kith_status ki_expect_model(const kith_index *index, kith_model *model, kith_error *err);

/* The model's file lies elsewhere now: from the next commit on it is found there. */
kith_status ki_remember_file(kith_index *index, const kith_model *model, kith_error *err);

#endif
