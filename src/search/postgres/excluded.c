/* Files that were removed by hand, in a table of their own. */
#include "base/alloc.h"
#include "base/text.h"
#include "search/postgres/tables.h"

/* An index of an older kith has none. */
static kith_status make_table(ki_link *l, kith_error *err) {
    KI_TRY(ki_pg_change(l, err));
    return ki_pg_run(
        l,
        "create table if not exists excluded (id bigint primary key, path text collate \"C\" not "
        "null, hash text)",
        NULL, false, NULL, err);
}

/* Of one path the last counts. */
static kith_status drop_doubles(ki_link *l, kith_error *err) {
    return ki_pg_run(l,
                     "delete from excluded e where exists (select from excluded o where o.path = e.path and "
                     "o.id > e.id)",
                     NULL, false, NULL, err);
}

kith_status ki_pg_exclude(ki_link *l, const int64_t *ids, int64_t n, kith_error *err) {
    ki_pg_values v = {0};
    ki_pg_ints(&v, ids, n);
    kith_status status = make_table(l, err);
    if (status == KITH_OK)
        status = ki_pg_run(l,
                           "insert into excluded select id, path, hash from items where id = "
                           "any($1::bigint[]) and path is not null",
                           &v, false, NULL, err);
    if (status == KITH_OK) status = drop_doubles(l, err);
    ki_pg_values_release(&v);
    return status;
}

kith_status ki_pg_exclude_file(ki_link *l, const ki_file_record *file, kith_error *err) {
    ki_pg_values v = {0};
    ki_pg_int(&v, file->id);
    ki_pg_text(&v, file->path);
    ki_pg_text(&v, file->hash);
    kith_status status = make_table(l, err);
    if (status == KITH_OK)
        status =
            ki_pg_run(l,
                      "insert into excluded as e values ($1::bigint, $2, $3) on conflict (id) do update set "
                      "path = $2",
                      &v, false, NULL, err);
    ki_pg_values_release(&v);
    return status;
}

kith_status ki_pg_include(ki_link *l, int64_t first_id, kith_error *err) {
    ki_pg_values v = {0};
    ki_pg_int(&v, first_id);
    kith_status status = make_table(l, err);
    if (status == KITH_OK)
        status =
            ki_pg_run(l, "delete from excluded where path in (select path from items where id >= $1::bigint)",
                      &v, false, NULL, err);
    ki_pg_values_release(&v);
    return status;
}

kith_status ki_pg_excluded(ki_link *l, ki_records *ret_excluded, kith_error *err) {
    kith_status status = KITH_OK;
    ki_records found = {0};
    PGresult *result = NULL;
    KI_CHECK(ki_pg_snapshot(l, err));
    KI_CHECK(ki_pg_run(l, "select id, path, hash from excluded order by id", NULL, false, &result, err));
    for (int i = 0; i < PQntuples(result); i++) {
        ki_file_record file = {.path = PQgetvalue(result, i, 1),
                               .hash = PQgetisnull(result, i, 2) ? NULL : PQgetvalue(result, i, 2)};
        ki_parse_int64(PQgetvalue(result, i, 0), &file.id);
        KI_CHECK(ki_records_add(&found, &file, false, err));
    }
    *ret_excluded = found;
    found = (ki_records){0};
done:
    ki_records_release(&found);
    PQclear(result);
    return status;
}

kith_status ki_pg_count_excluded(ki_link *l, int64_t *ret_n, kith_error *err) {
    PGresult *result = NULL;
    KI_TRY(make_table(l, err));
    KI_TRY(ki_pg_run(l, "select count(*) from excluded", NULL, false, &result, err));
    ki_parse_int64(PQgetvalue(result, 0, 0), ret_n);
    PQclear(result);
    return KITH_OK;
}
