/* What `kith data --duplicates` and `kith search --duplicates` share. */
#ifndef CLI_DUPLICATES_H
#define CLI_DUPLICATES_H

#include "kith/duplicates.h"
#include "kith/experimental/json.h"

/* The beginning of both answers: {"looked_at": …, "unreadable": …, "groups": [ */
void cli_duplicates_begin(kith_json *json, const kith_duplicates *found);

#endif
