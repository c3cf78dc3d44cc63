/* What the parts of `kith identify` share. */
#ifndef CLI_IDENTIFY_H
#define CLI_IDENTIFY_H

#include "cli/cli.h"
#include "kith/identify.h"
#include "kith/photos.h"

/* What the command was told. */
typedef struct identify_command {
    const char *collection;
    const char *shown;           /* as it was named */
    const char *const *operands; /* photos and folders */
    int64_t n_operands;
    kith_model_options model;
    const char *cache;   /* of photos */
    kith_photos *photos; /* whose index it is; NULL: the index was named */
    kith_identify_options how;
    bool together, json, csv;
    const char *html;
} identify_command;

/* The things and their names. Owned; identify_things_release. */
typedef struct identify_things {
    int64_t n_photos;
    char **photo; /* [n_photos] paths */
    kith_query_part *parts;
    int64_t n; /* things: each photo, or one */
    kith_identified *found;
    kith_identify_report report;
} identify_things;

/* To standard output, and to the page that was asked for. */
kith_status identify_print(const identify_command *command, kith_collection *collection,
                           const identify_things *things, kith_error *err);

/* --html: photos with their names, the nearest photos and why. */
kith_status identify_write_page(const identify_command *command, kith_collection *collection,
                                const identify_things *things, kith_error *err);

/* The photos of thing i: photo[*ret_first …]; how many. */
int64_t identify_photos_of(const identify_things *things, int64_t i, int64_t *ret_first);

#endif
