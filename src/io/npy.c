/* .npy: the elements after the header (npy_header.c), and writing.
 *
 * An array is read straight into its memory. Elements in Fortran order, or of an integer type that kith does not have,
 * are read into a buffer first and then put in place one by one. */
#include "io/npy.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/array.h"
#include "base/atomic.h"
#include "base/text.h"
#include "io/file.h"
#include "io/npy_header.h"

enum { ALIGN_BYTES = 64 };

static const char native_order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '<' : '>';

static void swap_bytes(void *data, int64_t n, size_t width) {
    for (int64_t i = 0; i < n; i++) {
        switch (width) {
        case 2: ((uint16_t *)data)[i] = __builtin_bswap16(((uint16_t *)data)[i]); break;
        case 4: ((uint32_t *)data)[i] = __builtin_bswap32(((uint32_t *)data)[i]); break;
        case 8: ((uint64_t *)data)[i] = __builtin_bswap64(((uint64_t *)data)[i]); break;
        default: return;
        }
    }
}

/* Where the i-th element of a C-order array is in Fortran order. Advances *at from i to i + 1. */
typedef struct place {
    int n_dims;
    int64_t dim[KITH_MAX_DIMS], index[KITH_MAX_DIMS], stride[KITH_MAX_DIMS];
    int64_t at;
} place;

static place place_first(const ki_npy_header *h) {
    place p = {.n_dims = h->array.n_dims};
    memcpy(p.dim, h->array.dim, sizeof p.dim);
    int64_t stride = 1;
    for (int d = 0; d < p.n_dims; stride *= p.dim[d++]) p.stride[d] = stride;
    if (!h->is_fortran) {
        stride = 1;
        for (int d = p.n_dims - 1; d >= 0; stride *= p.dim[d--]) p.stride[d] = stride;
    }
    return p;
}

static void place_next(place *p) {
    for (int d = p->n_dims - 1; d >= 0; d--) {
        p->at += p->stride[d];
        if (++p->index[d] < p->dim[d]) return;
        p->at -= p->stride[d] * p->dim[d];
        p->index[d] = 0;
    }
}

/* An integer element as its array's type. */
static kith_status put_integer(const ki_npy_header *h, const void *src, kith_array *array, int64_t i,
                               const char *name, kith_error *err) {
    int64_t value = 0;
    uint64_t large = 0;
    switch (h->width) {
    case 1: value = h->kind == 'i' ? *(const int8_t *)src : *(const uint8_t *)src; break;
    case 2: value = h->kind == 'i' ? *(const int16_t *)src : *(const uint16_t *)src; break;
    case 4: value = h->kind == 'i' ? *(const int32_t *)src : (int64_t) * (const uint32_t *)src; break;
    default: memcpy(&large, src, sizeof large); value = (int64_t)large;
    }
    if (h->kind == 'u' && large > INT64_MAX)
        return ki_fail(err, KITH_EUNSUPPORTED, "%s: element %jd is %ju; wanted at most 2^63 - 1", name,
                       (intmax_t)i, (uintmax_t)large);
    if (h->kind == 'b') value = value != 0;
    switch (array->dtype) {
    case KITH_U8: ((uint8_t *)array->data)[i] = (uint8_t)value; break;
    case KITH_I32: ((int32_t *)array->data)[i] = (int32_t)value; break;
    default: ((int64_t *)array->data)[i] = value; break;
    }
    return KITH_OK;
}

static bool is_as_in_file(const ki_npy_header *h) {
    const bool is_moved = h->is_fortran && h->array.n_dims > 1;
    return !is_moved && h->kind != 'b' && h->width == kith_dtype_bytes(h->array.dtype) &&
           (h->kind != 'u' || h->width == 1);
}

/* `raw` holds the file's elements, aligned for any type. Its contents are changed. */
static kith_status put_in_place(const ki_npy_header *h, void *raw, kith_array *array, const char *name,
                                kith_error *err) {
    const int64_t n = kith_array_count(array);
    if (h->is_swapped) swap_bytes(raw, n, h->width);
    place p = place_first(h);
    for (int64_t i = 0; i < n; i++, place_next(&p)) {
        const char *src = (const char *)raw + (size_t)p.at * h->width;
        if (h->kind == 'f')
            memcpy((char *)array->data + (size_t)i * h->width, src, h->width);
        else
            KI_TRY(put_integer(h, src, array, i, name, err));
    }
    return KITH_OK;
}

/* Where the elements' bytes come from: memory, or a file. */
typedef struct source {
    const char *bytes;
    int fd;
    const char *name;
} source;

static kith_status take_bytes(const source *from, const ki_npy_header *h, void *dst, kith_error *err) {
    if (!from->bytes) return ki_file_read_at(from->fd, from->name, dst, h->bytes, (long long)h->offset, err);
    if (h->bytes) memcpy(dst, from->bytes + h->offset, h->bytes);
    return KITH_OK;
}

static kith_status fail_text(const char *name, kith_error *err) {
    ki_fail(err, KITH_EUNSUPPORTED, "%s: the elements are text; wanted numbers", name);
    return ki_hint(err, KITH_EUNSUPPORTED, "text is read as class labels only");
}

