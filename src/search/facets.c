/* Facets: how many items have which value of a column. Whoever keeps the index tells the values; here they are put together. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "search/index_handle.h"

enum { MOST_VALUES = 1000000 };

typedef struct number {
    double value;
    int64_t n;
} number;

/* What was told. */
typedef struct tally {
    ki_cells texts;
    int64_t *n_of; /* [texts] */
    number *number;
    size_t n_of_capacity, n_numbers, number_capacity;
} tally;

static void tally_release(tally *t) {
    ki_cells_release(&t->texts);
    ki_free(t->n_of);
    ki_free(t->number);
}

static kith_status add_text(tally *t, const char *text, int64_t n, kith_error *err) {
    const kith_value value = ki_text_value(text);
    uint32_t code = ki_cells_find(&t->texts, text);
    if (!code) {
        KI_TRY(ki_cells_add(&t->texts, &value, err));
        code = (uint32_t)t->texts.n_texts;
        KI_TRY(ki_grow(&t->n_of, &t->n_of_capacity, code, sizeof *t->n_of, "counts", err));
        t->n_of[code - 1] = 0;
    }
    t->n_of[code - 1] += n;
    return KITH_OK;
}

static kith_status add(void *user, const kith_value *value, int64_t n, kith_error *err) {
    tally *t = user;
    if (value->type == KITH_VALUE_TEXT) return add_text(t, value->text, n, err);
    KI_TRY(ki_grow(&t->number, &t->number_capacity, t->n_numbers + 1, sizeof *t->number, "numbers", err));
    const double x = value->type == KITH_VALUE_INT ? (double)value->integer : value->real;
    t->number[t->n_numbers++] = (number){x + 0.0, n}; /* no -0 */
    return KITH_OK;
}

/* ---- texts ---- */

static int by_count(const void *a, const void *b) {
    const kith_facet_value *x = a, *y = b;
    if (x->n != y->n) return x->n > y->n ? -1 : 1;
    return strcmp(x->text, y->text);
}

static int by_text(const void *a, const void *b) {
    return strcmp(((const kith_facet_value *)a)->text, ((const kith_facet_value *)b)->text);
}

/* "2021-05-03" and anything behind it. */
static bool is_date(const char *s) {
    static const char form[] = "dddd-dd-dd";
    for (int i = 0; form[i]; i++) {
        if (form[i] == 'd' ? s[i] < '0' || s[i] > '9' : s[i] != form[i]) return false;
    }
    return true;
}

/* The same with only so many characters of each text. */
static kith_status shorten(tally *t, size_t n_chars, kith_error *err) {
    kith_status status = KITH_OK;
    tally s = {.texts = {.type = KITH_VALUE_TEXT}};
    for (int64_t i = 0; i < t->texts.n_texts; i++) {
        char text[16] = "";
        strncat(text, ki_cells_text(&t->texts, i), n_chars);
        KI_CHECK(add_text(&s, text, t->n_of[i], err));
    }
    tally_release(t);
    *t = s;
    s = (tally){0};
done:
    tally_release(&s);
    return status;
}

/* Dates by day, month or year. */
static kith_status group_dates(tally *t, int64_t most, bool *ret_are_dates, kith_error *err) {
    static const size_t chars[] = {10, 7, 4};
    *ret_are_dates = t->texts.n_texts > 0;
    for (int64_t i = 0; i < t->texts.n_texts && *ret_are_dates; i++)
        *ret_are_dates = is_date(ki_cells_text(&t->texts, i));
    if (!*ret_are_dates) return KITH_OK;
    for (int k = 0; k < 3; k++) {
        KI_TRY(shorten(t, chars[k], err));
        if (t->texts.n_texts <= most) break;
    }
    return KITH_OK;
}

/* The values and their texts are one block. */
static kith_status list_texts(tally *t, int64_t most, kith_facets *f, kith_error *err) {
    KI_TRY(group_dates(t, most, &f->are_dates, err));
    const size_t n = (size_t)t->texts.n_texts, bytes = t->texts.texts.n;
    char *block = NULL;
    KI_TRY(ki_alloc_or(&block, n * sizeof *f->values + bytes + 1, 1, "facets", err));
    f->values = (kith_facet_value *)(void *)block;
    char *texts = block + n * sizeof *f->values;
    if (bytes > 0) memcpy(texts, t->texts.texts.data, bytes);
    for (size_t i = 0; i < n; i++) {
        f->values[i] = (kith_facet_value){.text = texts + t->texts.text_begin[i], .n = t->n_of[i]};
        f->n_items += t->n_of[i];
    }
    if (n > 0) qsort(f->values, n, sizeof *f->values, f->are_dates ? by_text : by_count);
    f->n_distinct = (int64_t)n;
    f->n_values = f->n_distinct < most ? f->n_distinct : most;
    return KITH_OK;
}

/* ---- numbers ---- */

static int by_value(const void *a, const void *b) {
    const number *x = a, *y = b;
    return (x->value > y->value) - (x->value < y->value);
}

