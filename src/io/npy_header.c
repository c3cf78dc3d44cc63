/* The head of a .npy file: "\x93NUMPY", version, header length, a Python dict as text.
 *
 * The dict is read by a small strict parser: exactly the keys descr, fortran_order and shape, each once, in
 * any order, Python string, bool and tuple literals. Format: numpy.lib.format (versions 1.0, 2.0: 4-byte
 * header length, 3.0: UTF-8 header). The rest of the file must have exactly as many bytes as the shape needs. */
#include "io/npy_header.h"

#include <string.h>

#include "base/alloc.h"
#include "base/shape.h"
#include "base/text.h"
#include "io/file.h"

enum { PREFIX_BYTES = 12, MOST_HEADER_BYTES = KI_NPY_HEAD_BYTES - PREFIX_BYTES, DESCR_BYTES = 16 };

/* Integer types that kith does not have are read into the next wider type that holds all their values; uint64
 * into int64, if the values fit. */
static const struct {
    char kind;
    char digit;
    kith_dtype dtype;
} descrs[] = {
    {'f', '4', KITH_F32}, {'f', '8', KITH_F64}, {'f', '2', KITH_F16}, {'i', '4', KITH_I32},
    {'i', '8', KITH_I64}, {'u', '1', KITH_U8},  {'b', '1', KITH_U8},  {'i', '1', KITH_I32},
    {'i', '2', KITH_I32}, {'u', '2', KITH_I32}, {'u', '4', KITH_I64}, {'u', '8', KITH_I64},
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

/* U12 is twelve characters of four bytes, S12 twelve bytes. */
static bool parse_text(const char *type, ki_npy_header *header) {
    enum { MOST_CHARACTERS = 1 << 20 };
    int64_t n = 0;
    if ((type[0] != 'U' && type[0] != 'S') || !ki_parse_int64(type + 1, &n) || n < 1 || n > MOST_CHARACTERS)
        return false;
    header->kind = type[0];
    header->width = (size_t)n * (type[0] == 'U' ? 4 : 1);
    return true;
}

static kith_status parse_descr(cursor *c, const char *descr, ki_npy_header *header) {
    const bool has_order = descr[0] && strchr("<>=|", descr[0]) != NULL;
    const char *type = descr + has_order;
    const bool is_swapped = has_order && strchr("<>", descr[0]) && descr[0] != native_order;
    if (parse_text(type, header)) {
        header->is_swapped = is_swapped;
        return KITH_OK;
    }
    for (int i = 0; i < N_DESCRS; i++) {
        if (type[0] != descrs[i].kind || type[1] != descrs[i].digit || type[2]) continue;
        header->kind = type[0];
        header->width = (size_t)(type[1] - '0');
        if (header->width > 1 && descr[0] == '|') break;
        header->array.dtype = descrs[i].dtype;
        header->is_swapped = header->width > 1 && is_swapped;
        return KITH_OK;
    }
    const bool is_object = type[0] == 'O';
    ki_fail(c->err, KITH_EUNSUPPORTED, "%s: elements of type '%s'; wanted f2, f4, f8, integers or bool",
            c->name, descr);
    return ki_hint(c->err, KITH_EUNSUPPORTED,
                   is_object
                       ? "these are Python objects: in numpy, save array.astype(str) or array.astype('int64')"
                       : "in numpy, save array.astype('float32') or another of these types");
}

static kith_status parse_dict(cursor *c, ki_npy_header *header) {
    bool has_descr = false, has_order = false, has_shape = false, has_comma = true;
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
            header->is_fortran = take_word(c, "True");
            if (!header->is_fortran && !take_word(c, "False")) return fail_header(c, "True or False");
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
    return KITH_OK;
}

kith_status ki_npy_header_parse(const void *data, size_t n, uint64_t file_bytes, const char *name,
                                ki_npy_header *ret_header, kith_error *err) {
    const unsigned char *bytes = data;
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
    ki_npy_header header = {.offset = start + header_bytes};
    cursor c = {.at = (const char *)bytes + start, .name = name, .err = err};
    c.end = c.at + header_bytes;
    KI_TRY(parse_dict(&c, &header));
    const int64_t count = kith_array_count(&header.array);
    const uint64_t found = file_bytes - header.offset;
    if (count < 0 || !ki_mul_size((size_t)count, header.width, &header.bytes) || header.bytes != found) {
        ki_shape shape = {.n_dims = header.array.n_dims};
        memcpy(shape.dim, header.array.dim, sizeof shape.dim);
        char text[200];
        return ki_fail(err, KITH_EFORMAT, "%s: %llu bytes of data do not make %c of %zu bytes each, %s", name,
                       (unsigned long long)found, header.kind, header.width,
                       ki_shape_text(&shape, text, sizeof text));
    }
    *ret_header = header;
    return KITH_OK;
}

kith_status ki_npy_header_read(int fd, long long file_bytes, const char *path, ki_npy_header *ret_header,
                               kith_error *err) {
    kith_status status;
    unsigned char *head = NULL;
    const size_t n = (size_t)(file_bytes < KI_NPY_HEAD_BYTES ? file_bytes : KI_NPY_HEAD_BYTES);
    KI_CHECK(ki_alloc_or(&head, n, 1, "a file's header", err));
    KI_CHECK(ki_file_read_at(fd, path, head, n, 0, err));
    KI_CHECK(ki_npy_header_parse(head, n, (uint64_t)file_bytes, path, ret_header, err));
done:
    ki_free(head);
    return status;
}
