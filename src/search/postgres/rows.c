/* Rows go to the server by COPY in its binary form: nothing is turned into text and back. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "io/json.h"
#include "search/postgres/tables.h"

enum { SEND_BYTES = 1 << 18, N_FIELDS = 8 };

/* ---- the binary form ---- */

static void put16(ki_buffer *b, int value) {
    const char bytes[2] = {(char)((unsigned)value >> 8), (char)value};
    ki_buffer_add(b, bytes, sizeof bytes);
}

static void put32(ki_buffer *b, int32_t value) {
    put16(b, (int)((uint32_t)value >> 16));
    put16(b, (int)((uint32_t)value & 0xffff));
}

/* A field begins with its bytes, -1 for null. */
static void put_int(ki_buffer *b, int64_t value) {
    put32(b, 8);
    put32(b, (int32_t)(value >> 32));
    put32(b, (int32_t)(value & 0xffffffff));
}

static void put_text(ki_buffer *b, const char *text) {
    put32(b, text ? (int32_t)strlen(text) : -1);
    if (text) ki_buffer_add(b, text, strlen(text));
}

static void put_json(ki_buffer *b, const char *text) {
    put32(b, (int32_t)strlen(text) + 1);
    ki_buffer_add(b, "\1", 1); /* the version of the form */
    ki_buffer_add(b, text, strlen(text));
}

static void put_vector(ki_buffer *b, const float *row, int64_t dim, char *scratch) {
    put32(b, (int32_t)ki_pg_vector_bytes(dim));
    ki_pg_put_vector(scratch, row, dim);
    ki_buffer_add(b, scratch, ki_pg_vector_bytes(dim));
}

/* ---- items ---- */

static bool is_text(const char *text) { return !text || ki_is_utf8(text); }

static kith_status check_texts(const ki_manifest *m, const kith_index_item *item, int64_t i,
                               kith_error *err) {
    const char *wrong = !is_text(item->path)    ? "path"
                        : !is_text(item->label) ? "label"
                        : !is_text(item->hash)  ? "hash"
                                                : NULL;
    for (int64_t j = 0; item->values && j < m->n_columns; j++) {
        if (item->values[j].type == KITH_VALUE_TEXT && !is_text(item->values[j].text))
            wrong = m->columns[j].name;
    }
    if (!wrong) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "item %lld, %.200s: its %s is not text in UTF-8, and PostgreSQL keeps no other",
            (long long)i, item->path && is_text(item->path) ? item->path : "?", wrong);
    return ki_hint(err, KITH_EINVAL, "rename it (convmv -f latin1 -t utf8 renames files), or leave it out");
}

/* {"year": 2020}: values that are there. */
static kith_status print_values(kith_json *json, const ki_manifest *m, const kith_value *values,
                                const char **ret_text, kith_error *err) {
    kith_json_reset(json);
    kith_json_object_begin(json);
    for (int64_t j = 0; values && j < m->n_columns; j++) {
        if (values[j].type == KITH_VALUE_NONE) continue;
        kith_json_key(json, m->columns[j].name);
        if (values[j].type == KITH_VALUE_INT) kith_json_int(json, values[j].integer);
        if (values[j].type == KITH_VALUE_REAL) kith_json_real(json, values[j].real);
        if (values[j].type == KITH_VALUE_TEXT) kith_json_string(json, values[j].text);
    }
    kith_json_object_end(json);
    return kith_json_finish(json, ret_text, err);
}

/* ---- COPY ---- */

typedef struct copying {
    ki_link *link;
    const ki_manifest *manifest;
    ki_buffer out;
    kith_json *json;
    char *scratch; /* of a vector */
} copying;

static kith_status send(copying *c, kith_error *err) {
    KI_TRY(c->out.status);
    if (PQputCopyData(c->link->conn, c->out.data, (int)c->out.n) != 1) return ki_pg_fail(c->link, NULL, err);
    c->out.n = 0;
    return KITH_OK;
}

static kith_status put_row(copying *c, const float *row, int64_t id, const kith_index_item *item,
                           kith_error *err) {
    static const kith_index_item nothing = {.bytes = -1, .mtime_ns = -1};
    const char *attributes = NULL;
    if (!item) item = &nothing;
    KI_TRY(print_values(c->json, c->manifest, item->values, &attributes, err));
    put16(&c->out, N_FIELDS);
    put_int(&c->out, id);
    put_text(&c->out, item->path);
    put_text(&c->out, item->label);
    put_text(&c->out, item->hash);
    put_int(&c->out, item->bytes);
    put_int(&c->out, item->mtime_ns);
    put_json(&c->out, attributes);
    put_vector(&c->out, row, c->manifest->dim, c->scratch);
    return c->out.n < SEND_BYTES ? KITH_OK : send(c, err);
}

static kith_status put_rows(copying *c, const float *rows, int64_t n, const kith_index_item *items,
                            int64_t first_id, kith_error *err) {
    static const char head[] =
        "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0"; /* the literal's own NUL is the last byte */
    ki_buffer_add(&c->out, head, sizeof head);
    for (int64_t i = 0; i < n; i++)
        KI_TRY(put_row(c, rows + i * c->manifest->dim, first_id + i, items ? &items[i] : NULL, err));
    put16(&c->out, -1);
    return send(c, err);
}

