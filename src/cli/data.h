/* What the parts of `kith data` share. */
#ifndef CLI_DATA_H
#define CLI_DATA_H

#include "cli/cli.h"
#include "kith/data.h"

/* --duplicates: groups of the same picture, and which of them lie in several classes, or in training and test. */
kith_status data_duplicates(const kith_dataset *set, bool json, kith_error *err);

#endif
