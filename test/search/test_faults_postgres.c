/* An index on PostgreSQL when things go wrong: nothing that was committed is lost, and each failure is one clear line. */
#include <pthread.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "postgres_index.h"

enum { N = 300 };

static kith_index *make(const char *name) {
    kith_index *index = made_create(at(name), KITH_COSINE);
    made_add(index, 0, N);
    commit(index);
    return index;
}

static void assert_one_line(const kith_error *err) {
    assert_true(err->message[0] != '\0');
    assert_null(strchr(err->message, '\n'));
    assert_null(strchr(err->hint, '\n'));
}

/* All connections but the one that asks end, as when a network fails. */
static void cut(void) {
    postgres_sql(
        server, "postgres",
        "select count(pg_terminate_backend(pid)) from pg_stat_activity where pid <> pg_backend_pid() and "
        "backend_type = 'client backend'",
        NULL);
}

/* ---- connections ---- */

static void test_writer_loses_its_connection(void **state) {
    (void)state;
    postgres_needs_server(base);
    kith_error err = {0};
    kith_index *index = make("cut");
    const uint64_t before = digest(index);
    const int64_t gone = 3;
    for (int when = 0; when < 3; when++) { /* before a change, between changes, before the commit */
        kith_status status = KITH_OK;
        if (when > 0) made_add(index, N, 50);
        cut();
        if (when < 2)
            status = when == 0 ? made_try_add(index, N, 50, &err) : kith_index_remove(index, &gone, 1, &err);
        if (status == KITH_OK) status = kith_index_commit(index, NULL, &err);
        assert_int_equal(status, KITH_EIO);
        assert_one_line(&err);
        assert_int_equal(kith_index_commit(index, NULL, &err), KITH_EINVAL); /* the handle says so, too */
        kith_index_free(index);
        index = made_open(at("cut"), KITH_INDEX_WRITE);
        assert_int_equal(made_info(index).n_items, N);
        assert_true(digest(index) == before);
    }
    made_add(index, N, 50); /* and the work goes on */
    commit(index);
    assert_int_equal(made_info(index).n_items, N + 50);
    kith_index_free(index);
}

/* One that makes an index leaves nothing behind. */
static void test_maker_loses_its_connection(void **state) {
    (void)state;
    postgres_needs_server(base);
    kith_error err = {0};
    kith_index *index = made_create(at("half"), KITH_COSINE);
    made_add(index, 0, N);
    cut();
    assert_int_equal(kith_index_commit(index, NULL, &err), KITH_EIO);
    kith_index_free(index);
    assert_int_equal(kith_index_open(at("half"), KITH_INDEX_READ, &index, &err), KITH_ENOTFOUND);
    index = make("half");
    kith_index_free(index);
}

/* Who only reads does not notice. */
static void test_reader_goes_on(void **state) {
    (void)state;
    postgres_needs_server(base);
    char output[POSTGRES_OUTPUT_BYTES];
    kith_error err = {0};
    bool is_current = false;
    kith_index_free(make("read"));
    kith_index *index = made_open(at("read"), KITH_INDEX_READ);
    const uint64_t before = digest(index);
    cut();
    assert_true(digest(index) == before);
    assert_int_equal(
        testing_run(output, sizeof output, "%s/scripts/postgres.sh restart %s", testing_source(), server), 0);
    assert_ok(kith_index_is_current(index, &is_current, &err), &err);
    assert_true(is_current);
    assert_true(digest(index) == before);
    kith_index_free(index);
}

static void test_no_server(void **state) {
    (void)state;
    kith_error err = {0};
    kith_index *index = NULL;
    assert_int_equal(kith_index_open("postgresql://127.0.0.1:1/nothing", KITH_INDEX_READ, &index, &err),
                     KITH_EIO);
    assert_one_line(&err);
    assert_non_null(strstr(err.message, "refused"));
    assert_int_equal(kith_index_open("postgresql://u:%zzsecret@h/d", KITH_INDEX_READ, &index, &err),
                     KITH_EINVAL);
    assert_one_line(&err);
    assert_null(strstr(err.message, "secret"));
    assert_null(strstr(err.hint, "secret"));
}

