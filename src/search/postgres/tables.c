/* Making the tables, reading what they say of the index, and commits. */
#include "search/postgres/tables.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

static const char *const operators[] = {"<=>", "<#>", "<->"};
static const char *const classes[] = {"halfvec_cosine_ops", "halfvec_ip_ops", "halfvec_l2_ops"};
const char *ki_pg_operator(kith_metric metric) { return operators[metric]; }
const char *ki_pg_operator_class(kith_metric metric) { return classes[metric]; }

/* The first number of a result; 0 when it has no row. */
static int64_t number_of(const PGresult *result) {
    int64_t value = 0;
    if (PQntuples(result) > 0) ki_parse_int64(PQgetvalue(result, 0, 0), &value);
    return value;
}

/* Runs a statement whose $1, where it has one, is the schema. */
static kith_status ask_number(ki_link *l, const char *sql, int64_t *ret, kith_error *err) {
    ki_pg_values v = {0};
    PGresult *result = NULL;
    if (strstr(sql, "$1")) ki_pg_text(&v, l->schema);
    const kith_status status = ki_pg_run(l, sql, &v, false, &result, err);
    if (status == KITH_OK) *ret = number_of(result);
    PQclear(result);
    ki_pg_values_release(&v);
    return status;
}

static kith_status run(ki_link *l, kith_error *err, const char *fmt, ...) KITH_PRINTF(3, 4);
static kith_status run(ki_link *l, kith_error *err, const char *fmt, ...) {
    ki_buffer sql = {.err = err};
    va_list ap;
    va_start(ap, fmt);
    ki_buffer_vput(&sql, fmt, ap);
    va_end(ap);
    ki_buffer_add(&sql, "", 1);
    const kith_status status =
        sql.status != KITH_OK ? sql.status : ki_pg_run(l, sql.data, NULL, false, NULL, err);
    ki_buffer_release(&sql);
    return status;
}

/* ---- making ---- */

/* 0.8 has halfvec and scans that go on until a filter has let enough through. */
static kith_status need_extension(ki_link *l, kith_error *err) {
    static const char version[] =
        "select coalesce((select split_part(extversion, '.', 1)::int * 1000 + split_part(extversion, '.', "
        "2)::int "
        "from pg_extension where extname = 'vector'), -1)";
    int64_t found = 0;
    KI_TRY(ask_number(l, version, &found, err));
    if (found < 0) {
        kith_error why = {0};
        if (ki_pg_run(l, "create extension vector with schema public", NULL, false, NULL, &why) != KITH_OK) {
            ki_fail(err, KITH_EUNSUPPORTED, "the extension vector (pgvector) is missing: %.300s",
                    why.message);
            return ki_hint(
                err, KITH_EUNSUPPORTED,
                "install it at the server (postgresql-17-pgvector); its administrator may have to say: "
                "create extension vector");
        }
        KI_TRY(ask_number(l, version, &found, err));
        KI_TRY(ki_pg_session(l, err));
    }
    if (found >= 8) return KITH_OK;
    ki_fail(err, KITH_EUNSUPPORTED, "%s: pgvector is %lld.%lld; wanted 0.8 or newer", l->name,
            (long long)(found / 1000), (long long)(found % 1000));
    return ki_hint(err, KITH_EUNSUPPORTED, "update it, then: alter extension vector update");
}

static kith_status make_schema(ki_link *l, kith_error *err) {
    int64_t n = 0;
    KI_TRY(ask_number(l, "select count(*) from pg_namespace where nspname = $1", &n, err));
    if (n > 0) return KITH_OK;
    char *name = PQescapeIdentifier(l->conn, l->schema, strlen(l->schema));
    if (!name) return ki_fail_memory(err, strlen(l->schema), "a name");
    const kith_status status = run(l, err, "create schema %s", name);
    PQfreemem(name);
    return status;
}

static const char n_tables[] =
    "select count(*) from pg_class c join pg_namespace n on n.oid = relnamespace where nspname = $1 and "
    "relname = ";

static kith_status has_table(ki_link *l, const char *table, int64_t *ret, kith_error *err) {
    char sql[256];
    ki_snprintf(sql, sizeof sql, "%s'%s'", n_tables, table);
    return ask_number(l, sql, ret, err);
}

