/* GET /api/v1/duplicates: groups of the same picture. */
#include "serve/routes/route.h"
#include "serve/search/groups.h"
#include "serve/search/item_json.h"
#include "serve/server.h"

typedef struct page_arguments {
    int64_t limit, offset;
} page_arguments;

const ki_option ki_duplicates_arguments[] = {
    KI_OPTION_INT(page_arguments, limit, 100, 1, 1000, "groups, at most", ""),
    KI_OPTION_INT(page_arguments, offset, 0, 0, 100000000, "groups to leave out", ""), KI_OPTION_END};

static void put_picture(kith_json *json, const ki_catalog *c, const kith_duplicate *picture) {
    kith_index_item item = {0};
    if (kith_index_item_get(c->index, picture->id, &item, NULL) != KITH_OK) return;
    kith_json_object_begin(json);
    kith_json_key(json, "id");
    kith_json_int(json, picture->id);
    ki_item_put(json, c, &item);
    kith_json_key(json, "likeness");
    kith_json_real(json, picture->likeness);
    kith_json_key(json, "is_mirrored");
    kith_json_bool(json, picture->is_mirrored);
    kith_json_object_end(json);
    kith_index_item_release(&item);
}

static void put_group(kith_json *json, const ki_catalog *c, const kith_duplicates *d, int64_t group) {
    bool is_same = true;
    for (int64_t i = d->begin[group]; i < d->begin[group + 1]; i++) is_same &= d->pictures[i].is_same_file;
    kith_json_object_begin(json);
    kith_json_key(json, "kind");
    kith_json_string(json, is_same ? "same" : "near");
    kith_json_key(json, "items");
    kith_json_array_begin(json);
    for (int64_t i = d->begin[group]; i < d->begin[group + 1]; i++) put_picture(json, c, &d->pictures[i]);
    kith_json_array_end(json);
    kith_json_object_end(json);
}

static ki_handling answer(ki_request *r, const kith_duplicates *d) {
    kith_json *json = NULL;
    kith_error err;
    page_arguments page;
    kith_status status = ki_request_arguments(r, ki_duplicates_arguments, &page, &err);
    if (status == KITH_OK) status = kith_json_new(&json, &err);
    if (status != KITH_OK) return ki_answer_error(r, status, &err);
    kith_json_object_begin(json);
    kith_json_key(json, "n_groups");
    kith_json_int(json, d->n_groups);
    kith_json_key(json, "n_unread");
    kith_json_int(json, d->n_unread);
    kith_json_key(json, "groups");
    kith_json_array_begin(json);
    for (int64_t i = page.offset; i < d->n_groups && i < page.offset + page.limit; i++)
        put_group(json, r->catalog, d, i);
    kith_json_array_end(json);
    kith_json_object_end(json);
    return ki_answer_json(r, json);
}

ki_handling ki_route_duplicates(ki_request *r) {
    r->then = ki_route_duplicates;
    ki_duplicate_groups *groups = ki_finder_ask(r->server->finder, r);
    if (!groups) return KI_HANDED_ON;
    const ki_handling done = groups->status == KITH_OK
                                 ? answer(r, &groups->found)
                                 : ki_answer_index_error(r, groups->status, &groups->err);
    ki_finder_give_back(r->server->finder, groups);
    return done;
}
