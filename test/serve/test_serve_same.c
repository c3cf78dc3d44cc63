/* Fifty queries through `kith search --json` and through the server: the same hits, with the same fields. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "io/json.h"
#include "support/http.h"
#include "support/served.h"
#include "support/testing.h"

enum { PHOTOS, TABLE, N_INDEXES, MOST_FILES = 3 };

static ki_server *server[N_INDEXES];
static int port[N_INDEXES];
static const char *const index_name[N_INDEXES] = {"p.kith", "v.kith"};
static char table_path[1024], photos_root[1100];

/* Photos of which two are there twice, one of them under another class; and the same as a table with columns. */
static int set_up(void **state) {
    (void)state;
    char output[8192];
    served_make();
    const int status = testing_run(
        output, sizeof output,
        "cd %s && " TESTING_K
        " && cp photos/glyph00001/00002.png photos/glyph00001/copy.png"
        " && cp photos/glyph00003/00000.png photos/glyph00000/other.png && $K index p.kith --sync"
        " && $K embed m.safetensors photos -o e.npy && (echo path,year,weight,note;"
        " awk '{ print $0 \",\" 2000 + NR \",\" NR / 8 \",\" (NR %% 3 ? \"odd\" : \"\") }' e.paths.txt) > "
        "items.csv"
        " && $K index e.npy -o v.kith --labels e.labels.txt --meta items.csv --model m.safetensors"
        " && $K index v.kith --calibrate photos",
        testing_folder(), testing_program());
    if (status != 0) fail_msg("no index: %s", output);
    snprintf(table_path, sizeof table_path, "%s/v.kith", testing_folder());
    snprintf(photos_root, sizeof photos_root, "%s/photos/", testing_folder());
    for (int i = 0; i < N_INDEXES; i++) {
        ki_serve_options o = served_options();
        if (i == TABLE) o.index = table_path;
        server[i] = served_start(&o, &port[i]);
    }
    return 0;
}

static int tear_down(void **state) {
    for (int i = 0; i < N_INDEXES; i++) ki_server_free(server[i]);
    return testing_tear_down(state);
}

/* ---- one query, both ways ---- */

typedef struct query {
    int index;
    const char *file[MOST_FILES]; /* parts f0, f1, f2 */
    const char *json, *words;     /* of the server, and of the command */
} query;

#define ONE "glyph00001/00002.png"
#define TWO "glyph00002/00001.png"
#define SIX "glyph00003/00003.png"
#define P1 "photos/" ONE
#define P2 "photos/" TWO
#define P6 "photos/" SIX