/* A table that is there already was made by somebody for shards (docs/postgresql.md). */
static kith_status check_items(ki_link *l, int64_t dim, kith_error *err) {
    char wanted[32];
    PGresult *result = NULL;
    int64_t n = 0;
    KI_TRY(ki_pg_run(l, "select " KI_PG_COLUMNS " from items limit 0", NULL, false, NULL, err));
    KI_TRY(ki_pg_run(l,
                     "select format_type(atttypid, atttypmod) from pg_attribute where attrelid = "
                     "'items'::regclass and attname = 'embedding'",
                     NULL, false, &result, err));
    ki_snprintf(wanted, sizeof wanted, "vector(%lld)", (long long)dim);
    kith_status status = KITH_OK;
    if (strcmp(PQgetvalue(result, 0, 0), wanted) != 0)
        status = ki_fail(err, KITH_EINVAL, "%s: items.embedding is a %s; wanted a %s", l->name,
                         PQgetvalue(result, 0, 0), wanted);
    PQclear(result);
    if (status == KITH_OK)
        status = ask_number(l, "select count(*) from (select 1 from items limit 1) i", &n, err);
    if (status == KITH_OK && n > 0)
        status = ki_fail(err, KITH_EINVAL,
                         "%s: the table items has rows, and no table about says what they are", l->name);
    return status;
}

static kith_status make_items(ki_link *l, int64_t dim, kith_error *err) {
    int64_t n = 0;
    KI_TRY(has_table(l, "items", &n, err));
    if (n > 0) return check_items(l, dim, err);
    KI_TRY(run(
        l, err,
        "create table items (id bigint primary key, path text collate \"C\", label text collate \"C\", hash "
        "text, bytes bigint not null, mtime_ns bigint not null, attributes jsonb not null, embedding "
        "vector(%lld) not null)",
        (long long)dim));
    /* The planner needs to know nothing of vectors, and reads them only where they are looked at. */
    return run(l, err, "alter table items alter column embedding set statistics 0");
}

static kith_status write_about(ki_link *l, const char *sql, const ki_manifest *m, int64_t n_items,
                               kith_error *err) {
    char *text = NULL;
    size_t n = 0;
    ki_pg_values v = {0};
    KI_TRY(ki_manifest_print(m, &text, &n, err));
    ki_pg_int(&v, m->generation);
    ki_pg_int(&v, n_items);
    ki_pg_text(&v, m->model);
    const char *whole = ki_arena_strndup(&v.arena, text, n); /* it has no NUL */
    if (!whole) v.status = KITH_ENOMEM;
    ki_pg_text(&v, whole);
    const kith_status status = ki_pg_run(l, sql, &v, false, NULL, err);
    ki_pg_values_release(&v);
    ki_free(text);
    return status;
}

kith_status ki_pg_create(ki_link *l, const ki_manifest *m, kith_error *err) {
    int64_t n = 0;
    if (m->dim > KI_PG_MOST_DIM)
        return ki_fail(err, KITH_EINVAL, "dim is %lld; PostgreSQL's vectors have up to %d values",
                       (long long)m->dim, KI_PG_MOST_DIM);
    KI_TRY(ki_pg_change(l, err));
    KI_TRY(has_table(l, "about", &n, err));
    if (n > 0) {
        ki_fail(err, KITH_EINVAL, "%s: there is an index already", l->name);
        return ki_hint(err, KITH_EINVAL,
                       "bring it up to date with --sync, or give this one another name: …#name");
    }
    KI_TRY(need_extension(l, err));
    KI_TRY(make_schema(l, err));
    KI_TRY(make_items(l, m->dim, err));
    KI_TRY(run(
        l, err,
        "create table about (one boolean primary key default true check (one), generation bigint not null, "
        "items bigint not null, model text not null, manifest text not null)"));
    return write_about(l, "insert into about (generation, items, model, manifest) values ($1, $2, $3, $4)", m,
                       0, err);
}

/* ---- what is there ---- */

/* Without it the server finds no table and says that there is none. */
static kith_status need_usage(ki_link *l, kith_error *err) {
    int64_t may = 0;
    KI_TRY(ask_number(l, "select has_schema_privilege($1, 'usage')::int", &may, err));
    if (may) return KITH_OK;
    ki_fail(err, KITH_EIO, "%s: permission denied for schema %s", l->name, l->schema);
    return ki_hint(err, KITH_EIO, KI_PG_ASK_OWNER);
}

static kith_status fail_none(const ki_link *l, kith_error *err) {
    ki_fail(err, KITH_ENOTFOUND, "%s: there is no index of kith", l->name);
    return ki_hint(err, KITH_ENOTFOUND, "make it with: kith index PHOTOS --to ADDRESS --model RUN");
}

