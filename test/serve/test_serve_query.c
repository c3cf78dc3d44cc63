/* multipart/form-data, the JSON of a query, the routes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/routes/route.h"
#include "serve/search/query.h"
#include "support/testing.h"

#define TYPE "multipart/form-data; boundary=xyz"
#define TOO_LONG            \
    "multipart/form-data; " \
    "boundary=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define HEAD(name) "--xyz\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n"

/* In memory of exactly its size, so that a sanitizer sees a step too far. */
static kith_status read_form(const char *type, const char *body, size_t n, ki_form *ret, kith_error *err) {
    char *copy = malloc(n ? n : 1);
    assert_non_null(copy);
    memcpy(copy, body, n);
    const kith_status status = ki_form_read(type, copy, n, ret, err);
    free(copy);
    return status;
}

static void test_parts(void **state) {
    (void)state;
    kith_error err;
    ki_form form;
    static const char body[] =
        "before\r\n" HEAD("a") "1\r\n--xy\r\n2\r\n--xyz\r\nX: y\r\ncontent-disposition: form-data; "
                               "filename=\"a;name=z\"; name=b\r\nContent-Type: image/png\r\n\r\n\r\n--xyz--"
                               "\r\nafter";
    assert_ok(ki_form_read(TYPE, body, sizeof body - 1, &form, &err), &err);
    assert_int_equal(form.n, 2);
    const ki_form_part *a = ki_form_find(&form, "a"), *b = ki_form_find(&form, "b");
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal(a->n_bytes, strlen("1\r\n--xy\r\n2"));
    assert_memory_equal(a->bytes, "1\r\n--xy\r\n2", a->n_bytes);
    assert_int_equal(b->n_bytes, 0);
    assert_null(ki_form_find(&form, "z"));
}

static void test_boundaries(void **state) {
    (void)state;
    kith_error err;
    ki_form form;
    static const char body[] = HEAD("a") "1\r\n--xyz--";
    static const char *const good[] = {TYPE, "multipart/form-data; charset=x; boundary=\"xyz\"",
                                       "Multipart/Form-Data;BOUNDARY=xyz ; x=y"};
    static const char *const bad[] = {"",
                                      "multipart/form-data",
                                      "multipart/form-data; boundary=",
                                      "text/plain; boundary=xyz",
                                      "multipart/form-data; boundary=\"xyz",
                                      "multipart/form-data; boundary=other",
                                      TOO_LONG};
    for (size_t i = 0; i < N_ROWS(good); i++)
        assert_ok(read_form(good[i], body, sizeof body - 1, &form, &err), &err);
    for (size_t i = 0; i < N_ROWS(bad); i++) {
        if (read_form(bad[i], body, sizeof body - 1, &form, &err) != KITH_EFORMAT)
            fail_msg("'%s' was read", bad[i]);
    }
}

/* A body that ends anywhere is refused, unless it ends behind its last boundary. */
static void test_every_cut(void **state) {
    (void)state;
    kith_error err;
    ki_form form;
    static const char body[] = HEAD("a") "1\r\n" HEAD("b") "22\r\n--xyz--\r\n";
    const size_t whole = sizeof body - 1, enough = whole - 2;
    for (size_t n = 0; n <= whole; n++) {
        const kith_status status = read_form(TYPE, body, n, &form, &err);
        if ((status == KITH_OK) != (n >= enough))
            fail_msg("%zu of %zu bytes: %s", n, whole, kith_status_name(status));
    }
}

static void test_bad_forms(void **state) {
    (void)state;
    kith_error err;
    ki_form form;
    static const char twice[] = HEAD("a") "1\r\n" HEAD("a") "2\r\n--xyz--";
    static const char nameless[] = "--xyz\r\nContent-Type: a\r\n\r\n1\r\n--xyz--";
    assert_int_equal(read_form(TYPE, twice, sizeof twice - 1, &form, &err), KITH_EFORMAT);
    assert_int_equal(read_form(TYPE, nameless, sizeof nameless - 1, &form, &err), KITH_EFORMAT);
    char many[8192] = "";
    for (int i = 0; i < KI_MOST_FORM_PARTS + 1; i++) {
        const size_t n = strlen(many);
        snprintf(many + n, sizeof many - n, "--xyz\r\nContent-Disposition: form-data; name=p%d\r\n\r\n\r\n",
                 i);
    }
    strncat(many, "--xyz--", sizeof many - strlen(many) - 1);
    assert_int_equal(read_form(TYPE, many, strlen(many), &form, &err), KITH_EFORMAT);
    assert_non_null(strstr(err.message, "more than 64 parts"));
}

static kith_status read_json(const char *json, ki_query *q, kith_error *err) {
    return ki_query_read("application/json", json, strlen(json), 1000, q, err);
}

static void test_a_query(void **state) {
    (void)state;
    kith_error err;
    ki_query q;
    static const char body[] =
        HEAD("query") "{\"images\": [{\"part\": \"f\", \"crop\": [1, 2.5, 30, 40]}, {\"id\": 7, "
                      "\"weight\": -0.5}], \"k\": 3, \"offset\": 6, \"where\": \"label = 'a'\", "
                      "\"same\": 0.01, \"flips\": true}\r\n" HEAD("f") "PIC\r\n--xyz--";
    assert_ok(ki_query_read(TYPE, body, sizeof body - 1, 1000, &q, &err), &err);
    assert_int_equal(q.n_images, 2);
    assert_int_equal(q.image[0].id, -1);
    assert_int_equal(q.image[0].part->n_bytes, 3);
    assert_true(q.image[0].has_crop && q.image[0].crop[1] == 2.5 && q.image[0].weight == 1);
    assert_true(q.image[1].id == 7 && q.image[1].weight == -0.5 && !q.image[1].has_crop);
    assert_true(q.k == 3 && q.offset == 6 && q.same == 0.01 && q.flips && !q.exact && !q.hide_duplicates);
    assert_string_equal(q.where, "label = 'a'");
    ki_query_release(&q);
    assert_ok(read_json("{\"images\": [{\"id\": 0}]}", &q, &err), &err);
    assert_true(q.k == 24 && q.offset == 0 && isnan(q.same) && !q.where && q.hit == -1);
    ki_query_release(&q);
}

