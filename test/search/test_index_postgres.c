/* An index on a real PostgreSQL server beside one in a folder: the same answers to everything, also through shards. */
#include <math.h>

#include "postgres_index.h"

enum { K = 10, N_EXACT = 1000000 /* rows up to which there is no graph */ };

static twins make_twins(const char *name, kith_metric metric, int64_t n, int64_t exact_rows) {
    char folder[64];
    snprintf(folder, sizeof folder, "%s.kith", name);
    twins t = {.here = made_create(made_path(folder), metric)}; /* the truth: every search of it is exact */
    const int64_t before = made_exact_numbers;
    made_exact_numbers = exact_rows * MADE_DIM;
    t.there = made_create(at(name), metric);
    made_exact_numbers = before;
    twins_fill(&t, n);
    return t;
}

/* ---- the same as a folder ---- */

static void test_same_as_a_folder(void **state) {
    (void)state;
    static const char *const names[] = {"cosine", "inner", "distance"};
    for (int metric = 0; metric < 3; metric++) {
        twins t = make_twins(names[metric], (kith_metric)metric, N_TWIN, N_EXACT);
        check_changes(&t, (kith_metric)metric);
        twins_free(&t);
    }
}

/* Also of a sample, where the labels are many. */
static void test_own_false_match_rates(void **state) {
    (void)state;
    check_own_rates(made_create(made_path("own.kith"), KITH_COSINE), made_create(at("own"), KITH_COSINE),
                    300);
    check_own_rates(made_create(made_path("own.kith"), KITH_COSINE), made_create(at("own_many"), KITH_COSINE),
                    10400);
}

static void test_compare_with_files(void **state) {
    (void)state;
    twins t = make_twins("files", KITH_COSINE, 30, N_EXACT);
    check_files(&t);
    twins_free(&t);
}

static void test_filters(void **state) {
    (void)state;
    twins t = make_twins("filters", KITH_COSINE, N_TWIN, N_EXACT);
    check_filters(&t);
    twins_free(&t);
}

/* The server compares in float32: rows it cannot compare by the cosine are refused, and a query of any length is asked. */
static void test_lengths(void **state) {
    (void)state;
    kith_error err = {0};
    twins t = make_twins("lengths", KITH_COSINE, 200, N_EXACT);
    float row[MADE_DIM];
    const kith_array array = {KITH_F32, 2, {1, MADE_DIM}, row};
    static const double scale[] = {1e-13, 1e-35, 1e16};
    for (int i = 0; i < 3; i++) {
        made_row(17, row);
        for (int k = 0; k < MADE_DIM; k++) row[k] = (float)((double)row[k] * scale[i]);
        kith_hits a = {0}, b = {0};
        assert_ok(kith_index_search(t.here, &array, NULL, &a, &err), &err);
        assert_ok(kith_index_search(t.there, &array, NULL, &b, &err), &err);
        assert_int_equal(a.begin[1], b.begin[1]);
        assert_memory_equal(a.hits, b.hits, (size_t)a.begin[1] * sizeof *a.hits);
        assert_int_equal(a.hits[0].id, 17);
        kith_hits_release(&a);
        kith_hits_release(&b);
        if (i > 0) assert_int_equal(kith_index_add(t.there, &array, NULL, NULL, &err), KITH_EINVAL);
        if (i > 0) assert_non_null(strstr(err.hint, "scale the rows"));
    }
    twins_free(&t);
}

