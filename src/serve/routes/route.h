/* Routes: which function answers which path. routes.def is the list, with one file for each row. */
#ifndef KI_SERVE_ROUTE_H
#define KI_SERVE_ROUTE_H

#include "base/option.h"
#include "serve/http/request.h"

typedef enum ki_http_method { KI_GET, KI_POST } ki_http_method;

/* Where a route runs: at once in the thread that reads the sockets, which must not wait for anything, or as work. */
typedef enum ki_route_place { KI_AT_ONCE, KI_AS_WORK } ki_route_place;

struct ki_route {
    const char *name; /* for metrics and the log */
    ki_http_method method;
    const char *path; /* '#' stands for an id */
    ki_access access;
    ki_route_place where;
    ki_request_fn run;
    /* For the description of the API; routes.def says what they are. */
    const ki_option *arguments;
    const char *answer;
    unsigned also;
    const char *summary;
};

extern const ki_route ki_routes[];
extern const int ki_n_routes;

/* The route of a path, and the id in it. NULL when there is none; *ret_allow then names the methods of that path ("GET, HEAD"), or
 * is NULL when there is no such path. */
const ki_route *ki_route_find(const char *method, const char *path, int64_t *ret_id, const char **ret_allow);

#define X(name, ...) ki_handling ki_route_##name(ki_request *request);
#include "serve/routes/routes.def"
#undef X

extern const ki_option ki_thumb_arguments[], ki_duplicates_arguments[], ki_facets_arguments[];

#endif
