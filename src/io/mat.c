/* Version 5: a header of 128 bytes, then elements. An element is a tag (type and length, 4 bytes each), its data,
 * and padding to 8 bytes. If the data has at most 4 bytes, type and length share the first 4 bytes of the tag,
 * and the data is in the other 4. A variable is an element of type MATRIX, whose data are elements again: flags,
 * extents, name, then what its class needs. A COMPRESSED element is one such variable, packed by zlib.
 * (MATLAB's "MAT-File Format" describes it.)
 *
 * Every length is checked against what is left of the element around it. The number of parts is checked against
 * the bytes that so many tags take, so that no loop is longer than the file. A packed variable has its length in
 * its first 8 unpacked bytes. The length is checked against what deflate can produce before memory is allocated. */
#include "io/mat.h"

#include <string.h>

#include "base/alloc.h"
#include "io/inflate.h"

enum { HEADER_BYTES = 128, TAG_BYTES = 8, VERSION_AT = 124, ORDER_AT = 126, MOST_DIMS = 32 };
/* The format's own limit for a variable is 2 GiB; lists of images are far from it. */
static const size_t most_unpacked_bytes = (size_t)1 << 30;

/* Types of elements. */
enum {
    T_INT8 = 1,
    T_UINT8 = 2,
    T_INT16 = 3,
    T_UINT16 = 4,
    T_INT32 = 5,
    T_UINT32 = 6,
    T_SINGLE = 7,
    T_DOUBLE = 9,
    T_MATRIX = 14,
    T_COMPRESSED = 15,
    T_UTF8 = 16,
    T_UTF16 = 17,
};
/* Classes of arrays. */
enum { C_CELL = 1, C_STRUCT = 2, C_CHAR = 4, C_DOUBLE = 6, C_UINT32 = 13 };
enum { FLAG_COMPLEX = 0x800 };

struct ki_mat {
    const uint8_t *bytes;
    size_t n;
    const char *name;
    bool is_swapped;
    uint8_t *unpacked; /* of the variable found last */
};

typedef struct element {
    uint32_t type;
    const uint8_t *data;
    size_t n;
} element;

static kith_status fail(const ki_mat *mat, kith_error *err, const char *what) {
    return ki_fail(err, KITH_EFORMAT, "%s is damaged: %s", mat->name, what);
}

static uint16_t read16(const ki_mat *mat, const uint8_t *p) {
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return mat->is_swapped ? __builtin_bswap16(v) : v;
}

static uint32_t read32(const ki_mat *mat, const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return mat->is_swapped ? __builtin_bswap32(v) : v;
}

static uint64_t read64(const ki_mat *mat, const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return mat->is_swapped ? __builtin_bswap64(v) : v;
}

/* Take the element at *at; some writers leave out the padding of the last one. */
static kith_status take_element(const ki_mat *mat, const uint8_t **at, const uint8_t *end, element *ret,
                                kith_error *err) {
    const size_t left = (size_t)(end - *at);
    if (left < TAG_BYTES) return fail(mat, err, "it ends inside the tag of an element");
    const uint32_t first = read32(mat, *at);
    if (first >> 16) {
        *ret = (element){.type = first & 0xffff, .data = *at + 4, .n = first >> 16};
        if (ret->n > 4) return fail(mat, err, "a short element has more than 4 bytes");
        *at += TAG_BYTES;
        return KITH_OK;
    }
    *ret = (element){.type = first, .data = *at + TAG_BYTES, .n = read32(mat, *at + 4)};
    if (ret->n > left - TAG_BYTES)
        return ki_fail(err, KITH_EFORMAT, "%s is damaged: an element of %zu bytes where %zu are left",
                       mat->name, ret->n, left - TAG_BYTES);
    const size_t whole = TAG_BYTES + (ret->type == T_COMPRESSED ? ret->n : ki_round_up(ret->n, 8));
    *at += whole < left ? whole : left;
    return KITH_OK;
}

