/* A table of items from text in memory, so that the parser can be fuzzed. */
#ifndef KI_SEARCH_ITEMS_H
#define KI_SEARCH_ITEMS_H

#include "kith/items.h"

/* name is for errors. As kith_items_read. */
kith_status ki_items_parse(const char *name, const char *text, size_t n, kith_items **ret_items,
                           kith_error *err);

#endif
