/* What is asked of the items: how many, which, what is known of them, their vectors, the nearest. */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "search/files/segment.h"
#include "search/postgres/tables.h"

/* Of hnsw.ef_search, which the server allows up to 1000; docs/performance.md has what recall it gives. */
enum { LEAST_EFFORT = 64, MOST_EFFORT = 1000 };

/* A statement that is put together: its text, values and result. */
typedef struct question {
    ki_link *link;
    ki_buffer sql;
    ki_pg_values values;
    PGresult *result;
} question;

static void question_release(question *q) {
    ki_buffer_release(&q->sql);
    ki_pg_values_release(&q->values);
    PQclear(q->result);
}

static kith_status ask(question *q, bool is_binary, kith_error *err) {
    KI_TRY(ki_pg_snapshot(q->link, err));
    ki_buffer_add(&q->sql, "", 1);
    if (q->sql.status != KITH_OK) return ki_fail_memory(err, 1, "a statement");
    return ki_pg_run(q->link, q->sql.data, &q->values, is_binary, &q->result, err);
}

kith_status ki_pg_count(ki_link *l, const ki_manifest *m, const ki_where *where, int64_t *ret_n,
                        kith_error *err) {
    question q = {.link = l};
    ki_buffer_put(&q.sql, "select count(*) from items where ");
    ki_pg_where(where, m, &q.sql, &q.values);
    const kith_status status = ask(&q, false, err);
    if (status == KITH_OK) ki_parse_int64(PQgetvalue(q.result, 0, 0), ret_n);
    question_release(&q);
    return status;
}

kith_status ki_pg_ids(ki_link *l, const ki_manifest *m, const ki_where *where, int64_t **ret_ids,
                      int64_t *ret_n, kith_error *err) {
    kith_status status = KITH_OK;
    question q = {.link = l};
    int64_t *ids = NULL;
    ki_buffer_put(&q.sql, "select id from items where ");
    ki_pg_where(where, m, &q.sql, &q.values);
    ki_buffer_put(&q.sql, " order by id");
    KI_CHECK(ask(&q, true, err));
    const int n = PQntuples(q.result);
    KI_CHECK(ki_alloc_or(&ids, (size_t)n, sizeof *ids, "ids", err));
    for (int i = 0; i < n; i++) ids[i] = (int64_t)ki_pg_get64(PQgetvalue(q.result, i, 0));
    *ret_ids = ids;
    *ret_n = n;
done:
    question_release(&q);
    return status;
}

/* ---- items ---- */

static kith_status take_cell(const ki_link *l, const char *text, kith_value_type type, kith_value *ret,
                             kith_error *err) {
    kith_value value = {.type = type};
    bool is_good = true;
    if (type == KITH_VALUE_INT) is_good = ki_parse_int64(text, &value.integer);
    if (type == KITH_VALUE_REAL) is_good = ki_parse_double(text, &value.real);
    if (type == KITH_VALUE_TEXT && !(value.text = ki_strdup(text))) return ki_fail_memory(err, 1, "a value");
    if (!is_good)
        return ki_fail(err, KITH_EFORMAT, "%s: '%.60s' is no value of type %s", l->name, text,
                       kith_value_type_name(type));
    *ret = value;
    return KITH_OK;
}

kith_status ki_pg_count_values(ki_link *l, const ki_manifest *m, const ki_where *where, int64_t column,
                               ki_count_fn *fn, void *user, kith_error *err) {
    kith_status status = KITH_OK;
    question q = {.link = l};
    if (column == KI_COLUMN_LABEL)
        ki_buffer_put(&q.sql, "select label as value, count(*) from items where ");
    else
        ki_buffer_put(&q.sql, "select attributes->>$%d::text as value, count(*) from items where ",
                      ki_pg_text(&q.values, m->columns[column - KI_COLUMN_FIRST].name));
    ki_pg_where(where, m, &q.sql, &q.values);
    ki_buffer_put(&q.sql, " group by 1");
    KI_CHECK(ask(&q, false, err));
    for (int i = 0; i < PQntuples(q.result); i++) {
        kith_value value = {0};
        int64_t n = 0;
        if (PQgetisnull(q.result, i, 0)) continue;
        ki_parse_int64(PQgetvalue(q.result, i, 1), &n);
        KI_CHECK(take_cell(l, PQgetvalue(q.result, i, 0), ki_column_type(column, m->types), &value, err));
        status = fn(user, &value, n, err);
        if (value.type == KITH_VALUE_TEXT) ki_free((char *)(uintptr_t)value.text);
        if (status != KITH_OK) goto done;
    }
done:
    question_release(&q);
    return status;
}

