/* The rows of a snapshot that a filter holds for. */
#ifndef KI_SEARCH_FILTER_ROWS_H
#define KI_SEARCH_FILTER_ROWS_H

#include "search/files/columns.h"
#include "search/filter.h"

/* ret_bits [ki_bit_words(rows of the snapshot)]: bit row % 64 of word row / 64. Rows that were removed may have a bit. */
kith_status ki_where_run(const ki_where *filter, ki_columns *columns, uint64_t *ret_bits, kith_error *err);

#endif
