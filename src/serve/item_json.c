/* What is known of an item, as JSON. */
#include "serve/item_json.h"

static void put_value(kith_json *json, const kith_value *value) {
    switch (value->type) {
    case KITH_VALUE_INT: kith_json_int(json, value->integer); break;
    case KITH_VALUE_REAL: kith_json_real(json, value->real); break;
    case KITH_VALUE_TEXT: kith_json_string(json, value->text); break;
    default: kith_json_null(json); break;
    }
}

void ki_item_put(kith_json *json, const ki_catalog *c, const kith_index_item *item) {
    char path[4096];
    kith_json_key(json, "label");
    kith_json_string(json, item->label);
    kith_json_key(json, "path");
    kith_json_string(json, ki_catalog_shown(c, item->path));
    kith_json_key(json, "values");
    kith_json_object_begin(json);
    for (int64_t i = 0; i < c->info.n_columns; i++) {
        kith_json_key(json, kith_index_column(c->index, i).name);
        put_value(json, &item->values[i]);
    }
    kith_json_object_end(json);
    kith_json_key(json, "image");
    kith_json_bool(json, ki_catalog_picture(c, item->path, path, sizeof path) != NULL);
}
