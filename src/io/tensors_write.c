/* Writing safetensors. Tensors are sorted by descending element size and, within one size, by the order in
 * which they were added. So each is aligned for its type, and the same calls make the same bytes. */
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/array.h"
#include "base/atomic.h"
#include "base/text.h"
#include "io/json.h"
#include "io/tensors.h"
#include "kith/experimental/json.h"

enum { LENGTH_BYTES = 8, MOST_HEADER_BYTES = 100000000 };

typedef struct item {
    char *name;
    kith_array array; /* data borrowed */
    size_t bytes;
} item;

typedef struct pair {
    char *key, *value;
} pair;

struct kith_tensors_writer {
    item *items;
    size_t n_items, items_capacity;
    pair *pairs;
    size_t n_pairs, pairs_capacity;
};

kith_status kith_tensors_writer_new(kith_tensors_writer **ret_writer, kith_error *err) {
    KI_NEED(err, ret_writer);
    return ki_zalloc_or(ret_writer, 1, sizeof **ret_writer, "a safetensors writer", err);
}

void kith_tensors_writer_free(kith_tensors_writer *writer) {
    if (!writer) return;
    for (size_t i = 0; i < writer->n_items; i++) ki_free(writer->items[i].name);
    for (size_t i = 0; i < writer->n_pairs; i++) {
        ki_free(writer->pairs[i].key);
        ki_free(writer->pairs[i].value);
    }
    ki_free(writer->items);
    ki_free(writer->pairs);
    ki_free(writer);
}

static kith_status check_text(const char *text, const char *what, kith_error *err) {
    for (size_t left = strlen(text); left > 0;) {
        const size_t n = ki_utf8_next(text, left);
        if (n == 0) return ki_fail(err, KITH_EINVAL, "%s is not UTF-8; safetensors wants UTF-8", what);
        text += n;
        left -= n;
    }
    return KITH_OK;
}

kith_status kith_tensors_writer_add(kith_tensors_writer *writer, const char *name, const kith_array *array,
                                    kith_error *err) {
    KI_NEED(err, writer, name, array);
    size_t bytes = 0;
    const kith_status status = ki_array_check(array, &bytes, err);
    if (status != KITH_OK) return ki_prefix(err, status, "tensor '%.100s'", name);
    KI_TRY(check_text(name, "a tensor's name", err));
    if (strcmp(name, KI_TENSORS_METADATA) == 0)
        return ki_fail(err, KITH_EINVAL, "a tensor cannot be named " KI_TENSORS_METADATA);
    for (size_t i = 0; i < writer->n_items; i++) {
        if (strcmp(writer->items[i].name, name) == 0)
            return ki_fail(err, KITH_EINVAL, "tensor '%.100s' was added before", name);
    }
    KI_TRY(ki_grow(&writer->items, &writer->items_capacity, writer->n_items + 1, sizeof *writer->items,
                   "a safetensors writer", err));
    char *copy = ki_strdup(name);
    if (!copy) return ki_fail_memory(err, strlen(name) + 1, "a tensor's name");
    writer->items[writer->n_items++] = (item){.name = copy, .array = *array, .bytes = bytes};
    return KITH_OK;
}

kith_status kith_tensors_writer_metadata(kith_tensors_writer *writer, const char *key, const char *value,
                                         kith_error *err) {
    KI_NEED(err, writer, key, value);
    KI_TRY(check_text(key, "a metadata key", err));
    KI_TRY(check_text(value, "a metadata value", err));
    for (size_t i = 0; i < writer->n_pairs; i++) {
        if (strcmp(writer->pairs[i].key, key) == 0)
            return ki_fail(err, KITH_EINVAL, "metadata '%.100s' was added before", key);
    }
    KI_TRY(ki_grow(&writer->pairs, &writer->pairs_capacity, writer->n_pairs + 1, sizeof *writer->pairs,
                   "a safetensors writer", err));
    pair p = {.key = ki_strdup(key), .value = ki_strdup(value)};
    if (!p.key || !p.value) {
        ki_free(p.key);
        ki_free(p.value);
        return ki_fail_memory(err, strlen(key) + strlen(value) + 2, "metadata");
    }
    writer->pairs[writer->n_pairs++] = p;
    return KITH_OK;
}

kith_status ki_tensors_writer_seal(kith_tensors_writer *writer, const char *key, kith_error *err) {
    uint64_t sum = 0;
    char text[17];
    for (size_t i = 0; i < writer->n_items; i++)
        sum += ki_tensors_sum_array(writer->items[i].name, &writer->items[i].array);
    for (size_t i = 0; i < writer->n_pairs; i++)
        sum += ki_tensors_sum_metadata(writer->pairs[i].key, writer->pairs[i].value);
    ki_tensors_seal_text(sum, text);
    return kith_tensors_writer_metadata(writer, key, text, err);
}

static const char *type_name(kith_dtype dtype) {
    const ki_tensor_type *t = ki_tensor_types;
    while (t->name && t->dtype != dtype) t++;
    return t->name;
}