/* ---- who may, and what there is room for ---- */

static void test_second_writer_is_told(void **state) {
    (void)state;
    postgres_needs_server(base);
    kith_error err = {0};
    kith_index *first = make("two"), *second = NULL;
    assert_int_equal(kith_index_open(at("two"), KITH_INDEX_WRITE, &second, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "is being written by another process"));
    kith_index_free(made_open(at("two"), KITH_INDEX_READ));
    kith_index_free(first);
    kith_index_free(made_open(at("two"), KITH_INDEX_WRITE));
    assert_int_equal(made_try_create(at("two"), KITH_COSINE, &second, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "there is an index already"));
}

/* A role that may do nothing, in this database and in one without the extension. */
static void test_permissions(void **state) {
    (void)state;
    postgres_needs_server(base);
    char address[POSTGRES_ADDRESS_BYTES];
    kith_error err = {0};
    kith_index *index = make("mine");
    const int port = atoi(strchr(strrchr(base, '@'), ':') + 1);
    postgres_sql(server, "postgres", "create role guest login password 'no secret'", NULL);
    postgres_sql(server, "postgres", "create database plain", NULL);
    kith_index_free(index);
    snprintf(address, sizeof address, "postgresql://guest:no%%20secret@127.0.0.1:%d/postgres#mine", port);
    assert_int_equal(kith_index_open(address, KITH_INDEX_READ, &index, &err), KITH_EIO);
    assert_non_null(strstr(err.message, "permission denied for schema mine"));
    assert_one_line(&err);
    snprintf(address, sizeof address, "postgresql://guest:no%%20secret@127.0.0.1:%d/postgres#other", port);
    assert_int_equal(made_try_create(address, KITH_COSINE, &index, &err), KITH_EIO);
    assert_non_null(strstr(err.message, "permission denied"));
    snprintf(address, sizeof address, "postgresql://guest:no%%20secret@127.0.0.1:%d/plain", port);
    assert_int_equal(made_try_create(address, KITH_COSINE, &index, &err), KITH_EUNSUPPORTED);
    assert_non_null(strstr(err.message, "the extension vector (pgvector) is missing"));
    assert_one_line(&err);
    snprintf(address, sizeof address, "postgresql://guest:wrong%%20secret@127.0.0.1:%d/plain", port);
    assert_int_equal(kith_index_open(address, KITH_INDEX_READ, &index, &err), KITH_EIO);
    assert_non_null(strstr(err.message, "password authentication failed"));
    assert_null(strstr(err.message, "wrong secret"));
    /* Reading alone is enough to search. */
    postgres_sql(server, "postgres",
                 "grant usage on schema mine to guest; grant select on all tables in schema mine to guest",
                 NULL);
    snprintf(address, sizeof address, "postgresql://guest:no%%20secret@127.0.0.1:%d/postgres#mine", port);
    index = made_open(address, KITH_INDEX_READ);
    digest(index);
    kith_index_free(index);
    index = made_open(address, KITH_INDEX_WRITE);
    assert_int_equal(made_try_add(index, N, 1, &err), KITH_EIO);
    assert_non_null(strstr(err.message, "permission denied for table items"));
    kith_index_free(index);
}

