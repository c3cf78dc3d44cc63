/* kith train PHOTOS: what it says at the end. */
#ifndef CLI_TRAIN_PHOTOS_H
#define CLI_TRAIN_PHOTOS_H

#include "kith/tune.h"

void cli_print_tune(const kith_tune_result *result);

#endif
