/* The values of one column, one per row, in memory: as they are collected for writing, and as they are read for a filter.
 *
 * Text is kept once per different text: a row has a code, 0 for none and else the number of its text plus 1. So a filter looks at
 * each label once, however many rows have it. Texts end with a NUL. Rows without a value hold INT64_MIN, NaN or code 0. */
#ifndef KI_SEARCH_CELLS_H
#define KI_SEARCH_CELLS_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "kith/index.h"

#define KI_NO_INTEGER INT64_MIN

/* Zero-initialise, set the type. */
typedef struct ki_cells {
    kith_value_type type;
    int64_t n;
    int64_t *integer; /* [n]; this one, real or code, as the type says */
    double *real;
    uint32_t *code;
    int64_t *
        text_begin; /* [n_texts + 1]: where texts begin in `texts`; the last is its size. NULL without texts */
    int64_t n_texts;
    ki_buffer texts;
    size_t capacity, text_capacity;
    uint32_t *slot; /* while collecting: [n_slots], a hash table of texts, numbers plus 1 */
    size_t n_slots;
} ki_cells;

void ki_cells_release(ki_cells *cells);

/* A value behind the others: of the column's type, or none. */
kith_status ki_cells_add(ki_cells *cells, const kith_value *value, kith_error *err);

/* The code of a text among those that were added; 0: none has it. */
uint32_t ki_cells_find(const ki_cells *cells, const char *text);

static inline const char *ki_cells_text(const ki_cells *cells, int64_t i) {
    return cells->texts.data + cells->text_begin[i];
}
/* A text as a value; NULL is none. */
static inline kith_value ki_text_value(const char *text) {
    return (kith_value){.type = text ? KITH_VALUE_TEXT : KITH_VALUE_NONE, .text = text};
}
/* The value of a row; text lives as long as the cells. */
kith_value ki_cells_get(const ki_cells *cells, int64_t row);

#endif
