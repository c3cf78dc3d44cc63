/* Names of weights on the hub: "resnet50" (a row of table.def), "timm/resnet50.a1_in1k", either with "@REVISION". */
#ifndef KI_HUB_NAME_H
#define KI_HUB_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { KI_HUB_REPO = 200, KI_HUB_REVISION = 129, KI_HUB_COMMIT = 41 };

/* A row of table.def. */
typedef struct ki_hub_row {
    const char *name, *repo, *file, *backbone;
    const char *input; /* how images get in, where no config.json says: "224 shorter235 bicubic" */
    const char *licence, *summary;
} ki_hub_row;

/* NULL: there is no such row. */
const ki_hub_row *ki_hub_row_at(size_t i);
const ki_hub_row *ki_hub_row_of_repo(const char *repo);

typedef struct ki_hub_name {
    char repo[KI_HUB_REPO];         /* "timm/resnet50.a1_in1k" */
    char revision[KI_HUB_REVISION]; /* a branch, a tag or a commit; "main" where the name says none */
    const char *file;               /* the weights' file in the repository */
    const ki_hub_row *row;          /* NULL: not in the table */
} ki_hub_name;

/* Read a name, with or without "hub:" before it. Names follow the rules of huggingface_hub (letters, digits and "-_.", no "--",
 * no ".."), revisions those of git, so that neither can leave its folder or its place in an address.
 * KITH_EINVAL: not a name; KITH_ENOTFOUND: a short name that table.def does not have. */
kith_status ki_hub_name_parse(const char *text, ki_hub_name *ret_name, kith_error *err);

/* Does the text begin with "hub:"? */
bool ki_hub_is_name(const char *text);

/* "resnet50", "timm/x@v1": as a user writes it after `kith pull`. */
const char *ki_hub_name_text(const ki_hub_name *name, char *buf, size_t bytes);

/* Exactly n hexadecimal digits, lower case? */
bool ki_hub_is_hex(const char *text, size_t n);

#endif