static kith_status read_extents(const ki_mat *mat, const element *dims, ki_mat_array *a, kith_error *err) {
    const size_t n = dims->n / 4;
    if (dims->type != T_INT32 || dims->n % 4 || n == 0 || n > MOST_DIMS)
        return fail(mat, err, "the extents of an array are no list of 32-bit numbers");
    a->n_elements = 1;
    for (size_t i = 0; i < n; i++) {
        const uint32_t extent = read32(mat, dims->data + 4 * i);
        if (extent > INT32_MAX) return fail(mat, err, "an array has a negative extent");
        if (!ki_mul_size(a->n_elements, extent, &a->n_elements))
            return fail(mat, err, "the extents of an array have no product");
    }
    return KITH_OK;
}

static kith_status read_fields(const ki_mat *mat, ki_mat_array *a, kith_error *err) {
    element length = {0}, names = {0};
    KI_TRY(take_element(mat, &a->at, a->end, &length, err));
    KI_TRY(take_element(mat, &a->at, a->end, &names, err));
    if (length.type != T_INT32 || length.n != 4 || names.type != T_INT8)
        return fail(mat, err, "the field names of a struct are not there");
    a->name_bytes = read32(mat, length.data);
    if (a->name_bytes == 0 || names.n % a->name_bytes != 0)
        return fail(mat, err, "the field names of a struct do not have the length it says");
    a->names = names.data;
    a->n_fields = names.n / a->name_bytes;
    return KITH_OK;
}

static kith_status count_parts(const ki_mat *mat, size_t per_element, ki_mat_array *a, kith_error *err) {
    if (!ki_mul_size(a->n_elements, per_element, &a->n_parts) ||
        a->n_parts > (size_t)(a->end - a->at) / TAG_BYTES)
        return fail(mat, err, "an array has more parts than bytes for them");
    return KITH_OK;
}

/* What the data of a MATRIX element says; ret_name may be NULL. */
static kith_status read_array(const ki_mat *mat, const element *matrix, ki_mat_array *ret, element *ret_name,
                              kith_error *err) {
    ki_mat_array a = {.mat = mat, .at = matrix->data, .end = matrix->data + matrix->n};
    element flags = {0}, dims = {0}, name = {0}, values = {0};
    if (ret_name) *ret_name = (element){0};
    if (matrix->n == 0) { /* an empty array may be nothing but its tag */
        *ret = a;
        return KITH_OK;
    }
    KI_TRY(take_element(mat, &a.at, a.end, &flags, err));
    if (flags.type != T_UINT32 || flags.n != 8) return fail(mat, err, "an array has no flags");
    const uint32_t bits = read32(mat, flags.data), class_ = bits & 0xff;
    const bool is_number = class_ >= C_DOUBLE && class_ <= C_UINT32;
    if (class_ != C_CELL && class_ != C_STRUCT && class_ != C_CHAR && !is_number && !ret_name) {
        *ret = a;
        return KITH_OK;
    }
    KI_TRY(take_element(mat, &a.at, a.end, &dims, err));
    KI_TRY(take_element(mat, &a.at, a.end, &name, err));
    if (name.type != T_INT8) return fail(mat, err, "an array has no name");
    if (ret_name) *ret_name = name;
    if (class_ == C_CELL) {
        a.kind = KI_MAT_CELL;
        KI_TRY(read_extents(mat, &dims, &a, err));
        KI_TRY(count_parts(mat, 1, &a, err));
    } else if (class_ == C_STRUCT) {
        a.kind = KI_MAT_STRUCT;
        KI_TRY(read_extents(mat, &dims, &a, err));
        KI_TRY(read_fields(mat, &a, err));
        KI_TRY(count_parts(mat, a.n_fields, &a, err));
    } else if ((class_ == C_CHAR || is_number) && !(bits & FLAG_COMPLEX)) {
        a.kind = is_number ? KI_MAT_NUMBER : KI_MAT_TEXT;
        KI_TRY(read_extents(mat, &dims, &a, err));
        KI_TRY(take_element(mat, &a.at, a.end, &values, err));
        a.type = values.type;
        a.at = values.data;
        a.end = values.data + values.n;
    }
    *ret = a;
    return KITH_OK;
}

