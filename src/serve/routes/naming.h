/* What the routes about names share. */
#ifndef KI_SERVE_NAMING_H
#define KI_SERVE_NAMING_H

#include "base/option.h"
#include "kith/experimental/json.h"
#include "serve/search/namer.h"

/* How far it is, as the value of an object's key. */
void ki_naming_put(kith_json *json, const char *key, const ki_naming_state *state);

/* The keys of a decision, and of an undo: for whoever reads them, and for the description of the API. */
extern const ki_option ki_decision_options[], ki_undo_options[];

#endif
