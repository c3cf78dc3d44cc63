/* GET /openapi.json: the description of the API, made of what the server itself reads: the rows of routes.def, the options of queries
 * and of arguments. What answers hold is in answers.c. */
#include <ctype.h>
#include <string.h>

#include "base/text.h"
#include "serve/routes/answers.h"
#include "serve/routes/naming.h"
#include "serve/routes/route.h"
#include "serve/search/query.h"

static const struct {
    unsigned status;
    const char *what;
} failures[] = {
    {304, "As before (If-None-Match)"},
    {400, "The request or the image cannot be read"},
    {401, "A token is missing or wrong"},
    {403, "Host, Origin or token do not allow this"},
    {404, "No such item, or no picture of it"},
    {409, "An item has another name now"},
    {413, "Too many bytes or pixels"},
    {415, "Not an image, or not a body, that is read"},
    {429, "Too many requests of this address; see Retry-After"},
    {500, "A fault of the server's machine; its log says why"},
    {501, "Vectors of this index cannot be explained"},
    {503, "Too much to do, or the decoder of the image failed; see Retry-After"},
};
enum { N_FAILURES = sizeof failures / sizeof failures[0] };

static void begin(kith_json *json, const char *key) {
    kith_json_key(json, key);
    kith_json_object_begin(json);
}

static void end(kith_json *json) { kith_json_object_end(json); }

static void put(kith_json *json, const char *key, const char *value) {
    kith_json_key(json, key);
    kith_json_string(json, value);
}

/* ---- what a route may answer ---- */

static bool takes_pictures(const ki_route *r) {
    return r->method == KI_POST || strncmp(r->answer, "image/", 6) == 0;
}

static bool may_fail_with(const ki_route *r, unsigned status) {
    switch (status) {
    case 304: return strncmp(r->answer, "image/", 6) == 0 || strcmp(r->answer, "text/html") == 0;
    case 400: return takes_pictures(r) || r->arguments;
    case 401: return r->access != KI_ACCESS_OPEN;
    case 403:
    case 429: return true;
    case 404: return r->method == KI_POST || strchr(r->path, '#');
    case 413:
    case 415: return takes_pictures(r);
    case 500:
    case 503: return r->where == KI_AS_WORK;
    default: return r->also == status;
    }
}

static void put_answer(kith_json *json, const ki_route *r) {
    const bool is_schema = isupper((unsigned char)r->answer[0]);
    begin(json, "200");
    put(json, "description", "The answer");
    begin(json, "content");
    begin(json, is_schema ? "application/json" : r->answer);
    begin(json, "schema");
    if (is_schema) {
        ki_schema_type(json, r->answer);
    } else {
        put(json, "type", strcmp(r->answer, "application/json") == 0 ? "object" : "string");
        if (strncmp(r->answer, "image/", 6) == 0) put(json, "format", "binary");
    }
    end(json), end(json), end(json), end(json);
}

static void put_failure(kith_json *json, unsigned status, const char *what) {
    char number[16];
    ki_snprintf(number, sizeof number, "%u", status);
    begin(json, number);
    put(json, "description", what);
    if (status >= 400) {
        begin(json, "content");
        begin(json, "application/problem+json");
        begin(json, "schema");
        ki_schema_type(json, "Problem");
        end(json), end(json), end(json);
    }
    end(json);
}

/* ---- what a route takes ---- */

static void put_id(kith_json *json) {
    kith_json_object_begin(json);
    put(json, "name", "id");
    put(json, "in", "path");
    kith_json_key(json, "required");
    kith_json_bool(json, true);
    begin(json, "schema");
    put(json, "type", "integer");
    kith_json_key(json, "minimum");
    kith_json_int(json, 0);
    end(json), end(json);
}

static void put_parameters(kith_json *json, const ki_route *r) {
    kith_json_key(json, "parameters");
    kith_json_array_begin(json);
    if (strchr(r->path, '#')) put_id(json);
    for (const ki_option *o = r->arguments; o && o->type != KI_OPTION_T_END; o++) {
        kith_json_object_begin(json);
        put(json, "name", o->name);
        put(json, "in", "query");
        kith_json_key(json, "schema");
        ki_schema_option(json, o);
        kith_json_object_end(json);
    }
    kith_json_array_end(json);
}

/* A query as JSON alone, or as a part beside the images' files. */
static void put_body(kith_json *json) {
    begin(json, "requestBody");
    kith_json_key(json, "required");
    kith_json_bool(json, true);
    begin(json, "content");
    begin(json, "application/json");
    begin(json, "schema");
    ki_schema_type(json, "Query");
    end(json), end(json);
    begin(json, "multipart/form-data");
    begin(json, "schema");
    put(json, "type", "object");
    kith_json_key(json, "required");
    kith_json_array_begin(json);
    kith_json_string(json, "query");
    kith_json_array_end(json);
    begin(json, "properties");
    begin(json, "query");
    ki_schema_type(json, "Query");
    end(json), end(json);
    begin(json, "additionalProperties");
    put(json, "type", "string");
    put(json, "format", "binary");
    end(json), end(json), end(json), end(json), end(json);
}

