/* Reading a segment. The directory is checked when it is opened; texts when they are read. */
#include "search/files/segment.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "search/files/segment_layout.h"

static kith_status fail_format(const ki_segment *s, const char *what, kith_error *err) {
    ki_fail(err, KITH_EFORMAT, "%s is not a segment of an index: %s", s->blocks.path, what);
    return ki_hint(err, KITH_EFORMAT, "copy the index back from a backup, or make it again");
}

/* Bytes of a column's part before the texts. */
static int64_t fixed_bytes(kith_value_type type, int64_t n, int64_t n_texts) {
    return type == KITH_VALUE_TEXT ? (n * 4 + 7) / 8 * 8 + (n_texts + 1) * 8 : n * 8;
}

static kith_status check_entry(const ki_segment *s, int64_t i, int64_t begin, int64_t end, kith_error *err) {
    const ki_segment_entry *e = &s->entries[i];
    /* Below 2^57 each, so that sums fit. */
    const bool is_sane = e->n_texts >= 0 && e->n_texts <= s->n && e->text_bytes >= 0 &&
                         e->text_bytes <= end && e->offset >= begin && e->offset <= end;
    const kith_value_type type = ki_column_type(e->column, s->types);
    if (!is_sane || fixed_bytes(type, s->n, e->n_texts) + e->text_bytes > end - e->offset)
        return fail_format(s, "a column reaches beyond its end", err);
    if (type != KITH_VALUE_TEXT && (e->n_texts || e->text_bytes))
        return fail_format(s, "a column of numbers has texts", err);
    return KITH_OK;
}

static kith_status read_directory(ki_segment *s, int64_t n_types, kith_error *err) {
    ki_segment_trailer t;
    const int64_t at = s->blocks.bytes - (int64_t)sizeof t;
    if (at < 0) return fail_format(s, "it is too short", err);
    KI_TRY(ki_blocks_read(&s->blocks, at, sizeof t, &t, err));
    if (memcmp(t.mark, KI_SEGMENT_MARK, sizeof t.mark) != 0)
        return fail_format(s, "the mark is missing", err);
    if (t.dim != s->dim || t.n < 0 || t.n > KI_MOST_ROWS) return fail_format(s, "its shape is another", err);
    s->n = t.n;
    const int64_t vector_bytes = t.n * t.dim * (int64_t)sizeof(float);
    if (t.n_entries < KI_COLUMN_FIRST || t.n_entries > KI_COLUMN_FIRST + n_types)
        return fail_format(s, "it has columns that the index does not have", err);
    const int64_t entry_bytes = t.n_entries * (int64_t)sizeof *s->entries;
    if (t.directory < vector_bytes || t.directory > at || at - t.directory != entry_bytes)
        return fail_format(s, "its directory is elsewhere", err);
    KI_TRY(ki_alloc_or(&s->entries, (size_t)t.n_entries, sizeof *s->entries, "columns", err));
    s->n_entries = t.n_entries;
    KI_TRY(ki_blocks_read(&s->blocks, t.directory, (size_t)entry_bytes, s->entries, err));
    for (int64_t i = 0; i < s->n_entries; i++) {
        /* Columns are only ever added behind the others, so that an entry's place is its number. */
        if (s->entries[i].column != i) return fail_format(s, "its columns are out of order", err);
        KI_TRY(check_entry(s, i, vector_bytes, t.directory, err));
    }
    return KITH_OK;
}

kith_status ki_segment_open(ki_segment *s, const char *path, ki_blocks_seal seal, int64_t dim,
                            const kith_value_type *types, int64_t n_types, kith_error *err) {
    *s = (ki_segment){.dim = dim, .types = types};
    KI_TRY(ki_blocks_open(&s->blocks, path, seal, err));
    const kith_status status = read_directory(s, n_types, err);
    if (status != KITH_OK) ki_segment_close(s);
    return status;
}

void ki_segment_close(ki_segment *s) {
    ki_free(s->entries);
    ki_blocks_close(&s->blocks);
    *s = (ki_segment){0};
}

kith_status ki_segment_rows(const ki_segment *s, int64_t first, int64_t n, bool keep, float *dst,
                            kith_error *err) {
    const int64_t row_bytes = s->dim * (int64_t)sizeof(float);
    return (keep ? ki_blocks_read_kept : ki_blocks_read)(&s->blocks, first * row_bytes,
                                                         (size_t)(n * row_bytes), dst, err);
}

const float *ki_segment_kept_row(const ki_segment *s, int64_t row) {
    const int64_t row_bytes = s->dim * (int64_t)sizeof(float);
    return (const float *)(const void *)ki_blocks_kept_at(&s->blocks, row * row_bytes, (size_t)row_bytes);
}

/* Where the parts of a column of text are. */
static int64_t begins_at(const ki_segment *s, const ki_segment_entry *e) {
    return e->offset + (s->n * 4 + 7) / 8 * 8;
}
static int64_t texts_at(const ki_segment *s, const ki_segment_entry *e) {
    return begins_at(s, e) + (e->n_texts + 1) * 8;
}

