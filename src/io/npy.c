/* .npy: "\x93NUMPY", version, header length, a Python dict as text, the elements.
 *
 * The dict is read by a small strict parser: exactly the keys descr, fortran_order and shape, each
 * once, in any order, Python string, bool and tuple literals. Format: numpy.lib.format (versions 1.0,
 * 2.0: 4-byte header length, 3.0: UTF-8 header). What follows the header must be exactly the shape's
 * bytes. */
#include "io/npy.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/argument.h"
#include "core/array.h"
#include "core/atomic.h"
#include "core/tensor.h"
#include "core/text.h"
#include "io/file.h"

enum { MOST_HEADER_BYTES = 65536, PREFIX_BYTES = 12, ALIGN_BYTES = 64, DESCR_BYTES = 16 };

typedef struct npy_header {
    kith_array array; /* type and shape; no data */
    size_t offset;    /* of the elements */
    size_t bytes;     /* of the elements */
    bool is_swapped;  /* not in this machine's byte order */
} npy_header;

static const struct {
    char kind;
    char digit;
    kith_dtype dtype;
} descrs[] = {
    {'f', '4', KITH_F32}, {'f', '8', KITH_F64}, {'f', '2', KITH_F16},
    {'i', '4', KITH_I32}, {'i', '8', KITH_I64}, {'u', '1', KITH_U8},
};
enum { N_DESCRS = sizeof descrs / sizeof descrs[0] };

static const char native_order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '<' : '>';

/* A cursor over the dict's text. */
typedef struct cursor {
    const char *at, *end;
    const char *name;
    kith_error *err;
} cursor;

static void skip_space(cursor *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n')) c->at++;
}

static bool take(cursor *c, char wanted) {
    skip_space(c);
    if (c->at >= c->end || *c->at != wanted) return false;
    c->at++;
    return true;
}

static kith_status fail_header(cursor *c, const char *wanted) {
    skip_space(c);
    const int n = c->end - c->at < 20 ? (int)(c->end - c->at) : 20;
    return ki_fail(c->err, KITH_EFORMAT, "%s: the header has '%.*s', wanted %s", c->name, n, c->at, wanted);
}

/* A quoted string without escapes, into buf. */
static kith_status take_string(cursor *c, char *buf, size_t buf_bytes, const char *what) {
    skip_space(c);
    if (c->at >= c->end || (*c->at != '\'' && *c->at != '"')) return fail_header(c, what);
    const char quote = *c->at;
    size_t n = 0;
    const char *p = c->at + 1;
    while (p < c->end && *p != quote && *p != '\\' && n + 1 < buf_bytes) buf[n++] = *p++;
    if (p >= c->end || *p != quote) return fail_header(c, what);
    buf[n] = '\0';
    c->at = p + 1;
    return KITH_OK;
}

static bool take_word(cursor *c, const char *word) {
    skip_space(c);
    const size_t n = strlen(word);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0) return false;
    c->at += n;
    return true;
}

static kith_status take_shape(cursor *c, kith_array *array) {
    if (!take(c, '(')) return fail_header(c, "a shape such as (3, 4)");
    bool has_comma = true;
    int n = 0;
    while (!take(c, ')')) {
        skip_space(c);
        if (!has_comma || c->at >= c->end || *c->at < '0' || *c->at > '9')
            return fail_header(c, "a shape such as (3, 4)");
        if (n == KITH_MAX_DIMS)
            return ki_fail(c->err, KITH_EUNSUPPORTED, "%s: the array has more than %d dimensions", c->name,
                           KITH_MAX_DIMS);
        int64_t extent = 0;
        for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
            if (__builtin_mul_overflow(extent, 10, &extent) ||
                __builtin_add_overflow(extent, *c->at - '0', &extent))
                return ki_fail(c->err, KITH_EFORMAT, "%s: extent %d of the shape does not fit 63 bits",
                               c->name, n);
        }
        array->dim[n++] = extent;
        has_comma = take(c, ',');
    }
    /* (3) is a number in Python, (3,) a tuple */
    if (n == 1 && !has_comma)
        return ki_fail(c->err, KITH_EFORMAT, "%s: the shape is a number, wanted a tuple", c->name);
    array->n_dims = n;
    return KITH_OK;
}

