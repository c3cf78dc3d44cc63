/* Searching, and listing items: arguments and filters, whatever keeps the index. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "knn/rows.h"
#include "search/index_handle.h"

void ki_index_hide(kith_index *index, unsigned facts) { index->hidden = facts; }

bool ki_index_hides(const kith_index *index, const char *column) {
    static const char *const facts[KITH_N_FACTS] = {KITH_FACT_COLUMNS};
    for (int j = 0; j < KITH_N_FACTS; j++) {
        if (strcmp(facts[j], column) == 0) return index->hidden & 1u << j;
    }
    return false;
}

/* Columns that are kept back are not there: their names cannot be written in a filter. */
static kith_status list_columns(const kith_index *index, kith_column **ret_columns, kith_error *err) {
    const ki_manifest *m = ki_index_committed(index);
    KI_TRY(ki_alloc_or(ret_columns, (size_t)m->n_columns, sizeof **ret_columns, "columns", err));
    for (int64_t i = 0; i < m->n_columns; i++) {
        (*ret_columns)[i] = m->columns[i];
        if (ki_index_hides(index, m->columns[i].name)) (*ret_columns)[i].name = NULL;
    }
    return KITH_OK;
}

kith_status ki_index_parse(const kith_index *index, const char *where, ki_where **ret_filter,
                           kith_error *err) {
    kith_column *columns = NULL;
    if (!where) return KITH_OK;
    KI_TRY(list_columns(index, &columns, err));
    const kith_status status =
        ki_where_parse(where, columns, ki_index_committed(index)->n_columns, ret_filter, err);
    ki_free(columns);
    if (status != KITH_OK) return status;
    if (index->shown) ki_where_show(*ret_filter, &index->shown->kept);
    return KITH_OK;
}

static kith_status check(const kith_index *index, const kith_array *query, const kith_search_options *o,
                         kith_error *err) {
    const ki_manifest *m = ki_index_committed(index);
    if (o->k < 1 || o->offset < 0)
        return ki_fail(err, KITH_EINVAL, "k is %lld and offset %lld; wanted at least 1 and 0",
                       (long long)o->k, (long long)o->offset);
    if (o->has_limit && isnan(o->limit)) return ki_fail(err, KITH_EINVAL, "the limit is not a number");
    if (!(o->recall >= 0 && o->recall < 1))
        return ki_fail(err, KITH_EINVAL, "recall is %g; wanted 0 or more and less than 1", o->recall);
    ki_rows rows;
    KI_TRY(ki_rows_init(query, "query", &rows, err));
    if (rows.dim != m->dim)
        return ki_fail(err, KITH_ESHAPE, "query rows have %lld values; the index has %lld",
                       (long long)rows.dim, (long long)m->dim);
    return KITH_OK;
}

kith_status kith_index_search(const kith_index *index, const kith_array *query,
                              const kith_search_options *options, kith_hits *ret_hits, kith_error *err) {
    KI_NEED(err, index, query, ret_hits);
    KI_OPTIONS_TAKE(kith_search_options, o, options, err);
    KI_TRY(check(index, query, &o, err));
    kith_status status = KITH_OK;
    ki_threads_before before = {0};
    ki_where *where = NULL;
    KI_TRY(ki_threads_for(o.n_threads, &before, err));
    KI_CHECK(ki_index_parse(index, o.where, &where, err));
    KI_CHECK(index->store->type->search(index->store, query, where, &o, ret_hits, err));
done:
    ki_threads_back(before);
    ki_where_free(where);
    return status;
}

void kith_hits_release(kith_hits *hits) {
    if (!hits) return;
    ki_free(hits->begin);
    ki_free(hits->hits);
    *hits = (kith_hits){0};
}

kith_status kith_index_ids(const kith_index *index, const char *where, int64_t **ret_ids, int64_t *ret_n,
                           kith_error *err) {
    KI_NEED(err, index, ret_ids, ret_n);
    ki_where *filter = NULL;
    KI_TRY(ki_index_parse(index, where, &filter, err));
    const kith_status status = index->store->type->ids(index->store, filter, ret_ids, ret_n, err);
    ki_where_free(filter);
    return status;
}

void kith_ids_free(int64_t *ids) { ki_free(ids); }