static void test_bad_queries(void **state) {
    (void)state;
    kith_error err;
    ki_query q;
    static const char *const row[][2] = {
        {"", "query"},
        {"[]", "not an object"},
        {"{}", "images"},
        {"{\"images\": []}", "images"},
        {"{\"images\": {}}", "images"},
        {"{\"images\": [7]}", "image 0"},
        {"{\"images\": [{}]}", "neither"},
        {"{\"images\": [{\"id\": 1, \"part\": \"f\"}]}", "both"},
        {"{\"images\": [{\"part\": \"f\"}]}", "no part 'f'"},
        {"{\"images\": [{\"id\": -2}]}", "id"},
        {"{\"images\": [{\"id\": 1, \"weight\": \"x\"}]}", "weight"},
        {"{\"images\": [{\"id\": 1, \"crop\": [1, 2, 3, 4]}]}", "crop"},
        {"{\"images\": [{\"id\": 1}], \"k\": 0}", "k"},
        {"{\"images\": [{\"id\": 1}], \"k\": 900, \"offset\": 101}", "1001"},
        {"{\"images\": [{\"id\": 1}], \"limt\": 3}", "limt"},
        {"{\"images\": [{\"id\": 1}], \"same\": 2}", "same"},
        {"{\"images\": [{\"id\": 1}]} x", "query"},
    };
    for (size_t i = 0; i < N_ROWS(row); i++) {
        const kith_status status = read_json(row[i][0], &q, &err);
        if (status != KITH_EINVAL && status != KITH_EFORMAT)
            fail_msg("%s: %s", row[i][0], kith_status_name(status));
        if (!strstr(err.message, row[i][1]))
            fail_msg("%s: no '%s' in '%s'", row[i][0], row[i][1], err.message);
    }
    char many[1024] = "{\"images\": [{\"id\": 0}";
    for (int i = 0; i < KI_MOST_QUERY_IMAGES; i++)
        strncat(many, ", {\"id\": 1}", sizeof many - strlen(many) - 1);
    strncat(many, "]}", sizeof many - strlen(many) - 1);
    assert_int_equal(read_json(many, &q, &err), KITH_EINVAL);
}

static void test_routes(void **state) {
    (void)state;
    int64_t id = -1;
    const char *allow = NULL;
    static const char *const none[] = {"",
                                       "/x",
                                       "/api/v1/items/",
                                       "/api/v1/items/x",
                                       "/api/v1/items/-1",
                                       "/api/v1/items/1/",
                                       "/api/v1/items/1/image/2",
                                       "/api/v1/items/9999999999999999999",
                                       "/api/v1/items/1%2f..",
                                       "/page/",
                                       "/page/../healthz",
                                       "/healthz/"};
    const ki_route *r = ki_route_find("GET", "/api/v1/items/17/image", &id, &allow);
    assert_non_null(r);
    assert_string_equal(r->name, "image");
    assert_int_equal(id, 17);
    assert_string_equal(ki_route_find("HEAD", "/healthz", &id, &allow)->name, "health");
    assert_string_equal(ki_route_find("GET", "/", &id, &allow)->name, "page");
    assert_null(ki_route_find("POST", "/healthz", &id, &allow));
    assert_string_equal(allow, "GET, HEAD");
    assert_null(ki_route_find("GET", "/api/v1/search", &id, &allow));
    assert_string_equal(allow, "POST");
    for (size_t i = 0; i < N_ROWS(none); i++) {
        if (ki_route_find("GET", none[i], &id, &allow) || allow) fail_msg("'%s' has a route", none[i]);
    }
}

/* curl -d sends JSON as what a form would be: what to add is said. */
static void test_json_that_is_called_a_form(void **state) {
    (void)state;
    ki_query q = {0};
    kith_error err = {0};
    static const char json[] = " {\"images\": [{\"id\": 1}]}";
    static const char *const types[] = {"application/x-www-form-urlencoded", "text/plain", ""};
    for (size_t i = 0; i < N_ROWS(types); i++) {
        assert_int_equal(ki_query_read(types[i], json, sizeof json - 1, 10, &q, &err), KITH_EFORMAT);
        if (!strstr(err.hint, "Content-Type: application/json"))
            fail_msg("'%s': hint '%s'", types[i], err.hint);
    }
    assert_int_equal(ki_query_read(types[0], "a=b", 3, 10, &q, &err), KITH_EFORMAT);
    assert_null(strstr(err.hint, "application/json"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),     cmocka_unit_test(test_boundaries),
        cmocka_unit_test(test_every_cut), cmocka_unit_test(test_bad_forms),
        cmocka_unit_test(test_a_query),   cmocka_unit_test(test_bad_queries),
        cmocka_unit_test(test_routes),    cmocka_unit_test(test_json_that_is_called_a_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
