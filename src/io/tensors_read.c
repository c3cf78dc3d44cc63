/* safetensors: an 8-byte little-endian header length, the header (JSON), the elements.
 *
 * A file is read, not mapped: if a mapped file is shortened, the programs that read it are killed, and a library
 * must not let a data file do that. The header is read and checked before memory is allocated for the elements.
 *
 * The header comes from strangers. Before the JSON parser sees it, one pass limits its nesting and its lists, so
 * that an error can name the tensor. Afterwards every entry is checked against the file. The tensors must cover
 * the data exactly, without holes or overlap, as the format says. Names and metadata stay in the parsed JSON,
 * which lives as long as the file. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/option.h"
#include "base/shape.h"
#include "base/text.h"
#include "io/file.h"
#include "io/json.h"
#include "io/tensors.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "safetensors is little-endian and is used as it lies in the file");

enum { LENGTH_BYTES = 8, MOST_HEADER_BYTES = 100000000, MOST_LEVELS = 3 };

const ki_tensor_type ki_tensor_types[] = {
    {"F32", KITH_F32}, {"F16", KITH_F16}, {"BF16", KITH_BF16}, {"F64", KITH_F64},
    {"I32", KITH_I32}, {"I64", KITH_I64}, {"U8", KITH_U8},     {NULL, KITH_F32},
};

typedef struct entry {
    const char *name;
    kith_array view;
    uint64_t begin, end; /* in the data that follows the header */
    void *copy;          /* when its place in the data is not aligned for the type */
} entry;

struct kith_tensors {
    char *path;               /* for error lines */
    char *own;                /* the file's data; NULL when the bytes are the caller's */
    ki_arena arena;           /* of the header */
    const ki_value *metadata; /* NULL: none */
    entry *entries;           /* by place in the file */
    const entry **by_name;    /* sorted */
    size_t n_entries;
};

/* What is being read, for error lines. */
typedef struct reader {
    const char *name;
    uint64_t data_bytes;
    kith_error *err;
} reader;