/* A graph over the table, or, where it is one of shards, made by kith for those that are here; shards elsewhere have their own. */
static const char has_graph_sql[] =
    "select count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_index i on "
    "i.indexrelid = "
    "c.oid where nspname = $1 and c.relname = 'items_graph' and i.indisvalid";

/* Shards on other servers commit one after the other, before `about` does: a crash between leaves rows that it does not count.
 * They are taken over: whoever writes counts anew, and gives no id twice. */
static kith_status count_shards(ki_link *l, ki_remote_state *state, kith_error *err) {
    int64_t are_shards = 0;
    KI_TRY(ask_number(l, "select (relkind <> 'r')::int from pg_class where oid = 'items'::regclass",
                      &are_shards, err));
    if (!l->writes || !are_shards) return KITH_OK;
    KI_TRY(ask_number(l, "select count(*) from items", &state->n_items, err));
    return ask_number(l, "select id + 1 from items order by id desc limit 1", &state->next_id, err);
}

kith_status ki_pg_state(ki_link *l, ki_remote_state *ret, kith_error *err) {
    kith_status status = KITH_OK;
    PGresult *result = NULL;
    int64_t n = 0, has_graph = 0, bytes = 0;
    KI_CHECK(ki_pg_snapshot(l, err));
    KI_CHECK(has_table(l, "about", &n, err));
    if (n == 0) return fail_none(l, err);
    KI_CHECK(need_usage(l, err));
    KI_CHECK(ki_pg_run(l, "select items, manifest from about", NULL, false, &result, err));
    if (PQntuples(result) != 1) {
        status = fail_none(l, err);
        goto done;
    }
    KI_CHECK(ask_number(l, has_graph_sql, &has_graph, err));
    KI_CHECK(ask_number(l, "select pg_total_relation_size('items')", &bytes, err));
    *ret = (ki_remote_state){.n_items = number_of(result), .has_graph = has_graph > 0, .bytes = bytes};
    ret->manifest = ki_strdup(PQgetvalue(result, 0, 1));
    if (!ret->manifest) status = ki_fail_memory(err, 1, "a manifest");
    if (status == KITH_OK) status = count_shards(l, ret, err);
done:
    PQclear(result);
    return status;
}

kith_status ki_pg_generation(ki_link *l, int64_t *ret, kith_error *err) {
    ki_pg_snapshot_end(l);
    return ask_number(l, "select generation from about", ret, err);
}

/* ---- commits ---- */

static kith_status make_graph(ki_link *l, const ki_remote_commit *c, kith_error *err) {
    char sql[256];
    const ki_manifest *m = c->manifest;
    if (!c->wants_graph || m->dim > KI_PG_MOST_GRAPH_DIM) return KITH_OK;
    ki_snprintf(sql, sizeof sql,
                "create index if not exists items_graph on items using hnsw ((embedding::halfvec(%lld)) %s)",
                (long long)m->dim, ki_pg_operator_class(m->metric));
    return ki_pg_run_long(l, sql, c->tally, err);
}

/* Was a commit whose answer got lost made? */
static bool is_made(ki_link *l, int64_t generation) {
    int64_t found = 0;
    kith_error why;
    const bool writes = l->writes;
    l->writes = false; /* the connection may be made anew */
    const bool is_known = ki_pg_generation(l, &found, &why) == KITH_OK;
    l->writes = writes;
    return is_known && found == generation;
}

static kith_status end_change(ki_link *l, int64_t generation, kith_error *err) {
    kith_status status = ki_pg_run(l, "commit", NULL, false, NULL, err);
    l->in_change = false;
    if (status == KITH_EIO && PQstatus(l->conn) == CONNECTION_BAD && is_made(l, generation))
        return ki_pg_lock(l, err); /* the lock went with the connection */
    return status;
}

kith_status ki_pg_commit(ki_link *l, const ki_remote_commit *c, kith_error *err) {
    KI_TRY(ki_pg_change(l, err));
    KI_TRY(make_graph(l, c, err));
    KI_TRY(write_about(l, "update about set generation = $1, items = $2, model = $3, manifest = $4",
                       c->manifest, c->n_items, err));
    KI_TRY(end_change(l, c->manifest->generation, err));
    if (c->compacts) KI_TRY(ki_pg_run_long(l, "vacuum items", c->tally, err));
    return ki_pg_run_long(l, "analyze items", c->tally, err);
}
