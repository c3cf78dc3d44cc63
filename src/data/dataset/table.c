/* Reading comma-separated tables. */
#include "data/dataset/table.h"

#include <string.h>

#include "base/alloc.h"

ki_table ki_table_of(const char *name, const char *text, size_t n) {
    return (ki_table){.lines = ki_lines_of(name, text, n)};
}

void ki_table_release(ki_table *table) { ki_arena_release(&table->arena); }

static bool is_end(const ki_table *t) { return t->lines.at >= t->lines.end; }

/* A quoted field may contain commas, line ends and doubled quotes; each pair is copied as one quote. */
static kith_status take_quoted(ki_table *t, ki_text *ret, kith_error *err) {
    const char *begin = ++t->lines.at, *end = t->lines.end, *p = begin;
    const int64_t number = t->lines.number;
    size_t n_doubled = 0;
    for (;; p++) {
        if (p >= end) {
            t->lines.number = number; /* the error names the line where the row begins */
            return ki_lines_fail(&t->lines, t->line, "a closing quote before the end of the file", err);
        }
        if (*p == '\n') t->lines.number++;
        if (*p != '"') continue;
        if (p + 1 < end && p[1] == '"')
            n_doubled++, p++;
        else
            break;
    }
    const size_t n = (size_t)(p - begin);
    *ret = (ki_text){begin, n};
    t->lines.at = p + 1;
    if (n_doubled == 0) return KITH_OK;
    char *copy = ki_arena_alloc(&t->arena, n, 1);
    if (!copy) return ki_fail_memory(err, n, "a table field");
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        copy[kept++] = begin[i];
        if (begin[i] == '"') i++;
    }
    *ret = (ki_text){copy, kept};
    return KITH_OK;
}

static ki_text take_plain(ki_table *t) {
    const char *begin = t->lines.at;
    while (!is_end(t) && *t->lines.at != ',' && *t->lines.at != '\n') t->lines.at++;
    ki_text text = {begin, (size_t)(t->lines.at - begin)}, trimmed = {begin, 0};
    ki_text_rest(&text, &trimmed);
    return trimmed;
}

static void skip_blanks(ki_table *t) {
    while (!is_end(t) && (*t->lines.at == ' ' || *t->lines.at == '\t' || *t->lines.at == '\r')) t->lines.at++;
}

static kith_status take_row(ki_table *t, kith_error *err) {
    t->n_fields = 0;
    t->lines.number++;
    const char *stop = memchr(t->lines.at, '\n', (size_t)(t->lines.end - t->lines.at));
    t->line = (ki_text){t->lines.at, (size_t)((stop ? stop : t->lines.end) - t->lines.at)};
    for (;;) {
        if (t->n_fields == KI_TABLE_MOST_FIELDS)
            return ki_lines_fail(&t->lines, t->line, "at most 64 fields", err);
        skip_blanks(t);
        ki_text field = {t->lines.at, 0};
        if (!is_end(t) && *t->lines.at == '"') {
            KI_TRY(take_quoted(t, &field, err));
            skip_blanks(t);
            if (!is_end(t) && *t->lines.at != ',' && *t->lines.at != '\n')
                return ki_lines_fail(&t->lines, t->line, "a comma or the line's end after a closing quote",
                                     err);
        } else {
            field = take_plain(t);
        }
        t->field[t->n_fields++] = field;
        if (is_end(t)) return KITH_OK;
        if (*t->lines.at++ == '\n') return KITH_OK;
    }
}

kith_status ki_table_next(ki_table *t, bool *ret_more, kith_error *err) {
    do {
        if (is_end(t)) return *ret_more = false, KITH_OK;
        KI_TRY(take_row(t, err));
    } while (t->n_fields == 1 && t->field[0].n == 0);
    *ret_more = true;
    return KITH_OK;
}

int ki_table_column(const ki_table *t, const char *name) {
    for (size_t i = 0; i < t->n_fields; i++) {
        if (ki_text_is(t->field[i], name)) return (int)i;
    }
    return -1;
}

ki_text ki_table_field(const ki_table *t, int column) {
    return column >= 0 && (size_t)column < t->n_fields ? t->field[column] : (ki_text){"", 0};
}

void ki_table_put(ki_buffer *text, const char *field) {
    ki_buffer_add(text, "\"", 1);
    for (const char *quote; (quote = strchr(field, '"')); field = quote + 1) {
        ki_buffer_add(text, field, (size_t)(quote - field));
        ki_buffer_add(text, "\"\"", 2);
    }
    ki_buffer_add(text, field, strlen(field));
    ki_buffer_add(text, "\"", 1);
}
