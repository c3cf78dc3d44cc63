/* Reading float rows from memory or through the source's function. */
#include "search/scan/source.h"

#include <string.h>

#include "base/alloc.h"

enum { STRETCH = 512 }; /* row numbers made at a time, on the stack */

static kith_status read_cut(void *user, const int64_t *row, int64_t n, float *dst, kith_error *err) {
    enum { TOGETHER = 64 };
    const ki_row_cut *cut = user;
    const int64_t whole = cut->rows->dim, dim = cut->dim;
    kith_status status = KITH_OK;
    float *x = NULL;
    KI_TRY(ki_alloc_or(&x, TOGETHER, (size_t)whole * sizeof *x, "rows", err));
    for (int64_t i = 0; i < n; i += TOGETHER) {
        const int64_t width = n - i < TOGETHER ? n - i : TOGETHER;
        KI_CHECK(ki_source_read(cut->rows, row + i, width, x, err));
        for (int64_t j = 0; j < width; j++)
            memcpy(dst + (i + j) * dim, x + j * whole, (size_t)dim * sizeof *dst);
    }
done:
    ki_free(x);
    return status;
}

ki_row_source ki_row_cut_source(const ki_row_cut *cut) {
    if (cut->dim == cut->rows->dim) return *cut->rows;
    return (ki_row_source){
        .n = cut->rows->n, .dim = cut->dim, .read = read_cut, .user = (ki_row_cut *)(uintptr_t)cut};
}

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