/* What the server makes of the rows; with a failure of ours it is told to drop them. */
static kith_status end_copy(copying *c, kith_status status, kith_error *err) {
    PGconn *conn = c->link->conn;
    const bool is_told = PQputCopyEnd(conn, status == KITH_OK ? NULL : "stopped") == 1;
    if (!is_told && status == KITH_OK) status = ki_pg_fail(c->link, NULL, err);
    for (PGresult *result; (result = PQgetResult(conn));) {
        const ExecStatusType found = PQresultStatus(result);
        /* The server's own words are better than "the connection was closed". */
        if (found == PGRES_FATAL_ERROR && (status == KITH_OK || status == KITH_EIO))
            status = ki_pg_fail(c->link, result, err);
        PQclear(result);
        if (PQstatus(conn) == CONNECTION_BAD) break;
    }
    return status;
}

kith_status ki_pg_add(ki_link *l, const ki_manifest *m, const float *rows, int64_t n,
                      const kith_index_item *items, int64_t first_id, kith_error *err) {
    kith_status status = KITH_OK;
    copying c = {.link = l, .manifest = m, .out = {.err = err}};
    for (int64_t i = 0; items && i < n; i++) KI_TRY(check_texts(m, &items[i], i, err));
    KI_CHECK(kith_json_new(&c.json, err));
    KI_CHECK(ki_alloc_or(&c.scratch, ki_pg_vector_bytes(m->dim), 1, "a vector", err));
    KI_CHECK(ki_pg_change(l, err));
    KI_CHECK(
        ki_pg_run(l, "copy items (" KI_PG_COLUMNS ") from stdin (format binary)", NULL, false, NULL, err));
    status = end_copy(&c, put_rows(&c, rows, n, items, first_id, err), err);
done:
    ki_buffer_release(&c.out);
    kith_json_free(c.json);
    ki_free(c.scratch);
    return status;
}

/* ---- removing, new dates, new paths ---- */

kith_status ki_pg_missing(ki_link *l, const int64_t *ids, int64_t n, int64_t *ret_missing, kith_error *err) {
    ki_pg_values v = {0};
    PGresult *missing = NULL;
    ki_pg_ints(&v, ids, n);
    kith_status status =
        ki_pg_run(l,
                  "select i from unnest($1::bigint[]) with ordinality as u(i, at) where not exists (select "
                  "from items where id = i) order by at limit 1",
                  &v, false, &missing, err);
    if (status == KITH_OK && PQntuples(missing) > 0) {
        ki_parse_int64(PQgetvalue(missing, 0, 0), ret_missing);
        status = KITH_ENOTFOUND;
    }
    PQclear(missing);
    ki_pg_values_release(&v);
    return status;
}

kith_status ki_pg_remove(ki_link *l, const int64_t *ids, int64_t n, int64_t *ret_n_removed,
                         int64_t *ret_missing, kith_error *err) {
    kith_status status = KITH_OK;
    ki_pg_values v = {0};
    PGresult *removed = NULL;
    ki_pg_ints(&v, ids, n);
    KI_CHECK(ki_pg_change(l, err));
    KI_CHECK(ki_pg_missing(l, ids, n, ret_missing, err));
    KI_CHECK(ki_pg_run(l, "delete from items where id = any($1::bigint[])", &v, false, &removed, err));
    ki_parse_int64(PQcmdTuples(removed), ret_n_removed);
done:
    PQclear(removed);
    ki_pg_values_release(&v);
    return status;
}

kith_status ki_pg_restamp(ki_link *l, int64_t id, int64_t bytes, int64_t mtime_ns, bool *ret_is_there,
                          kith_error *err) {
    ki_pg_values v = {0};
    PGresult *result = NULL;
    ki_pg_int(&v, id);
    ki_pg_int(&v, bytes);
    ki_pg_int(&v, mtime_ns);
    kith_status status = ki_pg_change(l, err);
    if (status == KITH_OK)
        status =
            ki_pg_run(l, "update items set bytes = $2::bigint, mtime_ns = $3::bigint where id = $1::bigint",
                      &v, false, &result, err);
    if (status == KITH_OK) *ret_is_there = strcmp(PQcmdTuples(result), "0") != 0;
    PQclear(result);
    ki_pg_values_release(&v);
    return status;
}

kith_status ki_pg_move(ki_link *l, const ki_file_record *move, int64_t bytes, int64_t mtime_ns,
                       bool *ret_is_there, kith_error *err) {
    static const ki_manifest no_columns;
    const kith_index_item item = {.path = move->path, .label = move->label};
    ki_pg_values v = {0};
    PGresult *result = NULL;
    KI_TRY(check_texts(&no_columns, &item, move->id, err));
    ki_pg_int(&v, move->id);
    ki_pg_text(&v, move->path);
    ki_pg_text(&v, move->label);
    ki_pg_int(&v, bytes);
    ki_pg_int(&v, mtime_ns);
    kith_status status = ki_pg_change(l, err);
    if (status == KITH_OK)
        status = ki_pg_run(l,
                           "update items set path = $2, label = $3, bytes = $4::bigint, mtime_ns = "
                           "$5::bigint where id = $1::bigint",
                           &v, false, &result, err);
    if (status == KITH_OK) *ret_is_there = strcmp(PQcmdTuples(result), "0") != 0;
    PQclear(result);
    ki_pg_values_release(&v);
    return status;
}
