/* Other values and labels of items that are there: as a JSON list, many in one statement. */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "io/json.h"
#include "search/postgres/tables.h"

enum { STEP = 4096 }; /* items in a statement */

/* Of an id that is there twice the last counts. */
#define GIVEN                                                                                         \
    "with given as (select distinct on ((e->>'id')::bigint) (e->>'id')::bigint as id, e->'v' as v, "  \
    "e->>'label' as label from jsonb_array_elements($1::jsonb) with ordinality as u(e, at) order by " \
    "(e->>'id')::bigint, at desc) "

static const char set_values[] = GIVEN
    "update items i set attributes = jsonb_strip_nulls(i.attributes || g.v) from given g where i.id = g.id";
static const char set_labels[] = GIVEN "update items i set label = g.label from given g where i.id = g.id";

static const char *name_of(const ki_manifest *m, int64_t column) {
    return column == KI_COLUMN_LABEL ? "label" : m->columns[column - KI_COLUMN_FIRST].name;
}

static kith_status check_texts(const ki_manifest *m, const ki_new_values *v, kith_error *err) {
    for (int64_t i = 0; i < v->n * v->n_columns; i++) {
        if (v->values[i].type != KITH_VALUE_TEXT || ki_is_utf8(v->values[i].text)) continue;
        return ki_fail(err, KITH_EINVAL,
                       "item %lld: its %s is not text in UTF-8, and PostgreSQL keeps no other",
                       (long long)v->ids[i / v->n_columns], name_of(m, v->columns[i % v->n_columns]));
    }
    return KITH_OK;
}

static void put_value(kith_json *json, const kith_value *value) {
    switch (value->type) {
    case KITH_VALUE_INT: kith_json_int(json, value->integer); break;
    case KITH_VALUE_REAL: kith_json_real(json, value->real); break;
    case KITH_VALUE_TEXT: kith_json_string(json, value->text); break;
    default: kith_json_null(json);
    }
}

/* {"id": 7, "label": "tern", "v": {"year": 2020, "place": null}} */
static void put_item(kith_json *json, const ki_manifest *m, const ki_new_values *v, int64_t i) {
    const kith_value *values = v->values + i * v->n_columns;
    kith_json_object_begin(json);
    kith_json_key(json, "id");
    kith_json_int(json, v->ids[i]);
    for (int64_t j = 0; j < v->n_columns; j++) {
        if (v->columns[j] != KI_COLUMN_LABEL) continue;
        kith_json_key(json, "label");
        put_value(json, &values[j]);
    }
    kith_json_key(json, "v");
    kith_json_object_begin(json);
    for (int64_t j = 0; j < v->n_columns; j++) {
        if (v->columns[j] == KI_COLUMN_LABEL) continue;
        kith_json_key(json, name_of(m, v->columns[j]));
        put_value(json, &values[j]);
    }
    kith_json_object_end(json);
    kith_json_object_end(json);
}

static kith_status set_step(ki_link *l, const ki_manifest *m, const ki_new_values *v, int64_t first,
                            kith_json *json, kith_error *err) {
    ki_pg_values values = {0};
    const char *text = NULL;
    bool has_label = false;
    kith_json_reset(json);
    kith_json_array_begin(json);
    for (int64_t i = first; i < v->n && i < first + STEP; i++) put_item(json, m, v, i);
    kith_json_array_end(json);
    KI_TRY(kith_json_finish(json, &text, err));
    for (int64_t j = 0; j < v->n_columns; j++) has_label |= v->columns[j] == KI_COLUMN_LABEL;
    ki_pg_text(&values, text);
    kith_status status = KITH_OK;
    if (has_label) status = ki_pg_run(l, set_labels, &values, false, NULL, err);
    if (status == KITH_OK && v->n_columns > has_label)
        status = ki_pg_run(l, set_values, &values, false, NULL, err);
    ki_pg_values_release(&values);
    return status;
}

kith_status ki_pg_set(ki_link *l, const ki_manifest *m, const ki_new_values *v, int64_t *ret_missing,
                      kith_error *err) {
    kith_status status = KITH_OK;
    kith_json *json = NULL;
    KI_TRY(check_texts(m, v, err));
    KI_TRY(ki_pg_change(l, err));
    KI_TRY(ki_pg_missing(l, v->ids, v->n, ret_missing, err));
    KI_TRY(kith_json_new(&json, err));
    for (int64_t i = 0; i < v->n && status == KITH_OK; i += STEP) status = set_step(l, m, v, i, json, err);
    kith_json_free(json);
    return status;
}
