/* Items that the page offers to begin with: spread over the index, and there. */
#ifndef KI_SERVE_SAMPLES_H
#define KI_SERVE_SAMPLES_H

#include "kith/experimental/json.h"
#include "serve/search/catalog.h"

/* Choose them for a catalog that is being opened. */
kith_status ki_samples_choose(ki_catalog *catalog, kith_error *err);

/* A list of some that have a picture; others the next time. */
void ki_samples_put(kith_json *json, ki_catalog *catalog);

#endif