/* The row of the window that has the id; -1: none. */
static int find_in_window(const ki_link *l, int64_t id) {
    int low = 0, high = l->window ? PQntuples(l->window) : 0;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        int64_t found = 0;
        ki_parse_int64(PQgetvalue(l->window, middle, 0), &found);
        if (found == id) return middle;
        if (found < id)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

/* The columns of the statement are in the order of the numbers of columns (store/segment.h). Whoever asks for one item after the
 * other is given many at a time; a writer, whose items change, is not. */
static kith_status read_window(ki_link *l, const ki_manifest *m, int64_t id, kith_error *err) {
    enum { NEAR = 16, WINDOW = 512 };
    question q = {.link = l};
    const bool is_row = !l->writes && id > l->last_id && id - l->last_id <= NEAR;
    ki_pg_int(&q.values, id);
    ki_buffer_put(&q.sql, "select id, bytes, mtime_ns, path, label, hash");
    for (int64_t i = 0; i < m->n_columns; i++)
        ki_buffer_put(&q.sql, ", attributes->>$%d::text", ki_pg_text(&q.values, m->columns[i].name));
    if (is_row)
        ki_buffer_put(&q.sql, " from items where id >= $1::bigint order by id limit %d", WINDOW);
    else
        ki_buffer_put(&q.sql, " from items where id = $1::bigint");
    const kith_status status = ask(&q, false, err);
    PQclear(l->window);
    l->window = q.result;
    q.result = NULL;
    question_release(&q);
    return status;
}

kith_status ki_pg_item(ki_link *l, const ki_manifest *m, int64_t id, kith_value *ret_cells,
                       bool *ret_is_there, kith_error *err) {
    int row = l->in_snapshot ? find_in_window(l, id) : -1;
    if (row < 0) {
        KI_TRY(read_window(l, m, id, err));
        row = find_in_window(l, id);
    }
    l->last_id = id;
    *ret_is_there = row >= 0;
    for (int i = 0; row >= 0 && i < PQnfields(l->window); i++) {
        if (PQgetisnull(l->window, row, i)) continue;
        const kith_value_type type = ki_column_type(i, m->types);
        KI_TRY(take_cell(l, PQgetvalue(l->window, row, i), type, &ret_cells[i], err));
    }
    return KITH_OK;
}

kith_status ki_pg_vectors(ki_link *l, const ki_manifest *m, const int64_t *ids, int64_t n, float *ret_rows,
                          int64_t *ret_missing, kith_error *err) {
    enum { STEP = 4096 };
    kith_status status = KITH_OK;
    for (int64_t first = 0; first < n && status == KITH_OK; first += STEP) {
        const int64_t take = n - first < STEP ? n - first : STEP;
        question q = {.link = l};
        ki_pg_ints(&q.values, ids + first, take);
        ki_buffer_put(&q.sql,
                      "select embedding from unnest($1::bigint[]) with ordinality as u(i, at) left join "
                      "items on id = i order by at");
        status = ask(&q, true, err);
        for (int i = 0; status == KITH_OK && i < take; i++) {
            if (PQgetisnull(q.result, i, 0)) {
                *ret_missing = ids[first + i];
                status = KITH_ENOTFOUND;
            } else {
                status = ki_pg_get_vector(l, q.result, i, 0, m->dim, ret_rows + (first + i) * m->dim, err);
            }
        }
        question_release(&q);
    }
    return status;
}

kith_status ki_pg_labels(ki_link *l, const int64_t *ids, int64_t n, ki_arena *arena, const char **ret_labels,
                         kith_error *err) {
    kith_status status = KITH_OK;
    question q = {.link = l};
    ki_pg_ints(&q.values, ids, n);
    ki_buffer_put(&q.sql,
                  "select label from unnest($1::bigint[]) with ordinality as u(i, at) left join items on id "
                  "= i order by at");
    KI_CHECK(ask(&q, false, err));
    for (int i = 0; i < PQntuples(q.result); i++) {
        ret_labels[i] =
            PQgetisnull(q.result, i, 0) ? NULL : ki_arena_strdup(arena, PQgetvalue(q.result, i, 0));
        if (ret_labels[i] || PQgetisnull(q.result, i, 0)) continue;
        status = ki_fail_memory(err, 1, "a label");
        goto done;
    }
done:
    question_release(&q);
    return status;
}

kith_status ki_pg_stamps(ki_link *l, ki_remote_stamp_fn *fn, void *user, kith_error *err) {
    kith_status status = KITH_OK;
    question q = {.link = l};
    ki_buffer_put(&q.sql, "select id, bytes, mtime_ns, path from items order by id");
    KI_CHECK(ask(&q, true, err));
    for (int i = 0; i < PQntuples(q.result); i++)
        fn(user, (int64_t)ki_pg_get64(PQgetvalue(q.result, i, 0)),
           PQgetisnull(q.result, i, 3) ? NULL : PQgetvalue(q.result, i, 3),
           (int64_t)ki_pg_get64(PQgetvalue(q.result, i, 1)),
           (int64_t)ki_pg_get64(PQgetvalue(q.result, i, 2)));
done:
    question_release(&q);
    return status;
}

/* ---- the nearest ---- */

/* How much of the graph is looked at, and that a scan goes on while a filter lets too few through. */
static kith_status set_effort(ki_link *l, const ki_remote_ask *a, kith_error *err) {
    int64_t effort = a->wants > 0.95 ? 4 * a->k : a->k + a->k / 2;
    if (effort < LEAST_EFFORT) effort = LEAST_EFFORT;
    if (effort > MOST_EFFORT) effort = MOST_EFFORT;
    if (l->effort == (int)effort) return KITH_OK;
    question q = {.link = l};
    ki_pg_int(&q.values, effort);
    ki_buffer_put(&q.sql,
                  "select set_config('hnsw.ef_search', $1::text, false), set_config('hnsw.iterative_scan', "
                  "'relaxed_order', false)");
    const kith_status status = ask(&q, false, err);
    if (status == KITH_OK) l->effort = (int)effort;
    question_release(&q);
    return status;
}

/* Distances of whole vectors, which no index knows. A zero vector is at distance 1 from everything by cosine, as in knn/. */
static const char *const exact_sql[] = {
    "coalesce(nullif(embedding <=> $1::vector, 'NaN'::float8), 1)",
    "embedding <#> $1::vector",
    "vector_l2_squared_distance(embedding, $1::vector)",
};

static void put_nearest(const ki_manifest *m, const ki_remote_ask *a, question *q) {
    const long long dim = (long long)m->dim;
    ki_buffer_put(&q->sql, "select id, embedding");
    if (a->exact) ki_buffer_put(&q->sql, ", %s as distance", exact_sql[m->metric]);
    ki_buffer_put(&q->sql, " from items where ");
    ki_pg_where(a->where, m, &q->sql, &q->values);
    if (a->self >= 0) ki_buffer_put(&q->sql, " and id <> $%d::bigint", ki_pg_int(&q->values, a->self));
    if (a->exact)
        ki_buffer_put(&q->sql, " order by distance, id");
    else
        ki_buffer_put(&q->sql, " order by embedding::halfvec(%lld) %s $1::vector(%lld)::halfvec(%lld)", dim,
                      ki_pg_operator(m->metric), dim, dim);
    ki_buffer_put(&q->sql, " limit %lld", (long long)a->k);
}

kith_status ki_pg_nearest(ki_link *l, const ki_manifest *m, const float *query, const ki_remote_ask *a,
                          ki_candidates *ret, kith_error *err) {
    kith_status status = KITH_OK;
    question q = {.link = l};
    ki_candidates c = {0};
    if (!a->exact) KI_CHECK(set_effort(l, a, err));
    ki_pg_vector(&q.values, query, m->dim);
    put_nearest(m, a, &q);
    KI_CHECK(ask(&q, true, err));
    const int n = PQntuples(q.result);
    KI_CHECK(ki_alloc_or(&c.id, (size_t)n, sizeof *c.id, "candidates", err));
    KI_CHECK(ki_alloc_or(&c.rows, (size_t)n * (size_t)m->dim, sizeof *c.rows, "candidates", err));
    for (int i = 0; i < n; i++) {
        c.id[i] = (int64_t)ki_pg_get64(PQgetvalue(q.result, i, 0));
        KI_CHECK(ki_pg_get_vector(l, q.result, i, 1, m->dim, c.rows + i * m->dim, err));
    }
    if (a->exact && n > 0) {
        const uint64_t bits = ki_pg_get64(PQgetvalue(q.result, n - 1, 2));
        memcpy(&c.last, &bits, sizeof bits);
    }
    c.n = n;
    *ret = c;
    c = (ki_candidates){0};
done:
    ki_candidates_release(&c);
    question_release(&q);
    return status;
}