/* A decision: JSON alone. */
static void put_decision(kith_json *json, const char *schema) {
    begin(json, "requestBody");
    kith_json_key(json, "required");
    kith_json_bool(json, true);
    begin(json, "content");
    begin(json, "application/json");
    begin(json, "schema");
    ki_schema_type(json, schema);
    end(json), end(json), end(json), end(json);
}

static void put_route(kith_json *json, const ki_route *r) {
    begin(json, r->method == KI_GET ? "get" : "post");
    put(json, "operationId", r->name);
    put(json, "summary", r->summary);
    if (r->access == KI_ACCESS_OPEN) {
        kith_json_key(json, "security");
        kith_json_array_begin(json);
        kith_json_array_end(json);
    }
    put_parameters(json, r);
    if (r->method == KI_POST && r->access == KI_ACCESS_WRITE)
        put_decision(json, r->run == ki_route_undo ? "Undo" : "Decide");
    else if (r->method == KI_POST)
        put_body(json);
    begin(json, "responses");
    put_answer(json, r);
    for (int i = 0; i < N_FAILURES; i++) {
        if (may_fail_with(r, failures[i].status)) put_failure(json, failures[i].status, failures[i].what);
    }
    end(json), end(json);
}

/* Each path has one method. */
static void put_paths(kith_json *json) {
    begin(json, "paths");
    for (int i = 0; i < ki_n_routes; i++) {
        char path[128];
        const char *pattern = ki_routes[i].path, *id = strchr(pattern, '#');
        ki_snprintf(path, sizeof path, "%.*s%s%s", (int)strcspn(pattern, "#"), pattern, id ? "{id}" : "",
                    id ? id + 1 : "");
        begin(json, path);
        put_route(json, &ki_routes[i]);
        end(json);
    }
    end(json);
}

/* ---- schemas ---- */

static void put_crop(kith_json *json) { ki_schema_type(json, "[4]number"); }

static void put_images(kith_json *json) {
    static const ki_schema_tree trees[] = {{"crop", false, put_crop}, {0}};
    put(json, "type", "array");
    kith_json_key(json, "minItems");
    kith_json_int(json, 1);
    kith_json_key(json, "maxItems");
    kith_json_int(json, KI_MOST_QUERY_IMAGES);
    kith_json_key(json, "items");
    ki_schema_options(json, ki_query_image_options, trees);
}

static void put_ids(kith_json *json) { ki_schema_type(json, "[]integer"); }
static void put_was(kith_json *json) {
    put(json, "type", "array");
    begin(json, "items");
    ki_schema_type(json, "string?");
    end(json);
}

static void put_schemas(kith_json *json) {
    static const ki_schema_tree decide_trees[] = {{"ids", false, put_ids}, {"was", false, put_was}, {0}};
    static const ki_schema_tree trees[] = {{"images", true, put_images}, {0}};
    begin(json, "schemas");
    kith_json_key(json, "Query");
    ki_schema_options(json, ki_query_options, trees);
    kith_json_key(json, "Decide");
    ki_schema_options(json, ki_decision_options, decide_trees);
    kith_json_key(json, "Undo");
    ki_schema_options(json, ki_undo_options, NULL);
    for (int i = 0; i < ki_n_answer_schemas; i++) {
        kith_json_key(json, ki_answer_schemas[i].name);
        ki_schema_fields(json, ki_answer_schemas[i].fields);
    }
    end(json);
}

/* ---- the whole ---- */

/* A token is needed where the server has tokens. */
static void put_security(kith_json *json) {
    kith_json_key(json, "security");
    kith_json_array_begin(json);
    kith_json_object_begin(json);
    kith_json_key(json, "token");
    kith_json_array_begin(json);
    kith_json_array_end(json);
    end(json);
    kith_json_object_begin(json);
    end(json);
    kith_json_array_end(json);
}

static void put_info(kith_json *json) {
    begin(json, "info");
    put(json, "title", "kith serve");
    put(json, "version", "1");
    put(json, "description", "Search in an index of images. The server only reads, but for names.");
    begin(json, "license");
    put(json, "name", "Apache 2.0");
    put(json, "identifier", "Apache-2.0");
    end(json), end(json);
}

ki_handling ki_route_openapi(ki_request *r) {
    kith_json *json = NULL;
    kith_error err;
    const kith_status status = kith_json_new(&json, &err);
    if (status != KITH_OK) return ki_answer_error(r, status, &err);
    kith_json_object_begin(json);
    put(json, "openapi", "3.1.0");
    put_info(json);
    put_security(json);
    put_paths(json);
    begin(json, "components");
    begin(json, "securitySchemes");
    begin(json, "token");
    put(json, "type", "http");
    put(json, "scheme", "bearer");
    end(json), end(json);
    put_schemas(json);
    end(json), end(json);
    return ki_answer_json(r, json);
}
