/* Looking at every item of an index once. */
#include "serve/search/facts.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "search/index_handle.h"

void ki_facts_free(ki_column_facts *facts, int64_t n) {
    for (int64_t i = 0; facts && i < n; i++) {
        for (int64_t v = 0; v < KI_MOST_CATALOG_VALUES; v++) ki_free(facts[i].value[v]);
    }
    ki_free(facts);
}

/* Where a text is in the list, or has to be put. */
static int64_t place_of(const ki_column_facts *f, const char *text, bool *ret_is_there) {
    int64_t low = 0, high = f->n_values;
    *ret_is_there = false;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        const int order = strcmp(f->value[middle], text);
        if (order == 0) {
            *ret_is_there = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static kith_status add_text(ki_column_facts *f, const char *text, kith_error *err) {
    bool is_there = false;
    if (!text || f->n_values < 0) return KITH_OK;
    const int64_t at = place_of(f, text, &is_there);
    if (is_there) return KITH_OK;
    if (f->n_values == KI_MOST_CATALOG_VALUES) {
        f->n_values = -1;
        return KITH_OK;
    }
    char *copy = ki_strdup(text);
    if (!copy) return ki_fail_memory(err, strlen(text), "a column's values");
    memmove(&f->value[at + 1], &f->value[at], (size_t)(f->n_values - at) * sizeof f->value[0]);
    f->value[at] = copy;
    f->n_values++;
    return KITH_OK;
}

static void add_number(ki_column_facts *f, double value) {
    if (!f->has_range || value < f->least) f->least = value;
    if (!f->has_range || value > f->most) f->most = value;
    f->has_range = true;
}

static kith_status add_item(const kith_index *index, int64_t id, ki_column_facts *facts, int64_t n,
                            kith_error *err) {
    kith_index_item item = {0};
    KI_TRY(kith_index_item_get(index, id, &item, err));
    kith_status status = add_text(&facts[0], item.label, err);
    for (int64_t i = 1; status == KITH_OK && i < n; i++) {
        const kith_value *v = &item.values[facts[i].column];
        if (v->type == KITH_VALUE_TEXT) status = add_text(&facts[i], v->text, err);
        if (v->type == KITH_VALUE_INT) add_number(&facts[i], (double)v->integer);
        if (v->type == KITH_VALUE_REAL) add_number(&facts[i], v->real);
    }
    kith_index_item_release(&item);
    return status;
}

kith_status ki_facts_find(const kith_index *index, ki_column_facts **ret_facts, int64_t *ret_n,
                          kith_error *err) {
    kith_status status = KITH_OK;
    kith_index_info info;
    int64_t *ids = NULL, n_ids = 0;
    ki_column_facts *facts = NULL;
    kith_index_info_get(index, &info);
    int64_t n = 1;
    KI_TRY(ki_zalloc_or(&facts, (size_t)info.n_columns + 1, sizeof *facts, "columns", err));
    facts[0] = (ki_column_facts){.name = "label", .type = KITH_VALUE_TEXT};
    for (int64_t i = 0; i < info.n_columns; i++) {
        const kith_column column = kith_index_column(index, i);
        if (ki_index_hides(index, column.name)) continue;
        facts[n++] = (ki_column_facts){.name = column.name, .type = column.type, .column = i};
    }
    if (info.n_items <= KI_MOST_FACT_ITEMS) {
        KI_CHECK(kith_index_ids(index, NULL, &ids, &n_ids, err));
        for (int64_t i = 0; i < n_ids; i++) KI_CHECK(add_item(index, ids[i], facts, n, err));
        for (int64_t i = 0; i < n; i++) facts[i].is_known = true;
    }
    *ret_facts = facts;
    *ret_n = n;
    facts = NULL;
done:
    kith_ids_free(ids);
    ki_facts_free(facts, n);
    return status;
}
