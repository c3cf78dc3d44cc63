/* The `data:` section of a recipe.
 *
 *     data: {dataset: cub, root: data/CUB_200_2011, validation: 0.2}
 *     data: {root: photos, folds: 4, fold: 1, split_seed: 7} */
#ifndef KI_SECTION_H
#define KI_SECTION_H

#include "core/option.h"
#include "kith/data.h"

extern const ki_option ki_data_options[];

/* Open the data set of the section and apply its splits. */
kith_status ki_data_open(const ki_value *section, kith_dataset **ret_dataset, kith_error *err);

#endif
