/* GET /api/v1/facets: how many items have which value of a column. */
#include "kith/experimental/found.h"
#include "serve/routes/route.h"
#include "serve/search/catalog.h"

typedef struct facets_arguments {
    const char *column, *where;
    int64_t most;
} facets_arguments;

const ki_option ki_facets_arguments[] = {
    KI_OPTION_TEXT(facets_arguments, column, NULL, "label, or one of the columns of /api/v1/info", ""),
    KI_OPTION_TEXT(facets_arguments, where, NULL, "only items that this holds for", ""),
    KI_OPTION_INT(facets_arguments, most, 20, 1, 1000, "values or ranges, at most", ""), KI_OPTION_END};

ki_handling ki_route_facets(ki_request *r) {
    kith_error err;
    facets_arguments given;
    kith_facets facets = {0};
    kith_json *json = NULL;
    kith_status status = ki_request_arguments(r, ki_facets_arguments, &given, &err);
    if (status == KITH_OK && !given.column) status = ki_fail(&err, KITH_EINVAL, "wanted ?column=NAME");
    if (status != KITH_OK) return ki_answer_error(r, status, &err);
    const char *where = given.where && *given.where ? given.where : NULL;
    status = kith_index_facets(r->catalog->index, given.column, where, given.most, &facets, &err);
    if (status == KITH_OK) status = kith_json_new(&json, &err);
    if (status != KITH_OK) {
        kith_facets_release(&facets);
        return ki_answer_index_error(r, status, &err);
    }
    kith_json_object_begin(json);
    kith_facets_write(given.column, &facets, json);
    kith_json_object_end(json);
    kith_facets_release(&facets);
    return ki_answer_json(r, json);
}
