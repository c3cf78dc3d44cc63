/* The description of the API: it has every route and every key that is read, and answers are as it says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "io/json.h"
#include "serve/routes/route.h"
#include "serve/search/query.h"
#include "support/http.h"
#include "support/served.h"
#include "support/testing.h"

static ki_server *server;
static int port;
static ki_arena arena;
static const ki_value *document;

static const ki_value *parse(const http_answer *a) {
    ki_value *root = NULL;
    kith_error err;
    assert_ok(ki_json_parse(a->body, a->n_body, "answer", &arena, &root, &err), &err);
    return root;
}

static int set_up(void **state) {
    (void)state;
    char output[4096];
    served_make();
    const int status =
        testing_run(output, sizeof output,
                    "cd '%s' && cp photos/glyph00001/00001.png photos/glyph00001/twice.png && "
                    "%s synth many --classes 24 --images 12 --size 32 && "
                    "%s index many -o many.kith --model m.safetensors && %s index p.kith --sync",
                    testing_folder(), testing_program(), testing_program(), testing_program());
    if (status != 0) fail_msg("%s", output);
    const ki_serve_options o = served_options();
    server = served_start(&o, &port);
    http_answer a = http_get(port, "/openapi.json");
    assert_int_equal(a.status, 200);
    assert_holds(a.head, "Content-Type: application/json\r\n");
    document = parse(&a);
    http_release(&a);
    return 0;
}

static int tear_down(void **state) {
    ki_server_free(server);
    ki_arena_release(&arena);
    return testing_tear_down(state);
}

/* The value at "components/schemas/Query", or a failure. '~' in a name is a '/'. */
static const ki_value *at(const ki_value *from, const char *path) {
    char copy[256], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", path);
    for (char *name = strtok_r(copy, "/", &rest); name; name = strtok_r(NULL, "/", &rest)) {
        for (char *c = name; *c; c++) *c = *c == '~' ? '/' : *c;
        const ki_value *next = ki_value_get(from, name);
        if (!next) fail_msg("no '%s' of %s", name, path);
        from = next;
    }
    return from;
}

static const char *text_of(const ki_value *map, const char *key) {
    const ki_value *value = ki_value_get(map, key);
    return value && value->kind == KI_VALUE_SCALAR ? value->text : NULL;
}

/* A number of a schema, or none. */
static void assert_number(const ki_value *schema, const char *key, const char *option, bool is_there,
                          double wanted) {
    const char *text = text_of(schema, key);
    double found = 0;
    if (!text != !is_there) fail_msg("%s: %s is %s", option, key, text ? text : "missing");
    if (text && (!ki_parse_double(text, &found) || found != wanted))
        fail_msg("%s: %s is %s, wanted %g", option, key, text, wanted);
}

static void assert_text(const ki_value *map, const char *key, const char *where, const char *wanted) {
    const char *found = text_of(map, key);
    if (!found || strcmp(found, wanted) != 0)
        fail_msg("%s: %s is '%s', wanted '%s'", where, key, found ? found : "(none)", wanted);
}

static void assert_option(const ki_value *schema, const ki_option *o) {
    const bool is_number = o->type == KI_OPTION_T_INT || o->type == KI_OPTION_T_REAL;
    const bool is_bool = o->type == KI_OPTION_T_BOOL;
    assert_text(schema, "description", o->name, o->help);
    if (o->type == KI_OPTION_T_TREE) {
        assert_text(schema, "type", o->name, "array"); /* all of them are lists */
        return;
    }
    assert_text(schema, "type", o->name,
                o->type == KI_OPTION_T_INT ? "integer"
                : is_number                ? "number"
                : is_bool                  ? "boolean"
                                           : "string");
    assert_number(schema, "minimum", o->name, is_number, o->least);
    assert_number(schema, "maximum", o->name, is_number, o->most);
    if (o->type == KI_OPTION_T_CHOICE) assert_text(schema, "default", o->name, o->choices[(int)o->def]);
    if (is_bool) assert_text(schema, "default", o->name, o->def != 0 ? "true" : "false");
    if (is_number) assert_number(schema, "default", o->name, o->def >= o->least && o->def <= o->most, o->def);
}

static void assert_options(const ki_value *schema, const ki_option *table) {
    size_t n = 0;
    assert_text(schema, "additionalProperties", "schema", "false");
    for (const ki_option *o = table; o->type != KI_OPTION_T_END; o++, n++) {
        const ki_value *one = ki_value_get(at(schema, "properties"), o->name);
        if (!one) fail_msg("no '%s' in the description", o->name);
        assert_option(one, o);
    }
    assert_int_equal(at(schema, "properties")->n_items, n);
}

static void test_every_key_of_a_query(void **state) {
    (void)state;
    const ki_value *query = at(document, "components/schemas/Query");
    assert_options(query, ki_query_options);
    assert_int_equal(at(query, "required")->n_items, 1);
    assert_string_equal(at(query, "required")->first->text, "images");
    const ki_value *images = at(query, "properties/images");
    assert_number(images, "minItems", "images", true, 1);
    assert_number(images, "maxItems", "images", true, KI_MOST_QUERY_IMAGES);
    assert_options(at(images, "items"), ki_query_image_options);
    assert_number(at(images, "items/properties/crop"), "minItems", "crop", true, 4);
}

