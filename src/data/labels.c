/* Class labels from .npy, .csv and text files.
 *
 * The names are stored as the classes of a data set without items, because it has a table of names. Text is first
 * read as names. If every one of them is a whole number, the numbers are used instead. */
#include "data/labels.h"

#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/array.h"
#include "base/text.h"
#include "data/dataset/dataset.h"
#include "data/dataset/table.h"
#include "io/file.h"
#include "io/npy.h"
#include "io/npy_text.h"

typedef enum label_kind { NONE_YET, NUMBERS, NAMES } label_kind;

struct kith_labels {
    kith_dataset *names;
    label_kind kind;
};

/* The labels of one file while it is read. */
typedef struct column {
    ki_arena arena;
    const char **text;
    size_t n, capacity;
} column;

kith_status kith_labels_new(kith_labels **ret_labels, kith_error *err) {
    KI_NEED(err, ret_labels);
    kith_labels *labels = NULL;
    KI_TRY(ki_zalloc_or(&labels, 1, sizeof *labels, "labels", err));
    const kith_status status = ki_dataset_new(NULL, "", &labels->names, err);
    if (status != KITH_OK)
        ki_free(labels);
    else
        *ret_labels = labels;
    return status;
}

void kith_labels_free(kith_labels *labels) {
    if (!labels) return;
    kith_dataset_free(labels->names);
    ki_free(labels);
}

int64_t kith_labels_n_names(const kith_labels *labels) {
    return labels ? (int64_t)labels->names->n_classes : 0;
}

const char *kith_labels_name(const kith_labels *labels, int64_t id) {
    return id >= 0 && id < kith_labels_n_names(labels) ? labels->names->class_[id].name : NULL;
}

static kith_status add_text(void *user, const char *text, size_t n, kith_error *err) {
    column *c = user;
    KI_TRY(ki_grow(&c->text, &c->capacity, c->n + 1, sizeof *c->text, "labels", err));
    c->text[c->n] = ki_arena_strndup(&c->arena, text, n);
    if (!c->text[c->n]) return ki_fail_memory(err, n, "a label");
    c->n++;
    return KITH_OK;
}

static kith_status add_field(column *c, const ki_table *t, ki_text field, kith_error *err) {
    if (field.n == 0) return ki_lines_fail(&t->lines, t->line, "a label", err);
    return add_text(c, field.s, field.n, err);
}

/* A table with one column needs no header: its first line is a header only if it says `label`. */
static kith_status read_csv(const char *name, const char *text, size_t n, column *c, kith_error *err) {
    kith_status status = KITH_OK;
    ki_table t = ki_table_of(name, text, n);
    bool more = false;
    KI_CHECK(ki_table_next(&t, &more, err));
    int at = more ? ki_table_column(&t, "label") : -1;
    if (more && at < 0 && t.n_fields > 1) {
        status = ki_lines_fail(&t.lines, t.line, "a header line with the column label", err);
        goto done;
    }
    if (more && at < 0) {
        at = 0;
        KI_CHECK(add_field(c, &t, ki_table_field(&t, 0), err));
    }
    for (;;) {
        KI_CHECK(ki_table_next(&t, &more, err));
        if (!more) break;
        KI_CHECK(add_field(c, &t, ki_table_field(&t, at), err));
    }
done:
    ki_table_release(&t);
    return status;
}

static kith_status read_lines(const char *name, const char *text, size_t n, column *c, kith_error *err) {
    ki_lines lines = ki_lines_of(name, text, n);
    for (ki_text line; ki_lines_next(&lines, &line);) {
        if (memchr(line.s, '\0', line.n))
            return ki_lines_fail(&lines, line, "text without NUL characters", err);
        KI_TRY(add_text(c, line.s, line.n, err));
    }
    return KITH_OK;
}

static bool are_numbers(const column *c) {
    int64_t ignored = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (!ki_parse_int64(c->text[i], &ignored)) return false;
    }
    return true;
}

static kith_status settle_kind(kith_labels *labels, label_kind kind, const char *name, kith_error *err) {
    if (labels->kind == NONE_YET) labels->kind = kind;
    if (labels->kind == kind) return KITH_OK;
    return ki_fail(err, KITH_EFORMAT, "%s: the labels are %s, those read before are %s", name,
                   kind == NAMES ? "names" : "numbers", kind == NAMES ? "numbers" : "names");
}

