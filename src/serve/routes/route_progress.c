/* GET /api/v1/progress: how far the indexing of photos is that are served without an index of the user's. */
#include <math.h>

#include "serve/routes/route.h"
#include "serve/server.h"

static void put_count(kith_json *json, const char *key, int64_t value) {
    kith_json_key(json, key);
    if (value < 0)
        kith_json_null(json);
    else
        kith_json_int(json, value);
}

ki_handling ki_route_progress(ki_request *r) {
    kith_json *json = NULL;
    kith_error err;
    ki_indexer *indexer = ki_server_indexer(r->server);
    /* An index does not change by itself: nothing is on its way. */
    ki_indexing now = {.state = KI_INDEXING_RESTS, .n_photos = r->catalog->info.n_items};
    const kith_status status = kith_json_new(&json, &err);
    if (status != KITH_OK) return ki_answer_error(r, status, &err);
    now.n_done = now.n_photos;
    if (indexer) now = ki_indexer_get(indexer);
    kith_json_object_begin(json);
    kith_json_key(json, "state");
    kith_json_string(json, ki_indexing_state_name(now.state));
    put_count(json, "photos", now.n_photos);
    put_count(json, "done", now.n_done);
    put_count(json, "ready", r->catalog->info.n_items);
    put_count(json, "unreadable", now.n_bad);
    put_count(json, "generation", r->catalog->info.generation);
    kith_json_key(json, "rate");
    kith_json_real(json, indexer ? now.rate : (double)NAN);
    kith_json_key(json, "seconds_left");
    kith_json_real(json, indexer ? now.seconds_left : (double)NAN);
    kith_json_key(json, "problem");
    kith_json_string(json, now.problem);
    kith_json_object_end(json);
    return ki_answer_json(r, json);
}