static void test_every_route(void **state) {
    (void)state;
    assert_string_equal(text_of(document, "openapi"), "3.1.0");
    for (int i = 0; i < ki_n_routes; i++) {
        const ki_route *r = &ki_routes[i];
        const bool has_id = strchr(r->path, '#');
        char path[128] = "";
        for (const char *c = r->path; *c; c++) {
            const char letter[2] = {*c, 0};
            strncat(path, *c == '#' ? "{id}" : letter, sizeof path - strlen(path) - 1);
        }
        const ki_value *found = ki_value_get(at(document, "paths"), path);
        if (!found) fail_msg("no %s in the description", path);
        assert_int_equal(found->n_items, 1);
        const ki_value *one = at(found, r->method == KI_GET ? "get" : "post");
        assert_text(one, "summary", path, r->summary);
        assert_int_equal(!ki_value_get(one, "requestBody"), r->method == KI_GET);
        const ki_value *parameters = at(one, "parameters");
        size_t n = has_id ? 1 : 0;
        for (const ki_option *o = r->arguments; o && o->type != KI_OPTION_T_END; o++, n++) {
            const ki_value *given = ki_value_at(parameters, n);
            assert_text(given, "name", path, o->name);
            assert_option(at(given, "schema"), o);
        }
        assert_int_equal(parameters->n_items, n);
    }
    assert_int_equal(at(document, "paths")->n_items, ki_n_routes);
}

/* A key that the description does not have is refused, and the hint has the one that was meant. */
static void assert_misspelt(const ki_option *table, const char *before, const char *after) {
    for (const ki_option *o = table; o->type != KI_OPTION_T_END; o++) {
        char query[256], hint[96];
        snprintf(query, sizeof query, "%s\"%sx\": 1%s", before, o->name, after);
        snprintf(hint, sizeof hint, "did you mean '%s'?", o->name);
        http_answer a = http_post_json(port, "/api/v1/search", query);
        if (a.status != 400) fail_msg("%s: status %d: %s", query, a.status, a.body);
        assert_holds(a.body, hint);
        http_release(&a);
    }
}

static void test_misspelt_keys(void **state) {
    (void)state;
    assert_misspelt(ki_query_options, "{\"images\": [{\"id\": 0}], ", "}");
    assert_misspelt(ki_query_image_options, "{\"images\": [{\"id\": 0, ", "}]}");
}

/* ---- answers ---- */

static const ki_value *resolved(const ki_value *schema) {
    const char *reference = text_of(schema, "$ref");
    if (!reference) return schema;
    if (strncmp(reference, "#/", 2) != 0) fail_msg("a reference to %s", reference);
    return at(document, reference + 2);
}

static bool is_type(const ki_value *value, const char *type) {
    const bool is_plain = value->kind == KI_VALUE_SCALAR && !value->is_quoted;
    const bool is_word = is_plain && (strcmp(value->text, "true") == 0 || strcmp(value->text, "false") == 0);
    int64_t whole = 0;
    double number = 0;
    if (strcmp(type, "null") == 0) return value->kind == KI_VALUE_NULL;
    if (strcmp(type, "object") == 0) return value->kind == KI_VALUE_MAP;
    if (strcmp(type, "array") == 0) return value->kind == KI_VALUE_LIST;
    if (strcmp(type, "string") == 0) return value->kind == KI_VALUE_SCALAR && value->is_quoted;
    if (strcmp(type, "boolean") == 0) return is_word;
    if (strcmp(type, "integer") == 0) return is_plain && ki_parse_int64(value->text, &whole);
    if (strcmp(type, "number") == 0) return is_plain && !is_word && ki_parse_double(value->text, &number);
    fail_msg("a type '%s'", type);
    return false;
}

static void assert_conforms(const ki_value *schema, const ki_value *value, const char *where);

static void assert_object(const ki_value *schema, const ki_value *value, const char *where) {
    const ki_value *properties = ki_value_get(schema, "properties");
    for (const ki_value *v = value->first; properties && v; v = v->next) {
        const ki_value *one = ki_value_get(properties, v->key);
        if (!one) fail_msg("%s: the description has no '%s'", where, v->key);
        assert_conforms(one, v, v->key);
    }
    for (const ki_value *key = properties ? at(schema, "required")->first : NULL; key; key = key->next) {
        if (!ki_value_get(value, key->text)) fail_msg("%s: the answer has no '%s'", where, key->text);
    }
}