/* From text to ids. Text in a .npy file is always names: numbers would have been saved as numbers. */
static kith_status settle(kith_labels *labels, const column *c, bool may_be_numbers, const char *name,
                          kith_array *ret_ids, kith_error *err) {
    kith_status status = KITH_OK;
    kith_array ids = {0};
    const int64_t n = (int64_t)c->n;
    const bool numbers = may_be_numbers && are_numbers(c);
    KI_TRY(settle_kind(labels, numbers ? NUMBERS : NAMES, name, err));
    KI_CHECK(ki_array_alloc(KITH_I64, 1, &n, &ids, err));
    for (int64_t i = 0; i < n; i++) {
        int64_t *id = (int64_t *)ids.data + i;
        int32_t label = 0;
        if (numbers) {
            ki_parse_int64(c->text[i], id);
        } else {
            KI_CHECK(ki_dataset_class(labels->names, c->text[i], strlen(c->text[i]), &label, err));
            *id = label;
        }
    }
    *ret_ids = ids;
    ids.data = NULL;
done:
    kith_array_release(&ids);
    return status;
}

/* [n], or [n, 1] as numpy columns are. */
static kith_status check_shape(const kith_array *array, const char *name, kith_error *err) {
    if (array->n_dims == 1 || (array->n_dims == 2 && array->dim[1] == 1)) return KITH_OK;
    return ki_fail(err, KITH_ESHAPE,
                   "%s has %d dimensions; wanted 1: a label per row, as integers, bool or text", name,
                   array->n_dims);
}

static kith_status parse_npy(kith_labels *labels, const char *bytes, size_t n, const char *name, column *c,
                             kith_array *ret_ids, kith_error *err) {
    ki_npy_header header;
    kith_array array = {0};
    KI_TRY(ki_npy_header_parse(bytes, n, n, name, &header, err));
    KI_TRY(check_shape(&header.array, name, err));
    if (ki_npy_is_text(&header)) {
        KI_TRY(ki_npy_text_each(bytes, &header, name, add_text, c, err));
        return settle(labels, c, false, name, ret_ids, err);
    }
    if (header.kind == 'f') {
        ki_fail(err, KITH_EUNSUPPORTED, "%s: the labels are %s; wanted integers, bool or text", name,
                kith_dtype_name(header.array.dtype));
        return ki_hint(err, KITH_EUNSUPPORTED, "in numpy, save labels.astype('int64')");
    }
    KI_TRY(settle_kind(labels, NUMBERS, name, err));
    KI_TRY(ki_npy_parse(bytes, n, name, &array, err));
    array.n_dims = 1;
    const kith_status status = kith_array_convert(&array, KITH_I64, ret_ids, err);
    kith_array_release(&array);
    return status;
}

kith_status ki_labels_parse(kith_labels *labels, const char *bytes, size_t n, const char *name,
                            kith_array *ret_ids, kith_error *err) {
    kith_status status = KITH_OK;
    column c = {0};
    const char *dot = strrchr(name, '.');
    if (n >= 6 && memcmp(bytes, "\x93NUMPY", 6) == 0) {
        status = parse_npy(labels, bytes, n, name, &c, ret_ids, err);
        goto done;
    }
    if (dot && strcasecmp(dot, ".npy") == 0) { /* the name says .npy: do not read it as text */
        status = ki_npy_parse(bytes, n, name, ret_ids, err);
        goto done;
    }
    if (dot && strcasecmp(dot, ".csv") == 0)
        KI_CHECK(read_csv(name, bytes, n, &c, err));
    else
        KI_CHECK(read_lines(name, bytes, n, &c, err));
    KI_CHECK(settle(labels, &c, true, name, ret_ids, err));
done:
    ki_free(c.text);
    ki_arena_release(&c.arena);
    return status;
}

kith_status kith_labels_read(kith_labels *labels, const char *path, kith_array *ret_ids, kith_error *err) {
    KI_NEED(err, path, ret_ids);
    static const size_t most_bytes = (size_t)4 << 30;
    kith_status status = KITH_OK;
    kith_labels *own = NULL;
    char *bytes = NULL;
    size_t n = 0;
    if (!labels) KI_TRY(kith_labels_new(&own, err));
    KI_CHECK(ki_file_read(path, most_bytes, &bytes, &n, err));
    KI_CHECK(ki_labels_parse(labels ? labels : own, bytes, n, path, ret_ids, err));
done:
    ki_free(bytes);
    kith_labels_free(own);
    return status;
}