static kith_status read_elements(const source *from, const ki_npy_header *h, kith_array *ret_array,
                                 kith_error *err) {
    kith_status status = KITH_OK;
    kith_array array = {0};
    char *raw = NULL;
    if (ki_npy_is_text(h)) return fail_text(from->name, err);
    KI_CHECK(ki_array_alloc(h->array.dtype, h->array.n_dims, h->array.dim, &array, err));
    if (is_as_in_file(h)) {
        KI_CHECK(take_bytes(from, h, array.data, err));
        if (h->is_swapped) swap_bytes(array.data, kith_array_count(&array), h->width);
    } else {
        KI_CHECK(ki_alloc_or(&raw, h->bytes ? h->bytes : 1, 1, "an array's elements", err));
        KI_CHECK(take_bytes(from, h, raw, err));
        KI_CHECK(put_in_place(h, raw, &array, from->name, err));
    }
    *ret_array = array;
    array.data = NULL;
done:
    ki_free(raw);
    kith_array_release(&array);
    return status;
}

kith_status ki_npy_parse(const void *bytes, size_t n, const char *name, kith_array *ret_array,
                         kith_error *err) {
    ki_npy_header header = {0};
    KI_TRY(ki_npy_header_parse(bytes, n, n, name, &header, err));
    return read_elements(&(source){.bytes = bytes, .name = name}, &header, ret_array, err);
}

/* A pipe's size is known only after reading it. */
static kith_status read_whole(int fd, const char *path, kith_array *ret_array, kith_error *err) {
    char *bytes = NULL;
    size_t n = 0;
    KI_TRY(ki_file_read_rest(fd, -1, path, SIZE_MAX / 4, &bytes, &n, err));
    const kith_status status = ki_npy_parse(bytes, n, path, ret_array, err);
    ki_free(bytes);
    return status;
}

kith_status kith_npy_read(const char *path, kith_array *ret_array, kith_error *err) {
    KI_NEED(err, path, ret_array);
    int fd = -1;
    long long file_bytes = 0;
    KI_TRY(ki_file_open(path, KI_FILE_OR_PIPE, &fd, &file_bytes, err));
    kith_status status = KITH_OK;
    ki_npy_header header = {0};
    if (file_bytes < 0) {
        status = read_whole(fd, path, ret_array, err);
        goto done;
    }
    KI_CHECK(ki_npy_header_read(fd, file_bytes, path, &header, err));
    KI_CHECK(read_elements(&(source){.fd = fd, .name = path}, &header, ret_array, err));
done:
    close(fd);
    return status;
}

kith_status kith_npy_shape(const char *path, kith_array *ret_array, kith_error *err) {
    KI_NEED(err, path, ret_array);
    int fd = -1;
    long long file_bytes = 0;
    ki_npy_header header = {0};
    KI_TRY(ki_file_open(path, KI_FILE_ONLY, &fd, &file_bytes, err));
    kith_status status = ki_npy_header_read(fd, file_bytes, path, &header, err);
    close(fd);
    if (status == KITH_OK && ki_npy_is_text(&header)) status = fail_text(path, err);
    if (status == KITH_OK) *ret_array = header.array;
    return status;
}

/* numpy's letter; 0 for a type that .npy does not have. */
static char kind_of(kith_dtype dtype) {
    switch (dtype) {
    case KITH_F16:
    case KITH_F32:
    case KITH_F64: return 'f';
    case KITH_I32:
    case KITH_I64: return 'i';
    case KITH_U8: return 'u';
    case KITH_BF16: break;
    }
    return 0;
}

/* Version 1.0, padded with spaces so that the elements begin at a multiple of 64. */
static size_t make_header(const kith_array *array, char kind, char *buf, size_t buf_bytes) {
    const char order = kith_dtype_bytes(array->dtype) == 1 ? '|' : native_order;
    size_t n = 10;
    n +=
        (size_t)ki_snprintf(buf + n, buf_bytes - n, "{'descr': '%c%c%zu', 'fortran_order': False, 'shape': (",
                            order, kind, kith_dtype_bytes(array->dtype));
    for (int i = 0; i < array->n_dims; i++)
        n += (size_t)ki_snprintf(buf + n, buf_bytes - n, "%s%lld%s", i ? " " : "", (long long)array->dim[i],
                                 i + 1 < array->n_dims || array->n_dims == 1 ? "," : "");
    n += (size_t)ki_snprintf(buf + n, buf_bytes - n, "), }");
    const size_t total = ki_round_up(n + 1, ALIGN_BYTES);
    memset(buf + n, ' ', total - n);
    buf[total - 1] = '\n';
    memcpy(buf, "\x93NUMPY\x01\x00", 8);
    buf[8] = (char)((total - 10) & 255);
    buf[9] = (char)((total - 10) >> 8);
    return total;
}

kith_status ki_npy_begin(ki_atomic_file *file, const kith_array *shape, kith_error *err) {
    char header[512];
    const size_t n = make_header(shape, kind_of(shape->dtype), header, sizeof header);
    return ki_atomic_write(file, header, n, err);
}

kith_status kith_npy_write(const char *path, const kith_array *array, kith_error *err) {
    KI_NEED(err, path, array);
    size_t bytes = 0;
    const kith_status checked = ki_array_check(array, &bytes, err);
    if (checked != KITH_OK) return ki_prefix(err, checked, "%s", path);
    const char kind = kind_of(array->dtype);
    if (!kind) {
        ki_fail(err, KITH_EUNSUPPORTED, "%s: .npy has no %s", path, kith_dtype_name(array->dtype));
        return ki_hint(err, KITH_EUNSUPPORTED, "convert it to float32 first");
    }
    char header[512];
    const size_t header_bytes = make_header(array, kind, header, sizeof header);
    kith_status status = KITH_OK;
    ki_atomic_file file = {0};
    KI_CHECK(ki_atomic_open(&file, path, err));
    KI_CHECK(ki_atomic_write(&file, header, header_bytes, err));
    KI_CHECK(ki_atomic_write(&file, array->data, bytes, err));
    KI_CHECK(ki_atomic_commit(&file, err));
done:
    ki_atomic_discard(&file);
    return status;
}
