/* Images as a model wants them: shared by the commands that run a model on image files. */
#ifndef CLI_IMAGES_H
#define CLI_IMAGES_H

#include "kith/data.h"
#include "kith/model.h"

#define CLI_RESIZE_HELP \
    "before the centre crop: squashN, shorterN, atmostN or none; default: as the model says, else squash256"

/* How images are resized: as given on the command line (NULL: not), as the model's file says, or squash256. */
const char *cli_resize(const kith_model_info *info, const char *given);

/* The transform for a model's input: resized as cli_resize says, centre crop of the model's size, its channels,
 * order, mean and std. */
kith_status cli_transform(const kith_model_info *info, const char *resize, kith_transform *ret_transform,
                          kith_error *err);

/* The model file that a name means: of the folder of a run its model.safetensors, else best.safetensors, written
 * into buf; any other name as it is. */
const char *cli_model_path(const char *name, char *buf, size_t buf_bytes);

/* The tap that is meant when none is named. */
const char *cli_default_tap(const kith_model_info *info);

/* Values of a tap for one image, all dimensions together. */
kith_status cli_tap_count(const kith_model *model, const char *tap, int64_t *ret_n, kith_error *err);

#endif