/* The smallest of 1, 2, 5, 10 … times a power of ten of which `most` reach from least to most. */
static double round_width(double least, double greatest, int64_t most) {
    static const double steps[] = {1, 2, 5};
    const double wanted =
        greatest / (double)most - least / (double)most; /* the difference may be too large */
    for (int power = (int)floor(log10(wanted)); power < 310; power++) {
        for (int k = 0; k < 3; k++) {
            const double width = steps[k] * pow(10, power);
            if (floor(greatest / width) - floor(least / width) < (double)most) return width;
        }
    }
    return INFINITY;
}

/* Sorted; several of one value become one. */
static size_t join_numbers(number *list, size_t n) {
    size_t n_kept = 0;
    if (n > 0) qsort(list, n, sizeof *list, by_value);
    for (size_t i = 0; i < n; i++) {
        if (n_kept > 0 && list[n_kept - 1].value == list[i].value)
            list[n_kept - 1].n += list[i].n;
        else
            list[n_kept++] = list[i];
    }
    return n_kept;
}

static kith_status list_numbers(tally *t, int64_t most, kith_facets *f, kith_error *err) {
    const size_t n = join_numbers(t->number, t->n_numbers);
    const number *list = t->number;
    KI_TRY(ki_alloc_or(&f->values, n, sizeof *f->values, "facets", err));
    f->n_distinct = (int64_t)n;
    if (n == 0) return KITH_OK;
    f->least = list[0].value;
    f->most = list[n - 1].value;
    const double width = f->n_distinct > most ? round_width(f->least, f->most, most) : 0;
    for (size_t i = 0; i < n; i++) {
        const double part = width > 0 ? floor(list[i].value / width) : 0;
        const double low = width > 0 ? part * width : list[i].value,
                     high = width > 0 ? (part + 1) * width : list[i].value;
        kith_facet_value *last = f->n_values > 0 ? &f->values[f->n_values - 1] : NULL;
        if (!last || width == 0 || last->low != low)
            f->values[f->n_values++] = (kith_facet_value){.low = low, .high = high};
        f->values[f->n_values - 1].n += list[i].n;
        f->n_items += list[i].n;
    }
    return KITH_OK;
}

/* ---- the whole ---- */

static kith_status find_column(const kith_index *index, const char *name, int64_t *ret_column,
                               kith_value_type *ret_type, kith_error *err) {
    const ki_manifest *m = ki_index_committed(index);
    *ret_column = KI_COLUMN_LABEL;
    *ret_type = KITH_VALUE_TEXT;
    if (strcmp(name, "label") == 0) return KITH_OK;
    for (int64_t i = 0; i < m->n_columns; i++) {
        if (strcmp(m->columns[i].name, name) != 0 || ki_index_hides(index, name)) continue;
        *ret_column = KI_COLUMN_FIRST + i;
        *ret_type = m->types[i];
        return KITH_OK;
    }
    return ki_fail(err, KITH_EINVAL, "the index has no column '%.80s'", name);
}

/* For stores that do not count: one item after the other. */
static kith_status count_items(const kith_index *index, const ki_where *where, int64_t column, tally *t,
                               int64_t *ret_n_allowed, kith_error *err) {
    kith_status status;
    int64_t *ids = NULL, n = 0;
    KI_CHECK(index->store->type->ids(index->store, where, &ids, &n, err));
    for (int64_t i = 0; i < n; i++) {
        kith_index_item item;
        KI_CHECK(kith_index_item_get(index, ids[i], &item, err));
        const kith_value value =
            column == KI_COLUMN_LABEL ? ki_text_value(item.label) : item.values[column - KI_COLUMN_FIRST];
        status = value.type == KITH_VALUE_NONE ? KITH_OK : add(t, &value, 1, err);
        kith_index_item_release(&item);
        if (status != KITH_OK) goto done;
    }
    *ret_n_allowed = n;
done:
    ki_free(ids);
    return status;
}

kith_status kith_index_facets(const kith_index *index, const char *column, const char *where, int64_t most,
                              kith_facets *ret_facets, kith_error *err) {
    KI_NEED(err, index, column, ret_facets);
    kith_status status;
    int64_t at = 0;
    ki_where *filter = NULL;
    tally t = {.texts = {.type = KITH_VALUE_TEXT}};
    kith_facets f = {.least = NAN, .most = NAN};
    if (most < 1 || most > MOST_VALUES)
        return ki_fail(err, KITH_EINVAL, "most is %lld; wanted 1 to %d", (long long)most, MOST_VALUES);
    KI_TRY(find_column(index, column, &at, &f.type, err));
    KI_CHECK(ki_index_parse(index, where, &filter, err));
    if (index->store->type->count)
        KI_CHECK(index->store->type->count(index->store, filter, at, add, &t, &f.n_allowed, err));
    else
        KI_CHECK(count_items(index, filter, at, &t, &f.n_allowed, err));
    if (f.type == KITH_VALUE_TEXT)
        KI_CHECK(list_texts(&t, most, &f, err));
    else
        KI_CHECK(list_numbers(&t, most, &f, err));
    *ret_facets = f;
    f = (kith_facets){0};
done:
    kith_facets_release(&f);
    tally_release(&t);
    ki_where_free(filter);
    return status;
}

void kith_facets_release(kith_facets *facets) {
    if (!facets) return;
    ki_free(facets->values);
    *facets = (kith_facets){0};
}
