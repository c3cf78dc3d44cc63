/* A CSV file of items with typed columns.
 *
 * All fields are taken in as text first: a column's type is known only when its last value has been seen. */
#include "search/items.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/argument.h"
#include "base/text.h"
#include "data/dataset/table.h"
#include "io/file.h"

struct kith_items {
    ki_arena arena; /* strings */
    kith_index_item *item;
    size_t n, capacity;
    kith_value *value; /* [n, n_columns] */
    size_t value_capacity;
    kith_column column[KI_TABLE_MOST_FIELDS];
    size_t n_columns;
};

/* Which field of a row is what: -1 for none. */
typedef struct fields {
    int path, label;
    int column[KI_TABLE_MOST_FIELDS]; /* of the items' columns */
    size_t n;                         /* fields of the header */
} fields;

static kith_status copy(kith_items *items, ki_text text, const char **ret, kith_error *err) {
    *ret = NULL;
    if (text.n == 0) return KITH_OK;
    *ret = ki_arena_strndup(&items->arena, text.s, text.n);
    return *ret ? KITH_OK : ki_fail_memory(err, text.n, "a field of the table");
}

static bool is_there_before(const ki_table *t, size_t field) {
    for (size_t i = 0; i < field; i++) {
        if (t->field[i].n == t->field[field].n &&
            memcmp(t->field[i].s, t->field[field].s, t->field[i].n) == 0)
            return true;
    }
    return false;
}

static kith_status read_header(kith_items *items, ki_table *t, fields *ret, kith_error *err) {
    bool more = false;
    KI_TRY(ki_table_next(t, &more, err));
    if (!more) return ki_fail(err, KITH_EFORMAT, "the table is empty; wanted a header line");
    *ret =
        (fields){.path = ki_table_column(t, "path"), .label = ki_table_column(t, "label"), .n = t->n_fields};
    for (size_t i = 0; i < t->n_fields; i++) {
        if (t->field[i].n > 0 && is_there_before(t, i))
            return ki_lines_fail(&t->lines, t->line, "another name for every column", err);
        if ((int)i == ret->path || (int)i == ret->label) continue;
        if (t->field[i].n == 0) return ki_lines_fail(&t->lines, t->line, "a name for every column", err);
        ret->column[items->n_columns] = (int)i;
        KI_TRY(copy(items, t->field[i], &items->column[items->n_columns++].name, err));
    }
    return KITH_OK;
}

static kith_status read_row(kith_items *items, const ki_table *t, const fields *at, kith_error *err) {
    if (t->n_fields > at->n)
        return ki_lines_fail(&t->lines, t->line, "no more fields than the header has", err);
    const size_t n_values = (items->n + 1) * items->n_columns;
    KI_TRY(ki_grow(&items->item, &items->capacity, items->n + 1, sizeof *items->item, "items", err));
    KI_TRY(ki_grow(&items->value, &items->value_capacity, n_values, sizeof *items->value, "values", err));
    kith_index_item *item = &items->item[items->n];
    *item = (kith_index_item){.id = -1, .bytes = -1, .mtime_ns = -1};
    KI_TRY(copy(items, ki_table_field(t, at->path), &item->path, err));
    KI_TRY(copy(items, ki_table_field(t, at->label), &item->label, err));
    for (size_t c = 0; c < items->n_columns; c++) {
        kith_value *value = &items->value[items->n * items->n_columns + c];
        *value = (kith_value){.type = KITH_VALUE_NONE};
        KI_TRY(copy(items, ki_table_field(t, at->column[c]), &value->text, err));
    }
    items->n++;
    return KITH_OK;
}

/* 007 is a name: as a number it would lose its zeros. */
static bool is_real(const char *text, double *ret) {
    if (text[0] == '0' && text[1] >= '0' && text[1] <= '9') return false;
    return ki_parse_double(text, ret) && isfinite(*ret);
}

/* The narrowest type that holds all values of a column. */
static kith_value_type type_of(const kith_items *items, size_t c) {
    kith_value_type type = KITH_VALUE_NONE;
    for (size_t i = 0; i < items->n && type != KITH_VALUE_TEXT; i++) {
        const char *text = items->value[i * items->n_columns + c].text;
        int64_t whole = 0;
        double real = 0;
        if (!text) continue;
        if (!is_real(text, &real))
            type = KITH_VALUE_TEXT;
        else if (!ki_parse_int64(text, &whole))
            type = KITH_VALUE_REAL;
        else if (type == KITH_VALUE_NONE)
            type = KITH_VALUE_INT;
    }
    return type == KITH_VALUE_NONE ? KITH_VALUE_TEXT : type;
}

static void settle(kith_items *items) {
    for (size_t c = 0; c < items->n_columns; c++) {
        const kith_value_type type = items->column[c].type = type_of(items, c);
        for (size_t i = 0; i < items->n; i++) {
            kith_value *value = &items->value[i * items->n_columns + c];
            if (!value->text) continue;
            value->type = type;
            if (type == KITH_VALUE_INT) ki_parse_int64(value->text, &value->integer);
            if (type == KITH_VALUE_REAL) is_real(value->text, &value->real);
        }
    }
    for (size_t i = 0; i < items->n && items->n_columns > 0; i++)
        items->item[i].values = &items->value[i * items->n_columns];
}

kith_status ki_items_parse(const char *name, const char *text, size_t n, kith_items **ret_items,
                           kith_error *err) {
    kith_status status;
    ki_table t = ki_table_of(name, text, n);
    fields at = {0};
    bool more = false;
    kith_items *items = NULL;
    KI_CHECK(ki_zalloc_or(&items, 1, sizeof *items, "items", err));
    KI_CHECK(read_header(items, &t, &at, err));
    for (;;) {
        KI_CHECK(ki_table_next(&t, &more, err));
        if (!more) break;
        KI_CHECK(read_row(items, &t, &at, err));
    }
    settle(items);
    *ret_items = items;
    items = NULL;
done:
    kith_items_free(items);
    ki_table_release(&t);
    return status;
}

kith_status kith_items_read(const char *path, kith_items **ret_items, kith_error *err) {
    KI_NEED(err, path, ret_items);
    static const size_t most_bytes = (size_t)4 << 30;
    char *text = NULL;
    size_t n = 0;
    KI_TRY(ki_file_read(path, most_bytes, &text, &n, err));
    const kith_status status = memchr(text, '\0', n)
                                   ? ki_fail(err, KITH_EFORMAT, "%s holds NUL characters; wanted text", path)
                                   : ki_items_parse(path, text, n, ret_items, err);
    ki_free(text);
    return status;
}

void kith_items_free(kith_items *items) {
    if (!items) return;
    ki_arena_release(&items->arena);
    ki_free(items->item);
    ki_free(items->value);
    ki_free(items);
}

int64_t kith_items_count(const kith_items *items) { return items ? (int64_t)items->n : 0; }
const kith_index_item *kith_items_list(const kith_items *items) { return items ? items->item : NULL; }
int64_t kith_items_n_columns(const kith_items *items) { return items ? (int64_t)items->n_columns : 0; }
const kith_column *kith_items_columns(const kith_items *items) { return items ? items->column : NULL; }