/* The last string at the outer level is the name of the tensor whose entry is being scanned. */
static kith_status scan_header(const reader *r, const char *text, size_t n) {
    int depth = 0, n_commas = 0;
    bool in_list = false;
    const char *name = text;
    int name_n = 0;
    for (size_t i = 0; i < n; i++) {
        switch (text[i]) {
        case '"': {
            const size_t start = ++i;
            while (i < n && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
            if (depth == 1 && i < n) {
                name = text + start;
                name_n = i - start < 100 ? (int)(i - start) : 100;
            }
            break;
        }
        case '{':
        case '[':
            if (++depth > MOST_LEVELS)
                return ki_fail(r->err, KITH_EFORMAT,
                               "%s: tensor '%.*s': its entry is nested deeper than %d levels", r->name,
                               name_n, name, MOST_LEVELS - 1);
            in_list = text[i] == '[';
            n_commas = 0;
            break;
        case '}':
        case ']':
            in_list = false;
            depth--;
            break;
        case ',':
            if (in_list && ++n_commas >= KITH_MAX_DIMS)
                return ki_fail(r->err, KITH_EUNSUPPORTED, "%s: tensor '%.*s': a list of more than %d numbers",
                               r->name, name_n, name, KITH_MAX_DIMS);
            break;
        default: break;
        }
    }
    return KITH_OK;
}

static kith_status fail_tensor(const reader *r, const char *tensor, kith_status status, const char *what) {
    return ki_fail(r->err, status, "%s: tensor '%.100s': %s", r->name, tensor, what);
}

static kith_status parse_dtype(const reader *r, const char *tensor, const ki_value *value,
                               kith_dtype *ret_dtype) {
    const char *text = value->is_quoted ? value->text : NULL;
    if (!text) return fail_tensor(r, tensor, KITH_EFORMAT, "dtype is not a string");
    for (const ki_tensor_type *t = ki_tensor_types; t->name; t++) {
        if (strcmp(t->name, text) == 0) {
            *ret_dtype = t->dtype;
            return KITH_OK;
        }
    }
    return ki_fail(r->err, KITH_EUNSUPPORTED,
                   "%s: tensor '%.100s': dtype '%.20s'; wanted F32, F16, BF16, F64, I32, I64 or U8", r->name,
                   tensor, text);
}

/* A number without a point or an exponent, as the format writes extents and offsets. */
static bool is_whole(const ki_value *value, int64_t *ret) {
    return value->kind == KI_VALUE_SCALAR && !value->is_quoted && ki_parse_int64(value->text, ret);
}

static kith_status parse_shape(const reader *r, const char *tensor, const ki_value *value, kith_array *view) {
    if (value->kind != KI_VALUE_LIST) return fail_tensor(r, tensor, KITH_EFORMAT, "shape is not a list");
    if (value->n_items > KITH_MAX_DIMS)
        return fail_tensor(r, tensor, KITH_EUNSUPPORTED, "shape has more than 8 extents");
    for (const ki_value *extent = value->first; extent; extent = extent->next) {
        int64_t *dim = &view->dim[view->n_dims++];
        if (!is_whole(extent, dim) || *dim < 0)
            return fail_tensor(r, tensor, KITH_EFORMAT,
                               "shape has an extent that is not a whole number from 0");
    }
    return KITH_OK;
}

static kith_status parse_offsets(const reader *r, const char *tensor, const ki_value *value, entry *e) {
    int64_t from = 0, to = 0;
    if (value->kind != KI_VALUE_LIST || value->n_items != 2 || !is_whole(value->first, &from) ||
        !is_whole(value->last, &to))
        return fail_tensor(r, tensor, KITH_EFORMAT, "data_offsets is not a list of two whole numbers");
    if (from < 0 || to < from || (uint64_t)to > r->data_bytes)
        return ki_fail(
            r->err, KITH_EFORMAT,
            "%s: tensor '%.100s': data_offsets [%lld, %lld] do not lie in the file's %llu bytes of data",
            r->name, tensor, (long long)from, (long long)to, (unsigned long long)r->data_bytes);
    e->begin = (uint64_t)from;
    e->end = (uint64_t)to;
    return KITH_OK;
}

static kith_status parse_entry(const reader *r, const char *tensor, const ki_value *info, entry *e) {
    if (info->kind != KI_VALUE_MAP) return fail_tensor(r, tensor, KITH_EFORMAT, "its entry is not an object");
    e->name = tensor;
    bool has_dtype = false, has_shape = false, has_offsets = false;
    for (const ki_value *value = info->first; value; value = value->next) {
        const char *key = value->key;
        if (strcmp(key, "dtype") == 0) {
            KI_TRY(parse_dtype(r, tensor, value, &e->view.dtype));
            has_dtype = true;
        } else if (strcmp(key, "shape") == 0) {
            KI_TRY(parse_shape(r, tensor, value, &e->view));
            has_shape = true;
        } else if (strcmp(key, "data_offsets") == 0) {
            KI_TRY(parse_offsets(r, tensor, value, e));
            has_offsets = true;
        } else {
            return ki_fail(r->err, KITH_EFORMAT, "%s: tensor '%.100s': unknown key '%.60s'", r->name, tensor,
                           key);
        }
    }
    if (!has_dtype) return fail_tensor(r, tensor, KITH_EFORMAT, "no dtype");
    if (!has_shape) return fail_tensor(r, tensor, KITH_EFORMAT, "no shape");
    if (!has_offsets) return fail_tensor(r, tensor, KITH_EFORMAT, "no data_offsets");
    const int64_t count = kith_array_count(&e->view);
    size_t bytes = 0;
    if (count < 0 || !ki_mul_size((size_t)count, kith_dtype_bytes(e->view.dtype), &bytes) ||
        bytes != e->end - e->begin) {
        ki_shape shape = {.n_dims = e->view.n_dims};
        memcpy(shape.dim, e->view.dim, sizeof shape.dim);
        char text[200];
        return ki_fail(r->err, KITH_EFORMAT, "%s: tensor '%.100s': %llu bytes of data do not make %s of %s",
                       r->name, tensor, (unsigned long long)(e->end - e->begin),
                       kith_dtype_name(e->view.dtype), ki_shape_text(&shape, text, sizeof text));
    }
    return KITH_OK;
}

static kith_status check_metadata(const reader *r, const ki_value *metadata) {
    if (metadata->kind != KI_VALUE_MAP)
        return ki_fail(r->err, KITH_EFORMAT, "%s: __metadata__ is not an object", r->name);
    for (const ki_value *v = metadata->first; v; v = v->next) {
        if (!v->is_quoted)
            return ki_fail(r->err, KITH_EFORMAT, "%s: __metadata__: the value of '%.100s' is not a string",
                           r->name, v->key);
    }
    return KITH_OK;
}

/* Empty tensors come before the one that begins at the same offset. */
static int compare_places(const void *left, const void *right) {
    const entry *a = left, *b = right;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    if (a->end != b->end) return a->end < b->end ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int compare_names(const void *left, const void *right) {
    return strcmp((*(const entry *const *)left)->name, (*(const entry *const *)right)->name);
}

static int compare_to_name(const void *name, const void *item) {
    return strcmp(name, (*(const entry *const *)item)->name);
}

static kith_status check_cover(const reader *r, const kith_tensors *tensors) {
    uint64_t at = 0;
    for (size_t i = 0; i < tensors->n_entries; i++) {
        const entry *e = &tensors->entries[i];
        if (e->begin != at)
            return ki_fail(r->err, KITH_EFORMAT, "%s: tensor '%.100s': its data begins at %llu, %s at %llu",
                           r->name, e->name, (unsigned long long)e->begin,
                           e->begin < at ? "inside another tensor's, which ends" : "after a hole that begins",
                           (unsigned long long)at);
        at = e->end;
    }
    if (at != r->data_bytes)
        return ki_fail(r->err, KITH_EFORMAT, "%s: %llu bytes of data after the last tensor", r->name,
                       (unsigned long long)(r->data_bytes - at));
    return KITH_OK;
}

/* The format does not align tensors: a float may follow three bytes, but cannot be read from there. Such
 * tensors are copied. */
static kith_status place_data(const reader *r, kith_tensors *tensors, const unsigned char *data) {
    for (size_t i = 0; i < tensors->n_entries; i++) {
        entry *e = &tensors->entries[i];
        const unsigned char *at = data + e->begin;
        const size_t n = (size_t)(e->end - e->begin);
        if ((uintptr_t)at % kith_dtype_bytes(e->view.dtype) != 0) {
            KI_TRY(ki_alloc_or(&e->copy, n, 1, "a tensor", r->err));
            if (n) memcpy(e->copy, at, n);
            at = e->copy;
        }
        e->view.data = (void *)(uintptr_t)at;
    }
    return KITH_OK;
}

static kith_status parse_json(const reader *r, const char *text, size_t n, kith_tensors *tensors) {
    ki_value *header = NULL;
    KI_TRY(ki_json_parse(text, n, r->name, &tensors->arena, &header, r->err));
    if (header->kind != KI_VALUE_MAP)
        return ki_fail(r->err, KITH_EFORMAT, "%s: the header is not an object", r->name);
    const size_t most = header->n_items;
    KI_TRY(ki_zalloc_or(&tensors->entries, most, sizeof *tensors->entries, "a file's tensors", r->err));
    KI_TRY(ki_zalloc_or(&tensors->by_name, most, sizeof *tensors->by_name, "a file's tensors", r->err));
    for (const ki_value *v = header->first; v; v = v->next) {
        if (strcmp(v->key, KI_TENSORS_METADATA) == 0) {
            KI_TRY(check_metadata(r, v));
            tensors->metadata = v;
        } else {
            KI_TRY(parse_entry(r, v->key, v, &tensors->entries[tensors->n_entries++]));
        }
    }
    return KITH_OK;
}

/* The header's length, from the first bytes of a file of file_bytes. */
static kith_status check_length(const unsigned char *bytes, uint64_t file_bytes, const char *name,
                                size_t *ret_header_bytes, kith_error *err) {
    if (file_bytes < LENGTH_BYTES)
        return ki_fail(err, KITH_EFORMAT, "%s is not a safetensors file: %llu bytes, wanted at least %d",
                       name, (unsigned long long)file_bytes, LENGTH_BYTES);
    uint64_t header_bytes = 0;
    memcpy(&header_bytes, bytes, LENGTH_BYTES);
    if (header_bytes > MOST_HEADER_BYTES)
        return ki_fail(err, KITH_EFORMAT,
                       "%s is not a safetensors file: a header of %llu bytes, wanted at most %d", name,
                       (unsigned long long)header_bytes, MOST_HEADER_BYTES);
    if (header_bytes > file_bytes - LENGTH_BYTES)
        return ki_fail(err, KITH_EFORMAT, "%s: a header of %llu bytes, but %llu are left in the file", name,
                       (unsigned long long)header_bytes, (unsigned long long)(file_bytes - LENGTH_BYTES));
    *ret_header_bytes = (size_t)header_bytes;
    return KITH_OK;
}

bool ki_tensors_is(const void *bytes, size_t n) {
    return n > LENGTH_BYTES && ((const char *)bytes)[LENGTH_BYTES] == '{';
}

static kith_status parse_header(const reader *r, const char *text, size_t n, kith_tensors *tensors) {
    if (n == 0 || text[0] != '{')
        return ki_fail(r->err, KITH_EFORMAT,
                       "%s is not a safetensors file: the header does not begin with '{'", r->name);
    KI_TRY(scan_header(r, text, n));
    KI_TRY(parse_json(r, text, n, tensors));
    qsort(tensors->entries, tensors->n_entries, sizeof *tensors->entries, compare_places);
    KI_TRY(check_cover(r, tensors));
    for (size_t i = 0; i < tensors->n_entries; i++) tensors->by_name[i] = &tensors->entries[i];
    qsort(tensors->by_name, tensors->n_entries, sizeof *tensors->by_name, compare_names);
    return KITH_OK;
}

static kith_status new_tensors(const char *name, kith_tensors **ret_tensors, kith_error *err) {
    kith_tensors *tensors = NULL;
    KI_TRY(ki_zalloc_or(&tensors, 1, sizeof *tensors, "a file's tensors", err));
    tensors->path = ki_strdup(name);
    if (!tensors->path) {
        kith_tensors_free(tensors);
        return ki_fail_memory(err, strlen(name) + 1, "a file's name");
    }
    *ret_tensors = tensors;
    return KITH_OK;
}

static kith_status parse_into(const unsigned char *bytes, size_t n, const char *name, kith_tensors *tensors,
                              kith_error *err) {
    size_t header_bytes = 0;
    KI_TRY(check_length(bytes, n, name, &header_bytes, err));
    const reader r = {.name = name, .data_bytes = n - LENGTH_BYTES - header_bytes, .err = err};
    KI_TRY(parse_header(&r, (const char *)bytes + LENGTH_BYTES, header_bytes, tensors));
    return place_data(&r, tensors, bytes + LENGTH_BYTES + header_bytes);
}

kith_status ki_tensors_parse(const void *bytes, size_t n, const char *name, kith_tensors **ret_tensors,
                             kith_error *err) {
    kith_tensors *tensors = NULL;
    KI_TRY(new_tensors(name, &tensors, err));
    const kith_status status = parse_into(bytes, n, name, tensors, err);
    if (status == KITH_OK)
        *ret_tensors = tensors;
    else
        kith_tensors_free(tensors);
    return status;
}

/* A regular file: header, then data. */
static kith_status read_parts(int fd, uint64_t file_bytes, kith_tensors *tensors, kith_error *err) {
    kith_status status = KITH_OK;
    unsigned char length[LENGTH_BYTES] = {0};
    size_t header_bytes = 0;
    char *text = NULL;
    if (file_bytes >= LENGTH_BYTES)
        KI_CHECK(ki_file_read_at(fd, tensors->path, length, sizeof length, 0, err));
    KI_CHECK(check_length(length, file_bytes, tensors->path, &header_bytes, err));
    KI_CHECK(ki_alloc_or(&text, header_bytes, 1, "a file's header", err));
    KI_CHECK(ki_file_read_at(fd, tensors->path, text, header_bytes, LENGTH_BYTES, err));
    const uint64_t begin = LENGTH_BYTES + header_bytes;
    const reader r = {.name = tensors->path, .data_bytes = file_bytes - begin, .err = err};
    KI_CHECK(parse_header(&r, text, header_bytes, tensors));
    KI_CHECK(ki_alloc_or(&tensors->own, (size_t)r.data_bytes, 1, "a file's tensors", err));
    KI_CHECK(ki_file_read_at(fd, tensors->path, tensors->own, (size_t)r.data_bytes, (long long)begin, err));
    KI_CHECK(place_data(&r, tensors, (const unsigned char *)tensors->own));
done:
    ki_free(text);
    return status;
}

kith_status kith_tensors_open(const char *path, kith_tensors **ret_tensors, kith_error *err) {
    KI_NEED(err, path, ret_tensors);
    kith_status status = KITH_OK;
    kith_tensors *tensors = NULL;
    int fd = -1;
    long long file_bytes = 0;
    KI_TRY(ki_file_open(path, KI_FILE_ONLY, &fd, &file_bytes, err));
    KI_CHECK(new_tensors(path, &tensors, err));
    KI_CHECK(read_parts(fd, (uint64_t)file_bytes, tensors, err));
    *ret_tensors = tensors;
    tensors = NULL;
done:
    kith_tensors_free(tensors);
    close(fd);
    return status;
}

void kith_tensors_free(kith_tensors *tensors) {
    if (!tensors) return;
    for (size_t i = 0; i < tensors->n_entries; i++) ki_free(tensors->entries[i].copy);
    ki_free(tensors->path);
    ki_free(tensors->entries);
    ki_free(tensors->by_name);
    ki_arena_release(&tensors->arena);
    ki_free(tensors->own);
    ki_free(tensors);
}

int64_t kith_tensors_count(const kith_tensors *tensors) {
    if (!tensors) return 0;
    return (int64_t)tensors->n_entries;
}

const char *kith_tensors_name(const kith_tensors *tensors, int64_t i) {
    if (!tensors) return NULL;
    return i >= 0 && (uint64_t)i < tensors->n_entries ? tensors->entries[i].name : NULL;
}

/* If there is no memory for the list of names, the error has no suggestion. */
static kith_status fail_name(const kith_tensors *tensors, const char *name, kith_error *err) {
    const char **names = ki_alloc(tensors->n_entries, sizeof *names);
    const size_t n = names ? tensors->n_entries : 0;
    for (size_t i = 0; i < n; i++) names[i] = tensors->entries[i].name;
    ki_fail_unknown(err, "tensor", name, names, n);
    ki_free(names);
    return ki_prefix(err, KITH_ENOTFOUND, "%s", tensors->path);
}

kith_status kith_tensors_get(const kith_tensors *tensors, const char *name, kith_array *ret_view,
                             kith_error *err) {
    KI_NEED(err, tensors, name, ret_view);
    const entry *const *found =
        bsearch(name, tensors->by_name, tensors->n_entries, sizeof *tensors->by_name, compare_to_name);
    if (!found) return fail_name(tensors, name, err);
    *ret_view = (*found)->view;
    return KITH_OK;
}

const char *kith_tensors_metadata(const kith_tensors *tensors, const char *key) {
    const ki_value *found = tensors && key ? ki_value_get(tensors->metadata, key) : NULL;
    return found ? found->text : NULL;
}

ki_seal ki_tensors_seal(const kith_tensors *tensors, const char *key) {
    const char *found = kith_tensors_metadata(tensors, key);
    uint64_t sum = 0;
    char wanted[17];
    if (!found) return KI_SEAL_NONE;
    for (size_t i = 0; i < tensors->n_entries; i++)
        sum += ki_tensors_sum_array(tensors->entries[i].name, &tensors->entries[i].view);
    for (const ki_value *v = tensors->metadata ? tensors->metadata->first : NULL; v; v = v->next) {
        if (strcmp(v->key, key) != 0) sum += ki_tensors_sum_metadata(v->key, v->text);
    }
    ki_tensors_seal_text(sum, wanted);
    return strcmp(found, wanted) == 0 ? KI_SEAL_GOOD : KI_SEAL_BROKEN;
}
