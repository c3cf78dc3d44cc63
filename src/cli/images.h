/* What the commands that run a model on image files share. */
#ifndef CLI_IMAGES_H
#define CLI_IMAGES_H

#include <stddef.h>

#include "cli/cli.h"
#include "kith/model.h"

#define CLI_RESIZE_HELP                                                                                   \
    "before the centre crop: squashN, padN, shorterN, atmostN or none; default: as the model says, else " \
    "squash256"

#define CLI_VIEWS_HELP                                                                                       \
    "views of every image, whose vectors are averaged: 2: the picture and its mirror image, up to 10: also " \
    "crops at its corners; 0: one"

#define CLI_SIZE_HELP                                                                                  \
    "side of the model's input, with the whole picture in it: fewer pixels are faster, more see more " \
    "detail; "                                                                                         \
    "0: the model's"

/* One line that says which model it is, where none was named, or `general`. */
void cli_say_model(const char *named, kith_model *model);

/* Where none was named: one line on what general is good for, and how to get a stronger one. For commands that work on many photos, once. */
void cli_say_purpose(const char *named);

/* One line where false-match rates were measured at another side than the images have now (kith_model_curve). NULL is fine. */
void cli_say_rates(const kith_calibration *curve);

/* A kith_progress_fn; user is the cli_progress. */
int cli_show_progress(void *user, int64_t done, int64_t all);

/* One line about images that could not be read, when there are any. */
void cli_report_bad(int64_t n_bad, const char *first);

#endif