static void test_full_disk(void **state) {
    (void)state;
    postgres_needs_server(base);
    char tiny[40], here[POSTGRES_ADDRESS_BYTES];
    kith_error err = {0};
    kith_status status = KITH_OK;
    snprintf(tiny, sizeof tiny, "full%d", (int)getpid());
    snprintf(here, sizeof here, "%.1000s", postgres_start(tiny, "KITH_POSTGRES_DISK=72m"));
    kith_index *index = made_create(here, KITH_COSINE);
    made_add(index, 0, N);
    commit(index);
    const uint64_t before = digest(index);
    kith_index_free(index);
    index = NULL;
    char flood[POSTGRES_ADDRESS_BYTES + 16];
    snprintf(flood, sizeof flood, "%s#flood", here);
    kith_index *large = made_create(flood, KITH_COSINE);
    for (int64_t first = 0; status == KITH_OK && first < 1000000; first += 20000)
        status = made_try_add(large, first, 20000, &err);
    assert_int_equal(status, KITH_EIO);
    assert_one_line(&err);
    assert_non_null(strstr(err.message, "No space left on device"));
    assert_non_null(strstr(err.hint, "make room at the server"));
    kith_index_free(large);
    assert_int_equal(kith_index_open(flood, KITH_INDEX_READ, &large, &err), KITH_ENOTFOUND);
    index = made_open(here, KITH_INDEX_WRITE);
    assert_int_equal(made_info(index).n_items, N);
    assert_true(digest(index) == before);
    made_add(index, N, 50);
    commit(index);
    assert_int_equal(made_info(index).n_items, N + 50);
    kith_index_free(index);
    postgres_stop(tiny);
}

static void test_another_model(void **state) {
    (void)state;
    kith_error err = {0};
    kith_index *index = make("model");
    assert_ok(kith_index_expect(index, "0123abcd", "squash256", &err), &err);
    assert_int_equal(kith_index_expect(index, "4567", NULL, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "#model was made with model 0123abcd; this one is 4567"));
    kith_index_free(index);
}

/* Somebody changed the tables by hand. */
static void test_strange_tables(void **state) {
    (void)state;
    kith_error err = {0};
    kith_index *index = make("strange");
    kith_index_free(index);
    postgres_sql(server, "postgres", "update strange.about set manifest = replace(manifest, '24', '25')",
                 NULL);
    assert_int_equal(kith_index_open(at("strange"), KITH_INDEX_READ, &index, &err), KITH_EFORMAT);
    assert_non_null(strstr(err.message, "is damaged"));
    postgres_sql(server, "postgres", "delete from strange.about", NULL);
    assert_int_equal(kith_index_open(at("strange"), KITH_INDEX_READ, &index, &err), KITH_ENOTFOUND);
    postgres_sql(server, "postgres", "create schema rows; create table rows.items (id bigint)", NULL);
    assert_int_equal(made_try_create(at("rows"), KITH_COSINE, &index, &err), KITH_EFORMAT);
    assert_one_line(&err);
}

/* ---- at the same time ---- */

static atomic_bool is_over;

/* Every search is of one commit: all its hits can be looked at, whatever is removed meanwhile. */
static void *read_on(void *n_searches) {
    float row[MADE_DIM];
    made_row(5, row);
    const kith_array query = {KITH_F32, 2, {1, MADE_DIM}, row};
    kith_error err = {0};
    kith_status status = KITH_OK;
    while (!atomic_load(&is_over) && status == KITH_OK) {
        kith_index *index = NULL;
        kith_hits hits = {0};
        status = kith_index_open(at("busy"), KITH_INDEX_READ, &index, &err);
        if (status == KITH_OK) status = kith_index_search(index, &query, NULL, &hits, &err);
        if (status == KITH_OK && hits.begin[1] != 10) status = KITH_EINTERNAL;
        for (int64_t i = 0; status == KITH_OK && i < hits.begin[1]; i++) {
            kith_index_item item = {0};
            float found[MADE_DIM];
            status = kith_index_item_get(index, hits.hits[i].id, &item, &err);
            if (status == KITH_OK) status = kith_index_vectors(index, &hits.hits[i].id, 1, found, &err);
            kith_index_item_release(&item);
        }
        kith_hits_release(&hits);
        kith_index_free(index);
        ++*(int *)n_searches;
    }
    if (status != KITH_OK) fprintf(stderr, "a reader: %s %s\n", kith_status_name(status), err.message);
    return status == KITH_OK ? n_searches : NULL;
}

