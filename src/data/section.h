/* The `data:` section of a recipe.
 *
 *     data: {dataset: cub, root: data/CUB_200_2011, validation: 0.2}
 *     data: {root: photos, folds: 4, fold: 1, split_seed: 7}
 *     data: {features: clip.npy, labels: classes.txt}
 *     data: [{root: birds, validation: 0.2, weight: 2}, {root: snapshots, labels: false}]
 *
 * Of a list each set has its own splits: what it holds out validates, and its test classes test, together with those of the other
 * sets. All images of a set without labels train. */
#ifndef KI_SECTION_H
#define KI_SECTION_H

#include "base/option.h"
#include "kith/data.h"

extern const ki_option ki_data_options[];

/* The keys that name files: they say where things are, not what they are. */
enum { KI_N_DATA_PLACES = 4 };
extern const char *const ki_data_places[KI_N_DATA_PLACES];

/* Is the data features made elsewhere, not images? */
bool ki_data_is_features(const ki_value *section);

/* labels: false */
bool ki_data_lacks_labels(const ki_value *section);

/* Does the section make sense? Nothing is opened. `n_folds` is that of the whole recipe: 1, or the number of runs that
 * each hold out another part of the training classes. */
kith_status ki_data_check(const ki_value *section, int64_t n_folds, kith_error *err);

/* Open the data set of the section and apply its splits; several as one (ki_dataset_join). */
kith_status ki_data_open(const ki_value *section, kith_dataset **ret_dataset, kith_error *err);

#endif