kith_status ki_mat_parse(const void *bytes, size_t n, const char *name, ki_mat **ret, kith_error *err) {
    const uint8_t *b = bytes;
    static const uint8_t hdf[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    const bool has_header = n >= HEADER_BYTES;
    /* A file of version 7.3 is HDF5, after 512 bytes that begin with the same header. */
    if ((n >= sizeof hdf && memcmp(b, hdf, sizeof hdf) == 0) ||
        (n >= 512 + sizeof hdf && memcmp(b + 512, hdf, sizeof hdf) == 0)) {
        ki_fail(err, KITH_EUNSUPPORTED, "%s is a MATLAB file of version 7.3 (HDF5); wanted version 5 to 7",
                name);
        return ki_hint(err, KITH_EUNSUPPORTED, "in MATLAB: save it with -v7");
    }
    const bool is_little = has_header && memcmp(b + ORDER_AT, "IM", 2) == 0;
    const bool is_big = has_header && memcmp(b + ORDER_AT, "MI", 2) == 0;
    if (!is_little && !is_big) return ki_fail(err, KITH_EFORMAT, "%s is not a MATLAB file", name);
    ki_mat mat = {.bytes = bytes, .n = n, .name = name};
    mat.is_swapped = is_big == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
    const uint16_t version = read16(&mat, b + VERSION_AT);
    if (version != 0x0100)
        return ki_fail(err, KITH_EUNSUPPORTED, "%s is a MATLAB file of version 0x%04x; wanted 0x0100", name,
                       version);
    KI_TRY(ki_alloc_or(ret, 1, sizeof mat, "a MATLAB file", err));
    **ret = mat;
    return KITH_OK;
}

void ki_mat_free(ki_mat *mat) {
    if (!mat) return;
    ki_free(mat->unpacked);
    ki_free(mat);
}

/* The one MATRIX element inside a packed one, in mat->unpacked. */
static kith_status unpack(ki_mat *mat, element packed, element *ret, kith_error *err) {
    kith_status status = KITH_OK;
    uint8_t tag[TAG_BYTES];
    size_t got = 0;
    ki_inflate *in = NULL;
    KI_CHECK(ki_inflate_new(packed.data, packed.n, mat->name, &in, err));
    KI_CHECK(ki_inflate_read(in, tag, sizeof tag, &got, err));
    if (got < sizeof tag) {
        status = fail(mat, err, "a packed variable ends inside its tag");
        goto done;
    }
    *ret = (element){.type = read32(mat, tag), .n = read32(mat, tag + 4)};
    if (ret->n > most_unpacked_bytes || !ki_inflate_can_make(packed.n, ret->n)) {
        status = ki_fail(err, KITH_EFORMAT, "%s is damaged: %zu packed bytes promise a variable of %zu",
                         mat->name, packed.n, ret->n);
        goto done;
    }
    ki_free(mat->unpacked);
    mat->unpacked = NULL;
    KI_CHECK(ki_alloc_or(&mat->unpacked, ret->n, 1, "a MATLAB variable", err));
    KI_CHECK(ki_inflate_read(in, mat->unpacked, ret->n, &got, err));
    if (got < ret->n) status = fail(mat, err, "a packed variable is shorter than it says");
    ret->data = mat->unpacked;
done:
    ki_inflate_free(in);
    return status;
}

kith_status ki_mat_find(ki_mat *mat, const char *variable, ki_mat_array *ret, bool *ret_is_there,
                        kith_error *err) {
    const uint8_t *at = mat->bytes + HEADER_BYTES, *end = mat->bytes + mat->n;
    *ret_is_there = false;
    while (at < end) {
        element found = {0}, name = {0};
        ki_mat_array array;
        KI_TRY(take_element(mat, &at, end, &found, err));
        if (found.type == T_COMPRESSED) KI_TRY(unpack(mat, found, &found, err));
        if (found.type != T_MATRIX) continue; /* what newer writers may add */
        KI_TRY(read_array(mat, &found, &array, &name, err));
        if (name.n != strlen(variable) || memcmp(name.data, variable, name.n) != 0) continue;
        *ret = array;
        *ret_is_there = true;
        return KITH_OK;
    }
    return KITH_OK;
}

kith_status ki_mat_next(ki_mat_array *array, ki_mat_array *ret_part, kith_error *err) {
    element part = {0};
    KI_TRY(take_element(array->mat, &array->at, array->end, &part, err));
    if (part.type != T_MATRIX) return fail(array->mat, err, "a part of an array is no array");
    return read_array(array->mat, &part, ret_part, NULL, err);
}

size_t ki_mat_field(const ki_mat_array *array, const char *name) {
    const size_t n = strlen(name);
    size_t i = 0;
    for (; i < array->n_fields; i++) {
        const uint8_t *own = array->names + i * array->name_bytes;
        if (n <= array->name_bytes && memcmp(own, name, n) == 0 && (n == array->name_bytes || own[n] == 0))
            break;
    }
    return i;
}

bool ki_mat_number(const ki_mat_array *array, double *ret) {
    static const uint8_t type_bytes[] = {
        [T_INT8] = 1,  [T_UINT8] = 1,  [T_INT16] = 2,  [T_UINT16] = 2,
        [T_INT32] = 4, [T_UINT32] = 4, [T_SINGLE] = 4, [T_DOUBLE] = 8,
    };
    const uint8_t *p = array->at;
    if (array->kind != KI_MAT_NUMBER || array->n_elements == 0 || array->type >= sizeof type_bytes)
        return false;
    if (type_bytes[array->type] == 0 || (size_t)(array->end - p) < type_bytes[array->type]) return false;
    switch (array->type) {
    case T_INT8: *ret = (int8_t)p[0]; break;
    case T_UINT8: *ret = p[0]; break;
    case T_INT16: *ret = (int16_t)read16(array->mat, p); break;
    case T_UINT16: *ret = read16(array->mat, p); break;
    case T_INT32: *ret = (int32_t)read32(array->mat, p); break;
    case T_UINT32: *ret = read32(array->mat, p); break;
    case T_SINGLE: {
        const uint32_t bits = read32(array->mat, p);
        float value;
        memcpy(&value, &bits, sizeof value);
        *ret = (double)value;
        break;
    }
    default: {
        const uint64_t bits = read64(array->mat, p);
        memcpy(ret, &bits, sizeof bits);
        break;
    }
    }
    return true;
}

bool ki_mat_text(const ki_mat_array *array, char *buf, size_t buf_bytes) {
    if (array->kind != KI_MAT_TEXT) return false;
    const bool is_wide = array->type == T_UINT16 || array->type == T_UTF16;
    if (!is_wide && array->type != T_UINT8 && array->type != T_INT8 && array->type != T_UTF8) return false;
    const size_t step = is_wide ? 2 : 1, n = (size_t)(array->end - array->at) / step;
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *p = array->at + i * step;
        const unsigned unit = is_wide ? read16(array->mat, p) : p[0];
        if (unit == 0) break;
        if (used + 2 >= buf_bytes || unit > 0x7ff) return false;
        if (is_wide && unit >= 0x80) {
            buf[used++] = (char)(0xc0 | unit >> 6);
            buf[used++] = (char)(0x80 | (unit & 0x3f));
        } else {
            buf[used++] = (char)unit;
        }
    }
    buf[used] = '\0';
    return used > 0;
}
