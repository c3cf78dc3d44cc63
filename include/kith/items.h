/* Items from a table: what is known of each row of embeddings that were made elsewhere, for kith_index_add.
 *
 *     path,label,year,weight
 *     a/1.jpg,tern,2021,0.12
 *
 * A CSV file with a header line. The columns `path` and `label` are the items' own; every other column becomes one of the
 * index, of whole numbers or of numbers where every value is one, else of text (007 is text). An empty field is no value. */
#ifndef KITH_ITEMS_H
#define KITH_ITEMS_H

#include <stdint.h>

#include "kith/index.h"
#include "kith/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kith_items kith_items;

/* Read a table whole. KITH_EFORMAT names the line that is not like the header. A pipe will do. */
KITH_API kith_status kith_items_read(const char *path, kith_items **ret_items, kith_error *err);
KITH_API void kith_items_free(kith_items *items); /* NULL is fine */

/* How many items there are, and the list of them; it and its strings live as long as the items. */
KITH_API int64_t kith_items_count(const kith_items *items);
KITH_API const kith_index_item *kith_items_list(const kith_items *items);
/* The columns besides path and label, in the order of an item's values. */
KITH_API int64_t kith_items_n_columns(const kith_items *items);
KITH_API const kith_column *kith_items_columns(const kith_items *items);

#ifdef __cplusplus
}
#endif
#endif
