/* Reading float rows from memory or through the source's function. */
#include "search/scan/source.h"

#include <string.h>

enum { STRETCH = 512 }; /* row numbers made at a time, on the stack */

kith_status ki_source_read(const ki_row_source *rows, const int64_t *row, int64_t n, float *dst,
                           kith_error *err) {
    if (!rows->data) return rows->read(rows->user, row, n, dst, err);
    for (int64_t i = 0; i < n; i++)
        memcpy(dst + i * rows->dim, rows->data + row[i] * rows->dim, (size_t)rows->dim * sizeof *dst);
    return KITH_OK;
}

kith_status ki_source_span(const ki_row_source *rows, int64_t first, int64_t n, float *dst,
                           const float **ret_rows, kith_error *err) {
    if (rows->data) {
        *ret_rows = rows->data + first * rows->dim;
        return KITH_OK;
    }
    int64_t number[STRETCH];
    for (int64_t i = 0; i < n; i += STRETCH) {
        const int64_t width = n - i < STRETCH ? n - i : STRETCH;
        for (int64_t j = 0; j < width; j++) number[j] = first + i + j;
        KI_TRY(rows->read(rows->user, number, width, dst + i * rows->dim, err));
    }
    *ret_rows = dst;
    return KITH_OK;
}