/* Vectors that cannot be told apart by a server's float32 sums are told apart as in a folder. */
static void test_near_ties(void **state) {
    (void)state;
    enum { M = 600 };
    static float rows[M * MADE_DIM];
    kith_error err;
    for (int i = 0; i < M; i++) {
        for (int k = 0; k < MADE_DIM; k++)
            rows[i * MADE_DIM + k] = 1 + (float)((i * 7919 + k * 104729) % 1000) * 1e-7f;
    }
    const kith_array array = {KITH_F32, 2, {M, MADE_DIM}, rows};
    twins t = {made_create(made_path("ties.kith"), KITH_COSINE), made_create(at("ties"), KITH_COSINE)};
    kith_index *both[] = {t.here, t.there};
    for (int i = 0; i < 2; i++) {
        assert_ok(kith_index_add(both[i], &array, NULL, NULL, &err), &err);
        commit(both[i]);
    }
    kith_hits a = {0}, b = {0};
    const kith_array query = {KITH_F32, 2, {3, MADE_DIM}, rows};
    assert_ok(kith_index_search(t.here, &query, NULL, &a, &err), &err);
    assert_ok(kith_index_search(t.there, &query, NULL, &b, &err), &err);
    assert_same_hits(&a, &b);
    kith_hits_release(&a);
    kith_hits_release(&b);
    twins_free(&t);
}

/* ---- names and texts ---- */

static void test_names_that_are_refused(void **state) {
    (void)state;
    static const char *const wheres[] = {"\"year); drop table items; --\" = 1", "attributes = 1",
                                         "embedding = 1", "year; drop table items", "pg_sleep(1) = 1"};
    static const char *const names[] = {"", "kith; drop", "Kith", "pg_kith", "1st", "a\"b", "ö"};
    kith_error err = {0};
    kith_index *index = made_create(at("refused"), KITH_COSINE);
    commit(index);
    for (size_t i = 0; i < N_ROWS(wheres); i++) {
        int64_t *ids = NULL, n = 0;
        assert_int_equal(kith_index_ids(index, wheres[i], &ids, &n, &err), KITH_EINVAL);
        assert_non_null(strstr(err.message, "where: character"));
    }
    assert_int_equal(kith_index_column_add(index, "a'); drop table items; --", KITH_VALUE_INT, &err),
                     KITH_EINVAL);
    kith_index_free(index);
    for (size_t i = 0; i < N_ROWS(names); i++) {
        assert_int_equal(kith_index_open(at(names[i]), KITH_INDEX_READ, &index, &err), KITH_EINVAL);
        assert_non_null(strstr(err.message, "cannot be the name of an index"));
    }
}

/* Texts as they come, through COPY and back. */
static void test_texts(void **state) {
    (void)state;
    static const char *const texts[] = {"", "\\.", "\t\n\r", "\\N", "'\"$$", "\xf0\x9f\x90\xa6", "a\\b\001"};
    float row[MADE_DIM] = {1};
    kith_error err = {0};
    kith_index *index = made_create(at("texts"), KITH_COSINE);
    const kith_array array = {KITH_F32, 2, {1, MADE_DIM}, row};
    for (size_t i = 0; i < N_ROWS(texts); i++) {
        const kith_value values[3] = {{0}, {0}, {.type = KITH_VALUE_TEXT, .text = texts[i]}};
        const kith_index_item item = {
            .path = texts[i], .label = texts[i], .bytes = -1, .mtime_ns = -1, .values = values};
        assert_ok(kith_index_add(index, &array, &item, NULL, &err), &err);
    }
    commit(index);
    for (size_t i = 0; i < N_ROWS(texts); i++) {
        kith_index_item item = {0};
        assert_ok(kith_index_item_get(index, (int64_t)i, &item, &err), &err);
        assert_string_equal(item.path, texts[i]);
        assert_string_equal(item.label, texts[i]);
        assert_string_equal(item.values[2].text, texts[i]);
        kith_index_item_release(&item);
    }
    const kith_index_item latin = {.path = "M\xf6we.jpg", .bytes = -1, .mtime_ns = -1};
    assert_int_equal(kith_index_add(index, &array, &latin, NULL, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "its path is not text in UTF-8"));
    made_add(index, 0, 1); /* it was told before anything was sent */
    kith_index_free(index);
}

/* ---- the graph ---- */