static kith_status read_texts(const ki_segment *s, const ki_segment_entry *e, ki_cells *c, kith_error *err) {
    const size_t n = (size_t)s->n, n_texts = (size_t)e->n_texts;
    KI_TRY(ki_alloc_or(&c->code, n, sizeof *c->code, "codes of texts", err));
    KI_TRY(ki_blocks_read(&s->blocks, e->offset, n * sizeof *c->code, c->code, err));
    KI_TRY(ki_alloc_or(&c->text_begin, n_texts + 1, sizeof *c->text_begin, "texts", err));
    KI_TRY(ki_blocks_read(&s->blocks, begins_at(s, e), (n_texts + 1) * sizeof *c->text_begin, c->text_begin,
                          err));
    KI_TRY(ki_alloc_or(&c->texts.data, (size_t)e->text_bytes + 1, 1, "texts", err));
    c->texts.n = (size_t)e->text_bytes;
    KI_TRY(ki_blocks_read(&s->blocks, texts_at(s, e), c->texts.n, c->texts.data, err));
    c->n_texts = e->n_texts;
    bool is_good = c->text_begin[0] == 0 && c->text_begin[n_texts] == e->text_bytes;
    for (size_t i = 0; i < n_texts && is_good; i++)
        is_good = c->text_begin[i] >= 0 && c->text_begin[i] < c->text_begin[i + 1] &&
                  c->text_begin[i + 1] <= e->text_bytes && !c->texts.data[c->text_begin[i + 1] - 1];
    if (!is_good) return fail_format(s, "a text does not end", err);
    for (size_t i = 0; i < n; i++) {
        if (c->code[i] > n_texts) return fail_format(s, "a row has a text that is not there", err);
    }
    return KITH_OK;
}

/* Rows from before the column. */
static kith_status no_values(const ki_segment *s, ki_cells *c, kith_error *err) {
    const kith_value none = {0};
    for (int64_t i = 0; i < s->n; i++) KI_TRY(ki_cells_add(c, &none, err));
    return KITH_OK;
}

kith_status ki_segment_column(const ki_segment *s, int64_t column, ki_cells *ret_cells, kith_error *err) {
    return ki_segment_column_of(s, column, ki_column_type(column, s->types), ret_cells, err);
}

kith_status ki_segment_column_of(const ki_segment *s, int64_t column, kith_value_type type,
                                 ki_cells *ret_cells, kith_error *err) {
    kith_status status = KITH_OK;
    ki_cells c = {.type = type};
    const size_t n = (size_t)s->n;
    if (column >= s->n_entries) {
        KI_CHECK(no_values(s, &c, err));
    } else if (c.type == KITH_VALUE_TEXT) {
        KI_CHECK(read_texts(s, &s->entries[column], &c, err));
    } else {
        void *values = NULL;
        KI_CHECK(ki_alloc_or(&values, n, sizeof(int64_t), "values", err));
        if (c.type == KITH_VALUE_INT)
            c.integer = values;
        else
            c.real = values;
        KI_CHECK(ki_blocks_read(&s->blocks, s->entries[column].offset, n * sizeof(int64_t), values, err));
    }
    c.n = s->n;
    *ret_cells = c;
    return KITH_OK;
done:
    ki_cells_release(&c);
    return status;
}

static kith_status read_text(const ki_segment *s, const ki_segment_entry *e, uint32_t code, kith_value *value,
                             kith_error *err) {
    int64_t span[2];
    if (code > e->n_texts) return fail_format(s, "a row has a text that is not there", err);
    KI_TRY(ki_blocks_read(&s->blocks, begins_at(s, e) + ((int64_t)code - 1) * 8, sizeof span, span, err));
    if (span[0] < 0 || span[0] >= span[1] || span[1] > e->text_bytes)
        return fail_format(s, "a text does not end", err);
    const size_t n = (size_t)(span[1] - span[0]);
    char *text = NULL;
    KI_TRY(ki_alloc_or(&text, n, 1, "a text", err));
    kith_status status = ki_blocks_read(&s->blocks, texts_at(s, e) + span[0], n, text, err);
    if (status == KITH_OK && text[n - 1] != '\0') status = fail_format(s, "a text does not end", err);
    if (status != KITH_OK) {
        ki_free(text);
        return status;
    }
    *value = (kith_value){.type = KITH_VALUE_TEXT, .text = text};
    return KITH_OK;
}

kith_status ki_segment_cell(const ki_segment *s, int64_t column, int64_t row, kith_value *ret_value,
                            kith_error *err) {
    kith_value value = {0};
    if (column < s->n_entries) {
        const ki_segment_entry *e = &s->entries[column];
        const kith_value_type type = ki_column_type(column, s->types);
        uint32_t code = 0;
        if (type == KITH_VALUE_TEXT) {
            KI_TRY(ki_blocks_read(&s->blocks, e->offset + row * 4, sizeof code, &code, err));
            if (code > 0) KI_TRY(read_text(s, e, code, &value, err));
        } else if (type == KITH_VALUE_INT) {
            KI_TRY(
                ki_blocks_read(&s->blocks, e->offset + row * 8, sizeof value.integer, &value.integer, err));
            if (value.integer != KI_NO_INTEGER) value.type = KITH_VALUE_INT;
        } else {
            KI_TRY(ki_blocks_read(&s->blocks, e->offset + row * 8, sizeof value.real, &value.real, err));
            if (!isnan(value.real)) value.type = KITH_VALUE_REAL;
        }
    }
    *ret_value = value;
    return KITH_OK;
}