static const query queries[] = {
    /* images */
    {0, {ONE}, "{\"images\": [{\"part\": \"f0\"}], \"k\": 10}", P1},
    {0, {TWO}, "{\"images\": [{\"part\": \"f0\"}], \"k\": 1}", P2 " -k 1"},
    {0, {SIX}, "{\"images\": [{\"part\": \"f0\"}], \"k\": 18}", P6 " -k 18"},
    {0, {SIX}, "{\"images\": [{\"part\": \"f0\"}], \"k\": 100}", P6 " -k 100"},
    {1, {ONE}, "{\"images\": [{\"part\": \"f0\"}], \"k\": 10}", P1},
    /* items */
    {0, {0}, "{\"images\": [{\"id\": 0}], \"k\": 10}", "--id 0"},
    {0, {0}, "{\"images\": [{\"id\": 6}], \"k\": 3}", "--id 6 -k 3"},
    {0, {0}, "{\"images\": [{\"id\": 15}], \"k\": 18}", "--id 15 -k 18"},
    {1, {0}, "{\"images\": [{\"id\": 7}], \"k\": 10}", "--id 7"},
    {1, {0}, "{\"images\": [{\"id\": 12}], \"k\": 18, \"exact\": true}", "--id 12 -k 18 --exact"},
    /* sums */
    {0, {ONE, TWO}, "{\"images\": [{\"part\": \"f0\"}, {\"part\": \"f1\"}], \"k\": 10}", P1 " --and " P2},
    {0,
     {ONE, TWO},
     "{\"images\": [{\"part\": \"f0\"}, {\"part\": \"f1\", \"weight\": -1}], \"k\": 10}",
     P1 " --not " P2},
    {0,
     {ONE, TWO, SIX},
     "{\"images\": [{\"part\": \"f0\"}, {\"part\": \"f1\"}, {\"part\": \"f2\", \"weight\": -1}], \"k\": 10}",
     P1 " --and " P2 " --not " P6},
    {0,
     {SIX, ONE, TWO},
     "{\"images\": [{\"part\": \"f0\"}, {\"part\": \"f1\", \"weight\": -1}, {\"part\": \"f2\", \"weight\": "
     "-1}], \"k\": 5}",
     P6 " --not " P1 " --not " P2 " -k 5"},
    {0, {ONE}, "{\"images\": [{\"id\": 9}, {\"part\": \"f0\"}], \"k\": 10}", "--id 9 --and " P1},
    {0,
     {ONE},
     "{\"images\": [{\"id\": 9}, {\"part\": \"f0\", \"weight\": -1}], \"k\": 10}",
     "--id 9 --not " P1},
    {1,
     {TWO, SIX},
     "{\"images\": [{\"part\": \"f0\"}, {\"part\": \"f1\", \"weight\": -1}], \"k\": 10}",
     P2 " --not " P6},
    /* parts of images */
    {0,
     {ONE},
     "{\"images\": [{\"part\": \"f0\", \"crop\": [8, 4, 30, 50]}], \"k\": 10}",
     P1 " --crop 8,4,30,50"},
    {0,
     {TWO},
     "{\"images\": [{\"part\": \"f0\", \"crop\": [0, 0, 64, 64]}], \"k\": 10}",
     P2 " --crop 0,0,64,64"},
    {0,
     {SIX},
     "{\"images\": [{\"part\": \"f0\", \"crop\": [20.5, 10.25, 17, 33]}], \"k\": 4}",
     P6 " --crop 20.5,10.25,17,33 -k 4"},
    {0,
     {ONE, TWO},
     "{\"images\": [{\"part\": \"f0\", \"crop\": [8, 4, 30, 50]}, {\"part\": \"f1\"}], \"k\": 10}",
     P1 " --crop 8,4,30,50 --and " P2},
    {1,
     {ONE},
     "{\"images\": [{\"part\": \"f0\", \"crop\": [8, 4, 30, 50]}], \"k\": 10, \"where\": \"year > 2004\"}",
     P1 " --crop 8,4,30,50 --where 'year > 2004'"},
    /* mirror images */
    {0, {ONE}, "{\"images\": [{\"part\": \"f0\"}], \"k\": 10, \"flips\": true}", P1 " --views flips"},
    {0,
     {TWO, SIX},
     "{\"images\": [{\"part\": \"f0\"}, {\"part\": \"f1\", \"weight\": -1}], \"k\": 10, \"flips\": true}",
     P2 " --not " P6 " --views flips"},
    {0,
     {ONE},
     "{\"images\": [{\"part\": \"f0\", \"crop\": [8, 4, 30, 50]}], \"k\": 10, \"flips\": true}",
     P1 " --crop 8,4,30,50 --views flips"},
    {0,
     {ONE},
     "{\"images\": [{\"id\": 3}, {\"part\": \"f0\"}], \"k\": 10, \"flips\": true}",
     "--id 3 --and " P1 " --views flips"},
    /* filters */
    {0,
     {ONE},
     "{\"images\": [{\"part\": \"f0\"}], \"k\": 10, \"where\": \"label != glyph00001\"}",
     P1 " --where 'label != glyph00001'"},
    {0,
     {0},
     "{\"images\": [{\"id\": 4}], \"k\": 10, \"where\": \"label in (glyph00002, glyph00003)\"}",
     "--id 4 --where 'label in (glyph00002, glyph00003)'"},
    {0,
     {0},
     "{\"images\": [{\"id\": 4}], \"k\": 10, \"where\": \"path like '%/00001.png'\"}",
     "--id 4 --where \"path like '%/00001.png'\""},
    {0,
     {0},
     "{\"images\": [{\"id\": 4}], \"k\": 10, \"where\": \"label = nothing\"}",
     "--id 4 --where 'label = nothing'"},
    {1,
     {0},
     "{\"images\": [{\"id\": 4}], \"k\": 10, \"where\": \"year >= 2005 and not note = odd\"}",
     "--id 4 --where 'year >= 2005 and not note = odd'"},
    {1,
     {TWO},
     "{\"images\": [{\"part\": \"f0\"}], \"k\": 10, \"where\": \"weight < 1.5 or note = odd\"}",
     P2 " --where 'weight < 1.5 or note = odd'"},
    /* limits */
    {0, {ONE}, "{\"images\": [{\"part\": \"f0\"}], \"k\": 18, \"same\": 0.3}", P1 " -k 18 --same 0.3"},
    {0, {0}, "{\"images\": [{\"id\": 10}], \"k\": 18, \"same\": 0.1}", "--id 10 -k 18 --same 0.1"},
    {0, {0}, "{\"images\": [{\"id\": 10}], \"k\": 18, \"same\": 1}", "--id 10 -k 18 --same 1"},
    {1,
     {SIX},
     "{\"images\": [{\"part\": \"f0\"}], \"k\": 18, \"same\": 0.5, \"where\": \"year < 2012\"}",
     P6 " -k 18 --same 0.5 --where 'year < 2012'"},
    {0,
     {ONE},
     "{\"images\": [{\"part\": \"f0\"}], \"k\": 18, \"min_score\": 0.5}",
     P1 " -k 18 --min-score 0.5"},
    {0, {0}, "{\"images\": [{\"id\": 2}], \"k\": 18, \"min_score\": 0.9}", "--id 2 -k 18 --min-score 0.9"},
    {1,
     {0},
     "{\"images\": [{\"id\": 2}], \"k\": 18, \"min_score\": -0.25}",
     "--id 2 -k 18 --min-score=-0.25"},
    /* other orders */
    {0, {ONE}, "{\"images\": [{\"part\": \"f0\"}], \"k\": 10, \"rerank\": \"qe\"}", P1 " --rerank qe"},
    {0, {ONE}, "{\"images\": [{\"part\": \"f0\"}], \"k\": 10, \"rerank\": \"kr\"}", P1 " --rerank kr"},
    {0,
     {0},
     "{\"images\": [{\"id\": 8}], \"k\": 5, \"offset\": 5, \"rerank\": \"kr\"}",
     "--id 8 -k 5 --page 2 --rerank kr"},
    {1,
     {0},
     "{\"images\": [{\"id\": 8}], \"k\": 10, \"rerank\": \"qe\", \"where\": \"year > 2003\"}",
     "--id 8 --rerank qe --where 'year > 2003'"},
    {0, {0}, "{\"images\": [{\"id\": 8}], \"k\": 10, \"rerank\": \"none\"}", "--id 8 --rerank none"},
    /* copies */
    {0,
     {ONE},
     "{\"images\": [{\"part\": \"f0\"}], \"k\": 4, \"hide_duplicates\": true}",
     P1 " -k 4 --hide-duplicates"},
    {0,
     {0},
     "{\"images\": [{\"id\": 12}], \"k\": 18, \"hide_duplicates\": true}",
     "--id 12 -k 18 --hide-duplicates"},
    {0,
     {0},
     "{\"images\": [{\"id\": 6}], \"k\": 3, \"offset\": 3, \"hide_duplicates\": true, \"same\": 0.9}",
     "--id 6 -k 3 --page 2 --hide-duplicates --same 0.9"},
    /* pages */
    {0, {ONE}, "{\"images\": [{\"part\": \"f0\"}], \"k\": 3, \"offset\": 3}", P1 " -k 3 --page 2"},
    {0, {0}, "{\"images\": [{\"id\": 11}], \"k\": 5, \"offset\": 15}", "--id 11 -k 5 --page 4"},
    {1, {0}, "{\"images\": [{\"id\": 11}], \"k\": 5, \"offset\": 25}", "--id 11 -k 5 --page 6"},
};