static void assert_conforms(const ki_value *schema, const ki_value *value, const char *where) {
    schema = resolved(schema);
    const ki_value *either = ki_value_get(schema, "anyOf"), *words = ki_value_get(schema, "enum");
    const ki_value *type = ki_value_get(schema, "type"), *items = ki_value_get(schema, "items");
    if (either) { /* the first, or null */
        if (value->kind != KI_VALUE_NULL) assert_conforms(either->first, value, where);
        return;
    }
    bool is_good = false;
    if (words) {
        for (const ki_value *w = words->first; w; w = w->next)
            is_good |= is_type(value, "string") && strcmp(w->text, value->text) == 0;
    } else if (type && type->kind == KI_VALUE_LIST) {
        for (const ki_value *t = type->first; t; t = t->next) is_good |= is_type(value, t->text);
    } else {
        is_good = type && is_type(value, type->text);
    }
    if (!is_good) fail_msg("%s is '%s'", where, value->text ? value->text : "of another kind");
    if (value->kind == KI_VALUE_MAP) assert_object(schema, value, where);
    for (const ki_value *v = value->kind == KI_VALUE_LIST && items ? value->first : NULL; v; v = v->next)
        assert_conforms(items, v, where);
}

/* The answer of a route is what the description says of it. */
static const ki_value *assert_described(http_answer a, int status, const char *path) {
    char to[256];
    if (a.status != status) fail_msg("%s: status %d: %s", path, a.status, a.body);
    snprintf(to, sizeof to, "paths/%s/responses/%d/content/application~%sjson/schema", path, status,
             status == 200 ? "" : "problem+");
    const ki_value *answer = parse(&a);
    assert_conforms(at(document, to), answer, path);
    http_release(&a);
    return answer;
}

static void test_answers(void **state) {
    (void)state;
    assert_described(http_get(port, "/healthz"), 200, "~healthz/get");
    assert_described(http_get(port, "/openapi.json"), 200, "~openapi.json/get");
    const ki_value *info = assert_described(http_get(port, "/api/v1/info"), 200, "~api~v1~info/get");
    assert_true(at(info, "samples")->n_items > 0 && at(info, "columns")->n_items > 0);
    assert_true(at(info, "calibration")->kind == KI_VALUE_MAP);
    assert_described(http_get(port, "/api/v1/items/3"), 200, "~api~v1~items~{id}/get");
    assert_described(http_get(port, "/api/v1/items/999"), 404, "~api~v1~items~{id}/get");
    assert_described(http_get(port, "/api/v1/items/3/thumb?side=1"), 400, "~api~v1~items~{id}~thumb/get");
    const ki_value *found = assert_described(
        http_post_json(port, "/api/v1/search", "{\"images\": [{\"id\": 3}]}"), 200, "~api~v1~search/post");
    assert_true(at(found, "hits")->n_items == 17);
    assert_described(http_post_json(port, "/api/v1/search", "{}"), 400, "~api~v1~search/post");
    assert_described(http_post_json(port, "/api/v1/explain", "{\"images\": [{\"id\": 3}], \"hit\": 4}"), 200,
                     "~api~v1~explain/post");
    assert_described(http_post_json(port, "/api/v1/identify", "{\"images\": [{\"id\": 3}]}"), 404,
                     "~api~v1~identify/post");
    const ki_value *same =
        assert_described(http_get(port, "/api/v1/duplicates"), 200, "~api~v1~duplicates/get");
    assert_true(at(same, "groups")->n_items > 0);
}

/* An index with labels enough for names. */
static void test_names(void **state) {
    (void)state;
    static char path[1200];
    int many_port = 0;
    ki_serve_options o = served_options();
    snprintf(path, sizeof path, "%s/many.kith", testing_folder());
    o.index = path;
    ki_server *many = served_start(&o, &many_port);
    const ki_value *who =
        assert_described(http_post_json(many_port, "/api/v1/identify",
                                        "{\"images\": [{\"id\": 3}], \"error\": 0.4, \"k\": 3}"),
                         200, "~api~v1~identify/post");
    assert_int_equal(at(who, "candidates")->n_items, 3);
    ki_server_free(many);
}

/* Words of an enum that an answer takes from the library: those of the index here are but one each. */
static void assert_word(const ki_value *schema, const char *word) {
    for (const ki_value *w = at(schema, "enum")->first; w; w = w->next) {
        if (strcmp(w->text, word) == 0) return;
    }
    fail_msg("no '%s' in the description", word);
}

static void test_words(void **state) {
    (void)state;
    const ki_value *info = at(document, "components/schemas/Info/properties");
    const ki_value *column = at(document, "components/schemas/Column/properties");
    for (int i = KITH_COSINE; i <= KITH_SQEUCLIDEAN; i++)
        assert_word(at(info, "metric"), kith_metric_name((kith_metric)i));
    for (int i = KITH_TIER_EXACT; i <= KITH_TIER_GRAPH; i++)
        assert_word(at(info, "tier"), kith_index_tier_name((kith_index_tier)i));
    for (int i = KITH_VALUE_INT; i <= KITH_VALUE_TEXT; i++)
        assert_word(at(column, "type"), kith_value_type_name((kith_value_type)i));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_key_of_a_query),
        cmocka_unit_test(test_every_route),
        cmocka_unit_test(test_misspelt_keys),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