static void test_sync_and_search_together(void **state) {
    (void)state;
    postgres_needs_server(base);
    enum { READERS = 3, ROUNDS = 12 };
    pthread_t thread[READERS];
    int n_searches[READERS] = {0};
    kith_error err;
    kith_index *index = make("busy");
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, read_on, &n_searches[i]), 0);
    for (int round = 0; round < ROUNDS; round++) { /* everything is replaced, again and again */
        int64_t *ids = NULL, n = 0;
        assert_ok(kith_index_ids(index, NULL, &ids, &n, &err), &err);
        assert_ok(kith_index_remove(index, ids, n, &err), &err);
        made_add(index, 0, N);
        commit(index);
        kith_ids_free(ids);
    }
    while (n_searches[0] < 3) usleep(10000);
    atomic_store(&is_over, true);
    for (int i = 0; i < READERS; i++) {
        void *result = NULL;
        pthread_join(thread[i], &result);
        assert_non_null(result);
    }
    assert_int_equal(made_info(index).n_items, N);
    kith_index_free(index);
}

/* ---- memory ---- */

static kith_status use(kith_error *err) {
    uint64_t sum = 0;
    int64_t *ids = NULL, n = 0;
    kith_index *index = NULL;
    kith_status status = kith_index_open(at("memory"), KITH_INDEX_WRITE, &index, err);
    if (status == KITH_OK)
        status = kith_index_ids(index, "label like 'te%' and year in (2016, 2017.5) or not weight > 0", &ids,
                                &n, err);
    if (status == KITH_OK) status = made_digest(index, &sum, err);
    if (status == KITH_OK) status = kith_index_restamp(index, 1, 7, 8, err);
    if (status == KITH_OK)
        status = kith_index_set(index, &(int64_t){1}, 1, (const char *const[]){"year"}, 1,
                                &(kith_value){.type = KITH_VALUE_INT, .integer = 7}, err);
    if (status == KITH_OK) status = made_try_add(index, 3, 2, err);
    if (status == KITH_OK) status = kith_index_remove(index, &(int64_t){3}, 1, err);
    if (status == KITH_OK) status = kith_index_commit(index, NULL, err);
    kith_ids_free(ids);
    kith_index_free(index);
    return status;
}

/* The n-th allocation fails, for every n: out of memory, nothing lost, nothing leaked. */
static void test_failing_allocations(void **state) {
    (void)state;
    kith_error err = {0};
    kith_index *index = made_create(at("memory"), KITH_COSINE);
    made_add(index, 0, 4);
    commit(index);
    kith_index_free(index);
    int64_t n = 0;
    for (;; n += 1 + n / 6) { /* all of the first ones, and some of the many that are alike */
        ki_alloc_fail_after(n);
        const kith_status status = use(&err);
        const bool has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        if (!has_failed) {
            assert_ok(status, &err);
            break;
        }
        if (status != KITH_ENOMEM)
            fail_msg("allocation %lld: %s %s", (long long)n, kith_status_name(status), err.message);
        index = made_open(at("memory"), KITH_INDEX_READ);
        const int64_t n_items = made_info(index).n_items;
        kith_index_free(index);
        if (n_items == 5) break; /* the commit was made, and what came after it failed */
        assert_int_equal(n_items, 4);
    }
    assert_true(n > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writer_loses_its_connection),
        cmocka_unit_test(test_maker_loses_its_connection),
        cmocka_unit_test(test_reader_goes_on),
        cmocka_unit_test(test_no_server),
        cmocka_unit_test(test_second_writer_is_told),
        cmocka_unit_test(test_permissions),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_another_model),
        cmocka_unit_test(test_strange_tables),
        cmocka_unit_test(test_sync_and_search_together),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, start_server, testing_tear_down);
}
