/* GET /api/v1/queue: photos to be named next, with what is proposed for them. */
#include <math.h>

#include "collection/decisions.h"
#include "kith/calibration.h"
#include "serve/routes/naming.h"
#include "serve/routes/route.h"
#include "serve/search/item_json.h"
#include "serve/search/name_queue.h"
#include "serve/server.h"

typedef struct page_arguments {
    int64_t limit, offset;
} page_arguments;

const ki_option ki_queue_arguments[] = {
    KI_OPTION_INT(page_arguments, limit, 24, 1, 100, "questions, at most", ""),
    KI_OPTION_INT(page_arguments, offset, 0, 0, KI_NAME_QUEUE_PART, "questions to leave out", ""),
    KI_OPTION_END};

static kith_status put_items(kith_json *json, const ki_catalog *c, const char *key, const int64_t *ids,
                             int64_t n, kith_error *err) {
    kith_json_key(json, key);
    kith_json_array_begin(json);
    for (int64_t i = 0; i < n; i++) {
        kith_index_item item;
        KI_TRY(kith_index_item_get(c->index, ids[i], &item, err));
        kith_json_object_begin(json);
        kith_json_key(json, "id");
        kith_json_int(json, ids[i]);
        ki_item_put(json, c, &item);
        kith_json_object_end(json);
        kith_index_item_release(&item);
    }
    kith_json_array_end(json);
    return KITH_OK;
}

static kith_status put_question(kith_json *json, const ki_catalog *c, const ki_name_question *q,
                                kith_error *err) {
    const double rate = q->proposal
                            ? kith_calibration_false_match_rate(kith_index_calibration(c->index), q->score)
                            : (double)NAN;
    kith_json_object_begin(json);
    KI_TRY(put_items(json, c, "items", q->ids, q->n, err));
    kith_json_key(json, "proposal");
    kith_json_string(json, q->proposal);
    kith_json_key(json, "score");
    kith_json_real(json, q->proposal ? q->score : (double)NAN);
    kith_json_key(json, "false_match_rate");
    kith_json_real(json, rate);
    kith_json_key(json, "error_rate");
    kith_json_real(json, q->proposal ? q->error_rate : (double)NAN);
    kith_json_key(json, "error_rate_interval");
    if (!q->proposal || isnan(q->error_rate)) {
        kith_json_null(json);
    } else {
        kith_json_array_begin(json);
        kith_json_real(json, q->error_rate_low);
        kith_json_real(json, q->error_rate_high);
        kith_json_array_end(json);
    }
    KI_TRY(put_items(json, c, "evidence", q->evidence, q->n_evidence, err));
    kith_json_object_end(json);
    return KITH_OK;
}

static kith_status put_queue(kith_json *json, ki_request *r, const ki_name_queue *queue,
                             const page_arguments *page, kith_error *err) {
    kith_names names = {0};
    KI_TRY(kith_collection_names(r->catalog->collection, &names, err));
    const ki_naming_state state = ki_naming_state_of(&names);
    kith_names_release(&names);
    kith_json_object_begin(json);
    ki_naming_put(json, "naming", &state);
    kith_json_key(json, "unnamed");
    kith_json_int(json, queue->n_unnamed);
    kith_json_key(json, "generation");
    kith_json_int(json, r->catalog->info.generation);
    kith_json_key(json, "questions");
    kith_json_array_begin(json);
    for (int64_t i = page->offset; i < queue->n && i < page->offset + page->limit; i++)
        KI_TRY(put_question(json, r->catalog, &queue->questions[i], err));
    kith_json_array_end(json);
    kith_json_object_end(json);
    return KITH_OK;
}

ki_handling ki_route_queue(ki_request *r) {
    kith_error err;
    kith_json *json = NULL;
    page_arguments page;
    ki_name_queue queue = {0};
    kith_status status = ki_request_arguments(r, ki_queue_arguments, &page, &err);
    if (status != KITH_OK) return ki_answer_error(r, status, &err);
    status = ki_name_queue_find(r->catalog, r->server->options.unnamed, &queue, &err);
    if (status == KITH_OK) status = kith_json_new(&json, &err);
    if (status == KITH_OK) status = put_queue(json, r, &queue, &page, &err);
    ki_name_queue_release(&queue);
    if (status == KITH_OK) return ki_answer_json(r, json);
    kith_json_free(json);
    return ki_answer_index_error(r, status, &err);
}
