/* GET /api/v1/items/ID: what is known of an item. */
#include "serve/routes/route.h"
#include "serve/search/item_json.h"

ki_handling ki_route_item(ki_request *r) {
    kith_index_item item = {0};
    kith_json *json = NULL;
    kith_error err;
    kith_status status = kith_index_item_get(r->catalog->index, r->id, &item, &err);
    if (status == KITH_ENOTFOUND)
        return ki_answer_problem(r, 404, NULL, "there is no item %lld", (long long)r->id);
    if (status == KITH_OK) status = kith_json_new(&json, &err);
    if (status != KITH_OK) {
        kith_index_item_release(&item);
        return ki_answer_index_error(r, status, &err);
    }
    kith_json_object_begin(json);
    kith_json_key(json, "id");
    kith_json_int(json, item.id);
    ki_item_put(json, r->catalog, &item);
    kith_json_key(json, "bytes");
    kith_json_int(json, item.bytes);
    kith_json_key(json, "mtime");
    const int64_t milliseconds = item.mtime_ns / 1000000;
    kith_json_real(json, item.mtime_ns < 0 ? -1 : (double)milliseconds / 1000);
    kith_json_object_end(json);
    kith_index_item_release(&item);
    return ki_answer_json(r, json);
}
