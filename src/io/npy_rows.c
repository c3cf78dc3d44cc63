/* Rows of a .npy file by checked reads at their places. */
#include "io/npy_rows.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/tensor.h"
#include "io/file.h"
#include "io/npy_header.h"

struct ki_npy_rows {
    int fd;
    char *path;
    int64_t n, dim;
    kith_dtype dtype;
    size_t offset, row_bytes;
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
    *ret_rows = rows;
    rows = NULL;
done:
    ki_npy_rows_free(rows);
    return status;
}

void ki_npy_rows_free(ki_npy_rows *rows) {
    if (!rows) return;
    if (rows->fd >= 0) close(rows->fd);
    ki_free(rows->path);
    ki_free(rows);
}

int64_t ki_npy_rows_count(const ki_npy_rows *rows) { return rows->n; }
int64_t ki_npy_rows_dim(const ki_npy_rows *rows) { return rows->dim; }
kith_dtype ki_npy_rows_dtype(const ki_npy_rows *rows) { return rows->dtype; }

kith_status ki_npy_rows_read(const ki_npy_rows *rows, int64_t row, float *ret_values, kith_error *err) {
    if (row < 0 || row >= rows->n)
        return ki_fail(err, KITH_EINVAL, "row %lld of %s; wanted 0 to %lld", (long long)row, rows->path,
                       (long long)rows->n - 1);
    const long long at = (long long)rows->offset + (long long)row * (long long)rows->row_bytes;
    if (rows->dtype == KITH_F32)
        return ki_file_read_at(rows->fd, rows->path, ret_values, rows->row_bytes, at, err);
    /* The halves are read into the second half of their place and widened from the front: a number is read before its
     * place is written. */
    const unsigned char *halves = (unsigned char *)ret_values + rows->row_bytes;
    KI_TRY(ki_file_read_at(rows->fd, rows->path, (unsigned char *)ret_values + rows->row_bytes,
                           rows->row_bytes, at, err));
    for (int64_t i = 0; i < rows->dim; i++) {
        uint16_t half;
        memcpy(&half, halves + (size_t)i * sizeof half, sizeof half);
        ret_values[i] = ki_f16_to_float(half);
    }
    return KITH_OK;
}