static http_answer ask_server(const query *q) {
    static const char form[] = "Content-Type: multipart/form-data; boundary=b\r\n";
    char *body = malloc(4 << 20);
    size_t n = 0;
    if (!body) abort();
    n += (size_t)sprintf(body, "--b\r\nContent-Disposition: form-data; name=\"query\"\r\n\r\n%s", q->json);
    for (int i = 0; i < MOST_FILES && q->file[i]; i++) {
        size_t n_file = 0;
        char *file = served_photo(q->file[i], &n_file);
        n += (size_t)sprintf(
            body + n, "\r\n--b\r\nContent-Disposition: form-data; name=\"f%d\"; filename=\"x\"\r\n\r\n", i);
        memcpy(body + n, file, n_file);
        n += n_file;
        free(file);
    }
    n += (size_t)sprintf(body + n, "\r\n--b--\r\n");
    http_answer a = http_ask(port[q->index], "POST", "/api/v1/search", form, body, n);
    free(body);
    return a;
}

/* ---- comparing ---- */

static ki_value *parse(const char *text, ki_arena *arena) {
    ki_value *root = NULL;
    kith_error err;
    assert_ok(ki_json_parse(text, strlen(text), "an answer", arena, &root, &err), &err);
    return root;
}

static bool is_number(const ki_value *v, double *ret) {
    return v->kind == KI_VALUE_SCALAR && !v->is_quoted && ki_parse_double(v->text, ret);
}