static kith_status put_entry(kith_json *json, const item *it, size_t *offset, kith_error *err) {
    const size_t begin = *offset;
    if (!ki_add_size(begin, it->bytes, offset) || *offset > INT64_MAX)
        return ki_fail(err, KITH_EINVAL, "the tensors together do not fit a file");
    kith_json_key(json, it->name);
    kith_json_object_begin(json);
    kith_json_key(json, "dtype");
    kith_json_string(json, type_name(it->array.dtype));
    kith_json_key(json, "shape");
    kith_json_array_begin(json);
    for (int d = 0; d < it->array.n_dims; d++) kith_json_int(json, it->array.dim[d]);
    kith_json_array_end(json);
    kith_json_key(json, "data_offsets");
    kith_json_array_begin(json);
    kith_json_int(json, (int64_t)begin);
    kith_json_int(json, (int64_t)*offset);
    kith_json_array_end(json);
    kith_json_object_end(json);
    return KITH_OK;
}

/* Items in file order: element size 8, 4, 2, 1. *at starts at zero; NULL after the last. */
typedef struct walk {
    size_t bytes, i;
} walk;

static const item *walk_next(const kith_tensors_writer *writer, walk *at) {
    if (at->bytes == 0) *at = (walk){.bytes = 8};
    for (; at->bytes > 0; at->bytes /= 2, at->i = 0) {
        while (at->i < writer->n_items) {
            const item *it = &writer->items[at->i++];
            if (kith_dtype_bytes(it->array.dtype) == at->bytes) return it;
        }
    }
    return NULL;
}

static kith_status make_header(const kith_tensors_writer *writer, kith_json *json, const char **ret_text,
                               kith_error *err) {
    kith_json_object_begin(json);
    if (writer->n_pairs > 0) {
        kith_json_key(json, KI_TENSORS_METADATA);
        kith_json_object_begin(json);
        for (size_t i = 0; i < writer->n_pairs; i++) {
            kith_json_key(json, writer->pairs[i].key);
            kith_json_string(json, writer->pairs[i].value);
        }
        kith_json_object_end(json);
    }
    size_t offset = 0;
    walk at = {0};
    for (const item *it; (it = walk_next(writer, &at));) KI_TRY(put_entry(json, it, &offset, err));
    kith_json_object_end(json);
    return kith_json_finish(json, ret_text, err);
}

/* Where the bytes go, piece by piece. */
typedef kith_status (*put_fn)(void *to, const void *bytes, size_t n, kith_error *err);

static kith_status put_file(void *to, const void *bytes, size_t n, kith_error *err) {
    return ki_atomic_write(to, bytes, n, err);
}

static kith_status put_buffer(void *to, const void *bytes, size_t n, kith_error *err) {
    ki_buffer *buffer = to;
    buffer->err = err;
    if (n > 0) ki_buffer_add(buffer, bytes, n);
    return buffer->status;
}

static kith_status put_all(const kith_tensors_writer *writer, const char *name, put_fn put, void *to,
                           kith_error *err) {
    kith_status status = KITH_OK;
    kith_json *json = NULL;
    const char *text = NULL;
    KI_CHECK(kith_json_new(&json, err));
    KI_CHECK(make_header(writer, json, &text, err));
    const size_t n = strlen(text);
    if (n > MOST_HEADER_BYTES - LENGTH_BYTES) {
        status = ki_fail(err, KITH_EINVAL, "%s: a header of %zu bytes; safetensors has at most %d", name, n,
                         MOST_HEADER_BYTES);
        goto done;
    }
    const uint64_t padded = ki_round_up(n, LENGTH_BYTES);
    unsigned char length[LENGTH_BYTES];
    for (int i = 0; i < LENGTH_BYTES; i++) length[i] = (unsigned char)(padded >> (8 * i) & 255);
    KI_CHECK(put(to, length, sizeof length, err));
    KI_CHECK(put(to, text, n, err));
    KI_CHECK(put(to, "       ", (size_t)padded - n, err));
    walk at = {0};
    for (const item *it; (it = walk_next(writer, &at));) KI_CHECK(put(to, it->array.data, it->bytes, err));
done:
    kith_json_free(json);
    return status;
}

kith_status kith_tensors_writer_save(const kith_tensors_writer *writer, const char *path, kith_error *err) {
    KI_NEED(err, writer, path);
    kith_status status;
    ki_atomic_file file = {0};
    KI_CHECK(ki_atomic_open(&file, path, err));
    KI_CHECK(put_all(writer, path, put_file, &file, err));
    KI_CHECK(ki_atomic_commit(&file, err));
done:
    ki_atomic_discard(&file);
    return status;
}

kith_status ki_tensors_writer_bytes(const kith_tensors_writer *writer, ki_buffer *ret_bytes,
                                    kith_error *err) {
    return put_all(writer, "the tensors", put_buffer, ret_bytes, err);
}
