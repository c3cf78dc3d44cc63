/* Items in answers. */
#ifndef KI_SERVE_ITEM_JSON_H
#define KI_SERVE_ITEM_JSON_H

#include "kith/experimental/json.h"
#include "serve/search/catalog.h"

/* "label", "path", "values" and "image" of an item, into an object that is open. */
void ki_item_put(kith_json *json, const ki_catalog *catalog, const kith_index_item *item);

#endif