/* Of the command, a path is whole. */
static bool is_same_path(const char *ours, const char *theirs) {
    const size_t n = strlen(photos_root);
    return strcmp(ours, theirs) == 0 ||
           (strncmp(theirs, photos_root, n) == 0 && strcmp(ours, theirs + n) == 0);
}

static void assert_same_value(const ki_value *ours, const ki_value *theirs) {
    double a = 0, b = 0;
    if (!ours->key != !theirs->key || (ours->key && strcmp(ours->key, theirs->key) != 0))
        fail_msg("'%s' of the server is '%s' of the command", ours->key, theirs->key);
    const char *key = ours->key ? ours->key : "a list's";
    if (ours->kind != theirs->kind || ours->n_items != theirs->n_items)
        fail_msg("%s: %d with %zu, %d with %zu of the command", key, (int)ours->kind, ours->n_items,
                 (int)theirs->kind, theirs->n_items);
    if (ours->kind != KI_VALUE_SCALAR) {
        const ki_value *other = theirs->first;
        for (const ki_value *one = ours->first; one; one = one->next, other = other->next)
            assert_same_value(one, other);
        return;
    }
    const bool is_rounded = strcmp(key, "score") == 0 || strcmp(key, "false_match_rate") == 0;
    const bool is_same = is_rounded && is_number(ours, &a) && is_number(theirs, &b) ? fabs(a - b) <= 1e-6
                         : strcmp(key, "path") == 0 ? is_same_path(ours->text, theirs->text)
                                                    : strcmp(ours->text, theirs->text) == 0;
    if (!is_same || ours->is_quoted != theirs->is_quoted)
        fail_msg("%s: %s, of the command %s", key, ours->text, theirs->text);
}

static const ki_value *need(const ki_value *map, const char *key) {
    const ki_value *value = ki_value_get(map, key);
    if (!value) fail_msg("no '%s' in the answer", key);
    return value;
}

/* The hits, best first. Where the scores of two are the same but for rounding, as those of two copies of a photo, either may come first, and
 * either may be the last that is shown. */
static void assert_same_hits(const ki_value *ours, const ki_value *theirs) {
    double a = 0, b = 0;
    assert_int_equal(ours->n_items, theirs->n_items);
    const ki_value *there = theirs->first;
    for (const ki_value *one = ours->first; one; one = one->next, there = there->next) {
        assert_same_value(need(one, "score"), need(there, "score"));
        const ki_value *other = theirs->first;
        while (other && strcmp(need(other, "id")->text, need(one, "id")->text) != 0) other = other->next;
        assert_true(is_number(need(one, "score"), &a));
        if (other) assert_same_value(one, other);
        assert_true(is_number(need(other ? other : ki_value_at(theirs, theirs->n_items - 1), "score"), &b));
        if (!(fabs(a - b) <= 1e-6)) fail_msg("id %s: not where the command has it", need(one, "id")->text);
    }
}