static double recall_of(const kith_hits *found, const kith_hits *truth) {
    int64_t n_same = 0, n = truth->begin[truth->n_queries];
    for (int64_t q = 0; q < truth->n_queries; q++) {
        for (int64_t i = truth->begin[q]; i < truth->begin[q + 1]; i++) {
            for (int64_t j = found->begin[q]; j < found->begin[q + 1]; j++)
                n_same += found->hits[j].id == truth->hits[i].id;
        }
    }
    return (double)n_same / (double)n;
}

static void assert_good_recall(const kith_index *index, const char *where) {
    KITH_OPTIONS(kith_search_options, options);
    options.k = K;
    options.where = where;
    kith_hits found = search(index, &options);
    options.exact = true;
    kith_hits truth = search(index, &options);
    assert_false(found.is_exact);
    assert_true(truth.is_exact);
    assert_int_equal(found.begin[N_QUERIES], N_QUERIES * K);
    const double recall = recall_of(&found, &truth);
    if (recall < 0.95) fail_msg("recall %g; wanted 0.95", recall);
    kith_hits_release(&found);
    kith_hits_release(&truth);
}

/* With index scans or without: from the first commit that is large on there is a graph. */
static void test_graph(void **state) {
    (void)state;
    static const char *const names[] = {"graph_cosine", "graph_inner", "graph_distance"};
    kith_error err;
    for (int metric = 0; metric < 3; metric++) {
        twins t = make_twins(names[metric], (kith_metric)metric, 250, 300);
        assert_int_equal(made_info(t.there).tier, KITH_TIER_EXACT);
        made_add(t.here, 250, 950);
        made_add(t.there, 250, 950);
        commit(t.here);
        commit(t.there);
        assert_int_equal(made_info(t.there).tier, KITH_TIER_GRAPH);
        assert_good_recall(t.there, NULL);
        assert_good_recall(t.there, "weight > -1.5");
        KITH_OPTIONS(kith_search_options, options);
        options.k = K;
        options.exact = true;
        assert_same_search(&t, &options);
        options.exact = false;
        options.where = "id < 4"; /* few: compared one by one, and all of them are found */
        kith_hits hits = search(t.there, &options);
        assert_int_equal(hits.begin[1], 4);
        kith_hits_release(&hits);
        options.where = NULL;
        options.k = 700; /* more than a graph gives */
        hits = search(t.there, &options);
        assert_int_equal(hits.begin[1], 700);
        kith_hits_release(&hits);
        assert_ok(kith_index_compact(t.there, NULL, &err), &err);
        twins_free(&t);
    }
}

/* ---- shards ---- */

/* Two databases that each hold half of the rows, and a third through which kith sees them as one table. */
static void make_shards(void) {
    char sql[4096], password[POSTGRES_OUTPUT_BYTES], command[256];
    assert_int_equal(
        testing_run(password, sizeof password, "cut -d: -f5 '%s'", strstr(base, "passfile=") + 9), 0);
    password[strcspn(password, "\n")] = '\0';
    for (int i = 0; i < 2; i++) {
        snprintf(command, sizeof command, "create database shard%d", i);
        postgres_sql(server, "postgres", command, NULL);
        snprintf(command, sizeof command, "shard%d", i);
        snprintf(sql, sizeof sql,
                 "create extension vector; create table items (id bigint primary key, path text collate "
                 "\"C\", label "
                 "text collate \"C\", hash text, bytes bigint not null, mtime_ns bigint not null, attributes "
                 "jsonb not "
                 "null, embedding vector(%d) not null);"
                 "create index on items using hnsw ((embedding::halfvec(%d)) halfvec_cosine_ops);",
                 MADE_DIM, MADE_DIM);
        postgres_sql(server, command, sql, NULL);
    }
    snprintf(sql, sizeof sql,
             "create extension if not exists vector; create extension postgres_fdw; create schema shards; "
             "create table shards.items (id bigint not null, path text collate \"C\", label text collate "
             "\"C\", hash text, "
             "bytes bigint not null, mtime_ns bigint not null, attributes jsonb not null, embedding "
             "vector(%d) not null) "
             "partition by hash (id);",
             MADE_DIM);
    postgres_sql(server, "postgres", sql, NULL);
    for (int i = 0; i < 2; i++) {
        snprintf(sql, sizeof sql,
                 "create server shard%d foreign data wrapper postgres_fdw options (host '127.0.0.1', port "
                 "'%d', dbname "
                 "'shard%d', extensions 'vector', batch_size '100', fetch_size '1000', options '-c "
                 "hnsw.ef_search=200 -c cursor_tuple_fraction=0.001');"
                 "create user mapping for kith server shard%d options (user 'kith', password '%.100s');"
                 "create foreign table shards.items%d partition of shards.items for values with (modulus 2, "
                 "remainder "
                 "%d) server shard%d options (schema_name 'public', table_name 'items');",
                 i, atoi(strchr(strrchr(base, '@'), ':') + 1), i, i, password, i, i, i);
        postgres_sql(server, "postgres", sql, NULL);
    }
}