static kith_status parse_descr(cursor *c, const char *descr, npy_header *header) {
    const bool has_order = descr[0] && strchr("<>=|", descr[0]) != NULL;
    const char *type = descr + has_order;
    for (int i = 0; i < N_DESCRS; i++) {
        if (type[0] != descrs[i].kind || type[1] != descrs[i].digit || type[2]) continue;
        const size_t bytes = kith_dtype_bytes(descrs[i].dtype);
        if (bytes > 1 && descr[0] == '|') break;
        header->array.dtype = descrs[i].dtype;
        header->is_swapped = bytes > 1 && has_order && descr[0] != '=' && descr[0] != native_order;
        return KITH_OK;
    }
    ki_fail(c->err, KITH_EUNSUPPORTED, "%s: elements of type '%s'; wanted f4, f8, f2, i4, i8 or u1", c->name,
            descr);
    return ki_hint(c->err, KITH_EUNSUPPORTED,
                   "in numpy, save array.astype('float32') or another of these types");
}

static kith_status parse_dict(cursor *c, npy_header *header) {
    bool has_descr = false, has_order = false, has_shape = false, is_fortran = false, has_comma = true;
    if (!take(c, '{')) return fail_header(c, "'{'");
    while (!take(c, '}')) {
        char key[DESCR_BYTES], descr[DESCR_BYTES];
        if (!has_comma) return fail_header(c, "',' or '}'");
        KI_TRY(take_string(c, key, sizeof key, "'descr', 'fortran_order' or 'shape'"));
        if (!take(c, ':')) return fail_header(c, "':'");
        bool *seen = NULL;
        if (strcmp(key, "descr") == 0) {
            seen = &has_descr;
            skip_space(c);
            if (c->at < c->end && *c->at == '[')
                return ki_fail(c->err, KITH_EUNSUPPORTED, "%s: elements are records; wanted plain numbers",
                               c->name);
            KI_TRY(take_string(c, descr, sizeof descr, "a short type string such as '<f4'"));
            KI_TRY(parse_descr(c, descr, header));
        } else if (strcmp(key, "fortran_order") == 0) {
            seen = &has_order;
            is_fortran = take_word(c, "True");
            if (!is_fortran && !take_word(c, "False")) return fail_header(c, "True or False");
        } else if (strcmp(key, "shape") == 0) {
            seen = &has_shape;
            KI_TRY(take_shape(c, &header->array));
        } else {
            return ki_fail(c->err, KITH_EFORMAT, "%s: the header has the unknown key '%s'", c->name, key);
        }
        if (*seen)
            return ki_fail(c->err, KITH_EFORMAT, "%s: the header has the key '%s' twice", c->name, key);
        *seen = true;
        has_comma = take(c, ',');
    }
    skip_space(c);
    if (c->at != c->end) return fail_header(c, "nothing after '}'");
    const char *missing = !has_descr ? "descr" : !has_order ? "fortran_order" : !has_shape ? "shape" : NULL;
    if (missing) return ki_fail(c->err, KITH_EFORMAT, "%s: the header lacks '%s'", c->name, missing);
    if (is_fortran) {
        ki_fail(c->err, KITH_EUNSUPPORTED, "%s: the array is in Fortran order; wanted C order", c->name);
        return ki_hint(c->err, KITH_EUNSUPPORTED, "in numpy, save numpy.ascontiguousarray(array)");
    }
    return KITH_OK;
}

/* `bytes` is the file's beginning, all of it or at least MOST_HEADER_BYTES + PREFIX_BYTES;
 * `file_bytes` the whole file's size. */