/* Returns the number of hits. */
static size_t compare(const query *q) {
    static const char *const keys[] = {"n_allowed", "is_exact"};
    static char output[1 << 18];
    ki_arena arena = {0};
    http_answer a = ask_server(q);
    if (a.status != 200) fail_msg("status %d: %s", a.status, a.body);
    const int status = testing_run(output, sizeof output, "cd %s && %s search %s %s --json 2>/dev/null",
                                   testing_folder(), testing_program(), index_name[q->index], q->words);
    if (status != 0) fail_msg("exit status %d: %s", status, output);
    const ki_value *ours = parse(a.body, &arena), *list = need(parse(output, &arena), "queries");
    assert_int_equal(list->n_items, 1);
    for (size_t i = 0; i < N_ROWS(keys); i++)
        assert_same_value(need(ours, keys[i]), need(list->first, keys[i]));
    assert_same_hits(need(ours, "hits"), need(list->first, "hits"));
    const size_t n_hits = need(ours, "hits")->n_items;
    http_release(&a);
    ki_arena_release(&arena);
    return n_hits;
}

static void test_fifty_queries(void **state) {
    (void)state;
    size_t n_hits = 0;
    assert_int_equal(N_ROWS(queries), 50);
    for (size_t i = 0; i < N_ROWS(queries); i++) {
        print_message("%zu: kith search %s %s\n", i, index_name[queries[i].index], queries[i].words);
        n_hits += compare(&queries[i]);
    }
    assert_true(n_hits > 300);
}

/* A hit has these fields, in this order. */
static void test_the_fields_of_a_hit(void **state) {
    (void)state;
    static const char *const fields[] = {
        "id",    "score", "false_match_rate", "error_rate", "error_rate_interval",
        "label", "path",  "values",           "image"};
    const query q = {TABLE, {0}, "{\"images\": [{\"id\": 7}], \"k\": 1}", ""};
    ki_arena arena = {0};
    http_answer a = ask_server(&q);
    const ki_value *hit = need(parse(a.body, &arena), "hits")->first;
    assert_int_equal(hit->n_items, N_ROWS(fields));
    for (size_t i = 0; i < N_ROWS(fields); i++) assert_string_equal(ki_value_at(hit, i)->key, fields[i]);
    assert_string_equal(need(need(hit, "values"), "year")->text, "2008");
    assert_string_equal(need(hit, "image")->text, "true");
    http_release(&a);
    ki_arena_release(&arena);
}

/* What one refuses the other refuses, in the same words. */
static void test_the_same_refusals(void **state) {
    (void)state;
    static const struct {
        const char *json, *words, *line;
        int status;
    } rows[] = {
        {"{\"images\": [{\"id\": 1700}]}", "--id 1700", "there is no item 1700", 404},
        {"{\"images\": [{\"id\": 1}], \"same\": 1e-8}", "--id 1 --same 1e-8",
         "same is 1e-08; the pairs that were measured tell rates from", 400},
        {"{\"images\": [{\"id\": 1}], \"where\": \"lable = x\"}", "--id 1 --where 'lable = x'",
         "where: character 1: unknown column 'lable'", 400},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        char output[4096];
        http_answer a = http_post_json(port[PHOTOS], "/api/v1/search", rows[i].json);
        assert_int_equal(a.status, rows[i].status);
        assert_holds(a.body, rows[i].line);
        assert_int_equal(testing_run(output, sizeof output, "cd %s && %s search p.kith %s", testing_folder(),
                                     testing_program(), rows[i].words),
                         1);
        assert_holds(output, rows[i].line);
        http_release(&a);
    }
    http_answer a = http_post_json(port[PHOTOS], "/api/v1/search",
                                   "{\"images\": [{\"id\": 1}], \"same\": 0.1, \"min_score\": 0.1}");
    assert_int_equal(a.status, 400);
    assert_holds(a.body, "same and min_score are both given; wanted one");
    http_release(&a);
    a = http_post_json(port[PHOTOS], "/api/v1/search", "{\"images\": [{\"id\": 1}], \"rerank\": \"best\"}");
    assert_int_equal(a.status, 400);
    assert_holds(a.body, "rerank");
    http_release(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fifty_queries),
                                       cmocka_unit_test(test_the_fields_of_a_hit),
                                       cmocka_unit_test(test_the_same_refusals)};
    return cmocka_run_group_tests_name("serve/same", tests, set_up, tear_down);
}