static void test_shards(void **state) {
    (void)state;
    postgres_needs_server(base);
    char output[POSTGRES_OUTPUT_BYTES];
    make_shards();
    twins t = make_twins("shards", KITH_COSINE, 900, 500);
    const int64_t gone[] = {7, 8, 9, 10};
    kith_error err;
    KITH_OPTIONS(kith_search_options, options);
    assert_ok(kith_index_remove(t.here, gone, 4, &err), &err);
    assert_ok(kith_index_remove(t.there, gone, 4, &err), &err);
    commit(t.here);
    commit(t.there);
    for (int i = 0; i < 2; i++) { /* the rows are where they belong */
        char name[32];
        snprintf(name, sizeof name, "shard%d", i);
        postgres_sql(server, name, "select count(*) > 300 from items", output);
        assert_string_equal(output, "t\n");
    }
    options.k = K;
    options.exact = true;
    assert_same_search(&t, &options);
    options.where = "year >= 2018 and not label = gull";
    assert_same_search(&t, &options);
    assert_int_equal(made_info(t.there).tier, KITH_TIER_GRAPH);
    assert_good_recall(t.there, NULL);
    twins_free(&t);
    /* Rows that a crash between the commits of two shards left there are taken over. */
    postgres_sql(server, "postgres",
                 "insert into shards.items select 900 + i, null, null, null, -1, -1, '{}', array_fill(1, "
                 "array[24])::vector "
                 "from generate_series(0, 3) i",
                 NULL);
    t.there = made_open(at("shards"), KITH_INDEX_WRITE);
    made_add(t.there, 5000, 10);
    commit(t.there);
    assert_int_equal(made_info(t.there).n_items, 900 - 4 + 4 + 10);
    kith_index_free(t.there);
    /* The order, and with it the graphs, are the shards' work. */
    postgres_sql(
        server, "postgres",
        "explain (verbose, costs off) select id from shards.items order by embedding::halfvec(24) <=> "
        "(array_fill(1, array[24])::vector(24))::halfvec(24) limit 10",
        output);
    if (!strstr(output, "Remote SQL: SELECT id, embedding FROM public.items ORDER BY"))
        fail_msg("the order is not the shards' work: %s", output);
    postgres_sql(server, "shard0",
                 "set cursor_tuple_fraction = 0.001; explain (costs off) declare c cursor for select id, "
                 "embedding from items "
                 "order by embedding::halfvec(24) <=> (array_fill(1, array[24])::vector(24))::halfvec(24)",
                 output);
    if (!strstr(output, "Index Scan using items_embedding_idx")) fail_msg("no graph: %s", output);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_a_folder),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_own_false_match_rates),
        cmocka_unit_test(test_near_ties),
        cmocka_unit_test(test_compare_with_files),
        cmocka_unit_test(test_filters),
        cmocka_unit_test(test_names_that_are_refused),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_graph),
        cmocka_unit_test(test_shards),
    };
    return cmocka_run_group_tests(tests, start_server, testing_tear_down);
}
