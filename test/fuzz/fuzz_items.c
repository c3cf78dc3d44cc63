/* libFuzzer target: any bytes as a table of items (kith index --meta). What is read is looked at whole. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "search/items.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every value is of its column's type or missing, and its text is there. */
static size_t look_at(const kith_items *items) {
    const kith_index_item *item = kith_items_list(items);
    const kith_column *column = kith_items_columns(items);
    size_t n = 0;
    for (int64_t i = 0; i < kith_items_count(items); i++) {
        n += (item[i].path ? strlen(item[i].path) : 0) + (item[i].label ? strlen(item[i].label) : 0);
        for (int64_t c = 0; c < kith_items_n_columns(items); c++) {
            const kith_value *value = &item[i].values[c];
            if (value->type != KITH_VALUE_NONE && value->type != column[c].type) abort();
            if (value->type == KITH_VALUE_TEXT) n += strlen(value->text);
        }
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kith_error err;
    kith_items *items = NULL;
    if (ki_items_parse("items.csv", (const char *)data, size, &items, &err) != KITH_OK) return 0;
    if (look_at(items) > size) abort();
    kith_items_free(items);
    return 0;
}
