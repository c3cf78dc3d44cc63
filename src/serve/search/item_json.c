/* What is known of an item, as JSON. */
#include "serve/search/item_json.h"

#include "collection/ask.h"

void ki_item_put(kith_json *json, const ki_catalog *c, const kith_index_item *item) {
    char path[4096];
    const bool has_picture = ki_collection_picture_file(c->collection, item->path, path, sizeof path);
    ki_item_write(c->collection, item, has_picture, json);
}
