/* GET /api/v1/names, /history and /export.csv: names and decisions about them. */
#include <string.h>

#include "base/alloc.h"
#include "collection/decisions.h"
#include "serve/routes/naming.h"
#include "serve/routes/route.h"
#include "serve/server.h"

static void put_int(kith_json *json, const char *key, int64_t value) {
    kith_json_key(json, key);
    kith_json_int(json, value);
}

static void put_real(kith_json *json, const char *key, double value) {
    kith_json_key(json, key);
    kith_json_real(json, value);
}

static void put_text(kith_json *json, const char *key, const char *value) {
    kith_json_key(json, key);
    kith_json_string(json, value);
}

void ki_naming_put(kith_json *json, const char *key, const ki_naming_state *s) {
    kith_json_key(json, key);
    kith_json_object_begin(json);
    put_int(json, "items", s->n_items);
    put_int(json, "named", s->n_named);
    put_int(json, "decided", s->n_decided);
    put_int(json, "checked", s->n_checked);
    put_int(json, "wrong", s->n_wrong);
    put_real(json, "rate", s->rate);
    put_real(json, "low", s->low);
    put_real(json, "high", s->high);
    kith_json_object_end(json);
}

/* The names, and the JSON that they are written into. False: the request has its answer. */
static bool begin(ki_request *r, kith_names *names, kith_json **json) {
    kith_error err;
    kith_status status = kith_collection_names(r->catalog->collection, names, &err);
    if (status == KITH_OK) status = kith_json_new(json, &err);
    if (status == KITH_OK) return true;
    kith_names_release(names);
    ki_answer_index_error(r, status, &err);
    return false;
}

ki_handling ki_route_names(ki_request *r) {
    kith_names names = {0};
    kith_json *json = NULL;
    if (!begin(r, &names, &json)) return KI_ANSWERED;
    const ki_naming_state state = ki_naming_state_of(&names);
    kith_json_object_begin(json);
    ki_naming_put(json, "naming", &state);
    kith_json_key(json, "names");
    kith_json_array_begin(json);
    for (int64_t i = 0; i < names.n_names; i++) {
        kith_json_object_begin(json);
        put_text(json, "name", names.names[i]);
        put_int(json, "count", names.counts[i]);
        kith_json_object_end(json);
    }
    kith_json_array_end(json);
    kith_json_object_end(json);
    kith_names_release(&names);
    return ki_answer_json(r, json);
}

/* ---- what was decided ---- */

typedef struct page_arguments {
    int64_t limit, offset;
} page_arguments;

const ki_option ki_history_arguments[] = {
    KI_OPTION_INT(page_arguments, limit, 50, 1, 1000, "decisions, at most; the last one first", ""),
    KI_OPTION_INT(page_arguments, offset, 0, 0, 100000, "decisions to leave out", ""), KI_OPTION_END};

static void put_decision(kith_json *json, const kith_name_decision *d) {
    enum { MOST_ITEMS = 100 };
    kith_json_object_begin(json);
    put_int(json, "number", d->number);
    put_int(json, "time", d->time);
    put_text(json, "who", d->who);
    put_text(json, "kind", d->by_model ? "model" : "person");
    put_text(json, "act", kith_name_act_word(d->act));
    put_text(json, "name", d->name);
    put_text(json, "from", d->from);
    put_int(json, "undoes", d->undoes);
    put_int(json, "undone_by", d->undone_by);
    put_int(json, "items", d->n_ids);
    kith_json_key(json, "ids");
    kith_json_array_begin(json);
    for (int64_t i = 0; i < d->n_ids && i < MOST_ITEMS; i++) kith_json_int(json, d->ids[i]);
    kith_json_array_end(json);
    put_text(json, "before", d->n_ids > 0 ? d->before[0] : NULL);
    put_text(json, "after", d->n_ids > 0 ? d->after[0] : NULL);
    kith_json_object_end(json);
}

ki_handling ki_route_history(ki_request *r) {
    kith_names names = {0};
    kith_json *json = NULL;
    kith_error err;
    page_arguments page;
    const kith_status status = ki_request_arguments(r, ki_history_arguments, &page, &err);
    if (status != KITH_OK) return ki_answer_error(r, status, &err);
    if (!begin(r, &names, &json)) return KI_ANSWERED;
    kith_json_object_begin(json);
    put_int(json, "n_decisions", names.n_decisions);
    kith_json_key(json, "decisions");
    kith_json_array_begin(json);
    for (int64_t i = page.offset; i < names.n_decisions && i < page.offset + page.limit; i++)
        put_decision(json, &names.decisions[i]);
    kith_json_array_end(json);
    kith_json_object_end(json);
    kith_names_release(&names);
    return ki_answer_json(r, json);
}

/* ---- the table ---- */

ki_handling ki_route_export(ki_request *r) {
    kith_error err;
    int64_t n = 0;
    ki_buffer text = {.err = &err};
    const kith_status status = ki_decisions_csv(r->catalog->index, &text, &n, &err);
    if (status != KITH_OK) {
        ki_buffer_release(&text);
        return ki_answer_index_error(r, status, &err);
    }
    return ki_answer_bytes(r, "text/csv; charset=utf-8", text.data, text.n);
}