static kith_status parse_header(const unsigned char *bytes, size_t n, uint64_t file_bytes, const char *name,
                                npy_header *ret_header, kith_error *err) {
    if (n < 8 || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return ki_fail(err, KITH_EFORMAT,
                       "%s is not a .npy file: it does not begin with \\x93NUMPY and a version", name);
    const unsigned version = bytes[6];
    if (version < 1 || version > 3 || bytes[7] != 0)
        return ki_fail(err, KITH_EFORMAT, "%s: .npy version %u.%u; wanted 1.0, 2.0 or 3.0", name, version,
                       bytes[7]);
    const size_t start = version == 1 ? 10 : PREFIX_BYTES;
    if (n < start) return ki_fail(err, KITH_EFORMAT, "%s: the file ends inside the header's length", name);
    size_t header_bytes = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (version > 1) header_bytes |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (header_bytes > MOST_HEADER_BYTES)
        return ki_fail(err, KITH_EFORMAT, "%s: a header of %zu bytes; wanted at most %d", name, header_bytes,
                       MOST_HEADER_BYTES);
    if (header_bytes > n - start)
        return ki_fail(err, KITH_EFORMAT, "%s: a header of %zu bytes, but %zu are left in the file", name,
                       header_bytes, n - start);
    npy_header header = {.offset = start + header_bytes};
    cursor c = {.at = (const char *)bytes + start, .name = name, .err = err};
    c.end = c.at + header_bytes;
    KI_TRY(parse_dict(&c, &header));
    const int64_t count = kith_array_count(&header.array);
    const uint64_t found = file_bytes - header.offset;
    if (count < 0 || !ki_mul_size((size_t)count, kith_dtype_bytes(header.array.dtype), &header.bytes) ||
        header.bytes != found) {
        ki_shape shape = {.n_dims = header.array.n_dims};
        memcpy(shape.dim, header.array.dim, sizeof shape.dim);
        char text[200];
        return ki_fail(err, KITH_EFORMAT, "%s: %llu bytes of data do not make %s of %s", name,
                       (unsigned long long)found, kith_dtype_name(header.array.dtype),
                       ki_shape_text(&shape, text, sizeof text));
    }
    *ret_header = header;
    return KITH_OK;
}

static void swap_bytes(const kith_array *array) {
    const int64_t n = kith_array_count(array);
    for (int64_t i = 0; i < n; i++) {
        switch (kith_dtype_bytes(array->dtype)) {
        case 2: ((uint16_t *)array->data)[i] = __builtin_bswap16(((uint16_t *)array->data)[i]); break;
        case 4: ((uint32_t *)array->data)[i] = __builtin_bswap32(((uint32_t *)array->data)[i]); break;
        case 8: ((uint64_t *)array->data)[i] = __builtin_bswap64(((uint64_t *)array->data)[i]); break;
        default: return;
        }
    }
}

kith_status ki_npy_parse(const void *bytes, size_t n, const char *name, kith_array *ret_array,
                         kith_error *err) {
    npy_header header = {0};
    kith_array array = {0};
    KI_TRY(parse_header(bytes, n, n, name, &header, err));
    KI_TRY(ki_array_alloc(header.array.dtype, header.array.n_dims, header.array.dim, &array, err));
    if (header.bytes) memcpy(array.data, (const char *)bytes + header.offset, header.bytes);
    if (header.is_swapped) swap_bytes(&array);
    *ret_array = array;
    return KITH_OK;
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
    KI_TRY(ki_file_open(path, &fd, &file_bytes, err));
    kith_status status = KITH_OK;
    unsigned char *head = NULL;
    kith_array array = {0};
    npy_header header = {0};
    if (file_bytes < 0) {
        status = read_whole(fd, path, ret_array, err);
        goto done;
    }
    const long long most = MOST_HEADER_BYTES + PREFIX_BYTES;
    const size_t head_bytes = (size_t)(file_bytes < most ? file_bytes : most);
    KI_CHECK(ki_alloc_or(&head, head_bytes, 1, "a file's header", err));
    KI_CHECK(ki_file_read_at(fd, path, head, head_bytes, 0, err));
    KI_CHECK(parse_header(head, head_bytes, (uint64_t)file_bytes, path, &header, err));
    KI_CHECK(ki_array_alloc(header.array.dtype, header.array.n_dims, header.array.dim, &array, err));
    KI_CHECK(ki_file_read_at(fd, path, array.data, header.bytes, (long long)header.offset, err));
    if (header.is_swapped) swap_bytes(&array);
    *ret_array = array;
    array.data = NULL;
done:
    kith_array_release(&array);
    ki_free(head);
    close(fd);
    return status;
}

/* Version 1.0, padded with spaces so that the elements begin at a multiple of 64. */
static size_t make_header(const kith_array *array, char kind, char digit, char *buf, size_t buf_bytes) {
    const char order = kith_dtype_bytes(array->dtype) == 1 ? '|' : native_order;
    size_t n = 10;
    n += (size_t)ki_snprintf(buf + n, buf_bytes - n, "{'descr': '%c%c%c', 'fortran_order': False, 'shape': (",
                             order, kind, digit);
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

kith_status kith_npy_write(const char *path, const kith_array *array, kith_error *err) {
    KI_NEED(err, path, array);
    size_t bytes = 0;
    const kith_status checked = ki_array_check(array, &bytes, err);
    if (checked != KITH_OK) return ki_prefix(err, checked, "%s", path);
    int d = 0;
    while (d < N_DESCRS && descrs[d].dtype != array->dtype) d++;
    if (d == N_DESCRS) {
        ki_fail(err, KITH_EUNSUPPORTED, "%s: .npy has no %s", path, kith_dtype_name(array->dtype));
        return ki_hint(err, KITH_EUNSUPPORTED, "convert it to float32 first");
    }
    char header[512];
    const size_t header_bytes = make_header(array, descrs[d].kind, descrs[d].digit, header, sizeof header);
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
