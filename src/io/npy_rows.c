/* Rows of a .npy file by checked reads at their places. */
#include "io/npy_rows.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/shape.h"
#include "io/file.h"
#include "io/gather.h"
#include "io/npy_header.h"

struct ki_npy_rows {
    int fd;
    char *path;
    int64_t n, dim;
    kith_dtype dtype;
    size_t offset, row_bytes;
    ki_gather gather;
};

static kith_status check(const ki_npy_header *h, const char *path, kith_error *err) {
    const kith_array *a = &h->array;
    if (ki_npy_is_text(h) || (a->dtype != KITH_F32 && a->dtype != KITH_F16)) {
        ki_fail(err, KITH_EUNSUPPORTED, "%s holds %s; wanted float32 or float16", path,
                ki_npy_is_text(h) ? "text" : kith_dtype_name(a->dtype));
        return ki_hint(err, KITH_EUNSUPPORTED, "in numpy, save x.astype('float32')");
    }
    if (a->n_dims != 2 || a->dim[1] < 1)
        return ki_fail(err, KITH_ESHAPE, "%s has %d dimensions; wanted 2: [rows, numbers of a row]", path,
                       a->n_dims);
    if (h->is_fortran && a->dim[0] > 1 && a->dim[1] > 1) {
        ki_fail(err, KITH_EUNSUPPORTED, "%s is in Fortran order; wanted whole rows", path);
        return ki_hint(err, KITH_EUNSUPPORTED, "in numpy, save numpy.ascontiguousarray(x)");
    }
    if (h->is_swapped) {
        ki_fail(err, KITH_EUNSUPPORTED, "%s is in another byte order than this machine's", path);
        return ki_hint(err, KITH_EUNSUPPORTED, "in numpy, save x.astype('=f4')");
    }
    return KITH_OK;
}

static kith_status read_header(ki_npy_rows *rows, long long file_bytes, kith_error *err) {
    ki_npy_header h = {0};
    KI_TRY(ki_npy_header_read(rows->fd, file_bytes, rows->path, &h, err));
    KI_TRY(check(&h, rows->path, err));
    rows->n = h.array.dim[0];
    rows->dim = h.array.dim[1];
    rows->dtype = h.array.dtype;
    rows->offset = h.offset;
    rows->row_bytes = (size_t)rows->dim * h.width;
    return KITH_OK;
}

kith_status ki_npy_rows_open(const char *path, ki_npy_rows **ret_rows, kith_error *err) {
    kith_status status;
    ki_npy_rows *rows = NULL;
    long long file_bytes = 0;
    KI_TRY(ki_zalloc_or(&rows, 1, sizeof *rows, "features", err));
    rows->fd = -1;
    rows->path = ki_strdup(path);
    if (!rows->path) {
        status = ki_fail_memory(err, 1, "a file's name");
        goto done;
    }
    KI_CHECK(ki_file_open(path, KI_FILE_ONLY, &rows->fd, &file_bytes, err));
    KI_CHECK(read_header(rows, file_bytes, err));
    ki_gather_init(&rows->gather, rows->fd, (size_t)file_bytes);
    *ret_rows = rows;
    rows = NULL;
done:
    ki_npy_rows_free(rows);
    return status;
}

void ki_npy_rows_free(ki_npy_rows *rows) {
    if (!rows) return;
    ki_gather_release(&rows->gather);
    if (rows->fd >= 0) close(rows->fd);
    ki_free(rows->path);
    ki_free(rows);
}

int64_t ki_npy_rows_count(const ki_npy_rows *rows) { return rows->n; }
int64_t ki_npy_rows_dim(const ki_npy_rows *rows) { return rows->dim; }
kith_dtype ki_npy_rows_dtype(const ki_npy_rows *rows) { return rows->dtype; }

/* The halves lie in the second half of the place of their numbers, and are widened from the front: a half is read before its place
 * is written. */
static void widen(const void *halves, int64_t n, float *values) {
    for (int64_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, (const char *)halves + (size_t)i * sizeof half, sizeof half);
        values[i] = ki_f16_to_float(half);
    }
}

kith_status ki_npy_rows_read(const ki_npy_rows *rows, int64_t row, float *ret_values, kith_error *err) {
    if (row < 0 || row >= rows->n)
        return ki_fail(err, KITH_EINVAL, "row %lld of %s; wanted 0 to %lld", (long long)row, rows->path,
                       (long long)rows->n - 1);
    const long long at = (long long)rows->offset + (long long)row * (long long)rows->row_bytes;
    if (rows->dtype == KITH_F32)
        return ki_file_read_at(rows->fd, rows->path, ret_values, rows->row_bytes, at, err);
    char *halves = (char *)ret_values + rows->row_bytes;
    KI_TRY(ki_file_read_at(rows->fd, rows->path, halves, rows->row_bytes, at, err));
    widen(halves, rows->dim, ret_values);
    return KITH_OK;
}

enum { GATHERED = 64 }; /* rows of one copy */

bool ki_npy_rows_gather(const ki_npy_rows *rows, const int64_t *row, int64_t n, float *ret_values) {
    size_t begin[GATHERED];
    for (int64_t i = 0; i < n; i += GATHERED) {
        const int64_t n_now = n - i < GATHERED ? n - i : GATHERED;
        float *values = ret_values + i * rows->dim;
        char *dst =
            (char *)(values + n_now * rows->dim) - (size_t)n_now * rows->row_bytes; /* of floats: values */
        for (int64_t k = 0; k < n_now; k++) {
            if (row[i + k] < 0 || row[i + k] >= rows->n) return false;
            begin[k] = rows->offset + (size_t)row[i + k] * rows->row_bytes;
        }
        if (!ki_gather_copy(&rows->gather, begin, (size_t)n_now, rows->row_bytes, dst)) return false;
        if (rows->dtype == KITH_F16) widen(dst, n_now * rows->dim, values);
    }
    return true;
}
