/* Connecting, running statements, and what becomes of their failures. */
#include "search/postgres/link.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/redact.h"
#include "base/text.h"

static const int reconnect_ms[] = {0, 200, 500, 1000, 2000}; /* a server that is restarted is back soon */
enum {
    N_RECONNECTS = sizeof reconnect_ms / sizeof reconnect_ms[0],
    ASK_MS = 200,
    LOCK_TRIES = 20,
    LOCK_MS = 50
};

/* ---- failures ---- */

/* The first line of a message, without the newline. */
static int first_line(const char *text) { return (int)strcspn(text, "\n"); }

static kith_status fail_lost(ki_link *l, kith_error *err) {
    const char *text = PQerrorMessage(l->conn);
    const bool was_changing = l->in_change;
    ki_fail(err, KITH_EIO, "%s: %.*s", l->name, first_line(text), text);
    l->in_change = l->in_snapshot = false;
    if (!was_changing) return ki_hint(err, KITH_EIO, "is the server running, and is the address right?");
    return ki_hint(err, KITH_EIO,
                   "the index is as it was at the last commit; the same command again goes on from there");
}

/* Classes of SQLSTATE that people can do something about. */
static const struct {
    const char *state;
    kith_status status;
    const char *hint;
} kinds[] = {
    {"53100", KITH_EIO, "the index is as it was at the last commit; make room at the server, then try again"},
    {"53", KITH_EIO, "the server is short of something; the index is as it was at the last commit"},
    {"42501", KITH_EIO, KI_PG_ASK_OWNER},
    {"25006", KITH_EIO, "this server only reads; wanted the one that is written to"},
    {"57014", KITH_ECANCELED, ""},
    {"57P", KITH_EIO, "the server ended the connection; try again"},
    {"58", KITH_EIO, "the index is as it was at the last commit"},
    {"42P01", KITH_EFORMAT, "the tables of the index are not as kith made them"},
    {"42703", KITH_EFORMAT, "the tables of the index are not as kith made them"},
};

kith_status ki_pg_fail(ki_link *l, const PGresult *result, kith_error *err) {
    if (!result || PQstatus(l->conn) == CONNECTION_BAD) return fail_lost(l, err);
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (!text) text = PQresultErrorMessage(result);
    for (size_t i = 0; state && i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strncmp(state, kinds[i].state, strlen(kinds[i].state)) != 0) continue;
        ki_fail(err, kinds[i].status, "%s: %.*s", l->name, first_line(text), text);
        return ki_hint(err, kinds[i].status, "%s", kinds[i].hint);
    }
    return ki_fail(err, KITH_EBACKEND, "%s: %.*s (%s)", l->name, first_line(text), text,
                   state ? state : "no code");
}

/* ---- statements ---- */

static PGresult *execute(ki_link *l, const char *sql, const ki_pg_values *v, bool is_binary) {
    return PQexecParams(l->conn, sql, v ? v->n : 0, NULL, v ? v->value : NULL, v ? v->bytes : NULL,
                        v ? v->is_binary : NULL, is_binary);
}

static bool is_good(const PGresult *result) {
    const ExecStatusType status = PQresultStatus(result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_COPY_IN;
}

/* ---- connecting ---- */

/* libkith never prints. */
static void ignore_notice(void *user, const PGresult *result) {
    (void)user;
    (void)result;
}

/* What libpq says of an address that it cannot read may quote the password in it. */
static kith_status check_address(const char *address, kith_error *err) {
    char *why = NULL;
    PQconninfoOption *options = PQconninfoParse(address, &why);
    bool is_readable = options != NULL;
    for (const PQconninfoOption *o = options; o && o->keyword; o++) {
        /* What is no port may be a part of a password. */
        if (strcmp(o->keyword, "port") == 0 && o->val && o->val[strspn(o->val, "0123456789,")])
            is_readable = false;
    }
    PQconninfoFree(options);
    PQfreemem(why);
    if (is_readable) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "the address of the server cannot be read");
    return ki_hint(err, KITH_EINVAL,
                   "wanted postgresql://user@host:5432/database#index, with %%XX for unusual characters");
}

/* postgresql://host/db#name: the name of the index is ours, the rest is libpq's. */
static kith_status split(ki_link *l, const char *address, kith_error *err) {
    static const char signs[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
    l->address = ki_strdup(address);
    if (!l->address) return ki_fail_memory(err, strlen(address), "an address");
    KI_TRY(ki_address_take_password(l->address, &l->password, err));
    char *hash = strrchr(l->address, '#');
    if (hash && strpbrk(hash, "@/")) hash = NULL; /* no name */
    const char *name = hash ? hash + 1 : "kith";
    if (!*name || (*name >= '0' && *name <= '9') || name[strspn(name, signs)] ||
        strlen(name) > KI_PG_MOST_NAME || strncmp(name, "pg_", 3) == 0)
        return ki_fail(err, KITH_EINVAL,
                       "'%.80s' cannot be the name of an index on PostgreSQL; wanted up to %d small letters, "
                       "digits and _, the first no digit, and not pg_",
                       name, KI_PG_MOST_NAME);
    ki_snprintf(l->schema, sizeof l->schema, "%s", name);
    ki_snprintf(l->name, sizeof l->name, "PostgreSQL");
    if (hash) *hash = '\0';
    return check_address(l->address, err);
}

static void name_link(ki_link *l) {
    const char *host = PQhost(l->conn), *port = PQport(l->conn), *db = PQdb(l->conn);
    if (host && port && db) /* of several hosts libpq knows which one when it is connected */
        ki_snprintf(l->name, sizeof l->name, "%s:%s/%s#%s", host, port, db, l->schema);
}

/* What is said before `dbname` counts only where the address does not say otherwise. */
static PGconn *connect_once(const ki_link *l) {
    const char *const keys[] = {"connect_timeout",
                                "keepalives_idle",
                                "keepalives_interval",
                                "keepalives_count",
                                "tcp_user_timeout",
                                "dbname",
                                "client_encoding",
                                "fallback_application_name",
                                l->password ? "password" : NULL,
                                NULL};
    const char *const values[] = {getenv("PGCONNECT_TIMEOUT") ? NULL : "15",
                                  "30",
                                  "10",
                                  "3",
                                  "60000",
                                  l->address,
                                  "UTF8",
                                  "kith",
                                  l->password,
                                  NULL};
    return PQconnectdbParams(keys, values, 1);
}

kith_status ki_pg_session(ki_link *l, kith_error *err) {
    static const char sql[] =
        "select set_config('search_path', quote_ident($1) || coalesce(', ' || (select quote_ident(nspname) "
        "from "
        "pg_extension e join pg_namespace n on n.oid = e.extnamespace where extname = 'vector'), ''), "
        "false), "
        "set_config('jit', 'off', false)";
    ki_pg_values v = {0};
    ki_pg_text(&v, l->schema);
    PGresult *result = v.status == KITH_OK ? execute(l, sql, &v, false) : NULL;
    const kith_status status = v.status != KITH_OK ? ki_fail_memory(err, 1, "a statement's values")
                               : is_good(result)   ? KITH_OK
                                                   : ki_pg_fail(l, result, err);
    PQclear(result);
    ki_pg_values_release(&v);
    l->effort = 0;
    return status;
}

static void forget_window(ki_link *l) {
    PQclear(l->window);
    l->window = NULL;
}

static kith_status connect(ki_link *l, kith_error *err) {
    forget_window(l);
    PQfinish(l->conn);
    l->conn = connect_once(l);
    l->in_change = l->in_snapshot = false;
    if (!l->conn) return ki_fail_memory(err, 1, "a connection");
    name_link(l);
    if (PQstatus(l->conn) != CONNECTION_OK) return fail_lost(l, err);
    PQsetNoticeReceiver(l->conn, ignore_notice, NULL);
    return ki_pg_session(l, err);
}

static void pause_ms(int ms) {
    const struct timespec pause = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&pause, NULL);
}

static kith_status reconnect(ki_link *l, kith_error *err) {
    kith_status status = KITH_EIO;
    for (int i = 0; i < N_RECONNECTS && status == KITH_EIO; i++) {
        pause_ms(reconnect_ms[i]);
        status = connect(l, err);
    }
    return status;
}

static kith_status try_lock(ki_link *l, bool *ret_is_locked, kith_error *err) {
    ki_pg_values v = {0};
    PGresult *result = NULL;
    ki_pg_text(&v, l->schema);
    const kith_status status =
        ki_pg_run(l, "select pg_try_advisory_lock(hashtext('kith'), hashtext($1))", &v, false, &result, err);
    if (status == KITH_OK) *ret_is_locked = PQgetvalue(result, 0, 0)[0] == 't';
    PQclear(result);
    ki_pg_values_release(&v);
    return status;
}

/* The server may need a moment to see that the process before has gone. */
kith_status ki_pg_lock(ki_link *l, kith_error *err) {
    bool is_locked = false;
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (i > 0) pause_ms(LOCK_MS);
        KI_TRY(try_lock(l, &is_locked, err));
        if (is_locked) return KITH_OK;
    }
    ki_fail(err, KITH_EINVAL, "%s is being written by another process", l->name);
    return ki_hint(err, KITH_EINVAL, "wait until it has finished");
}

kith_status ki_pg_open(const char *address, bool writes, ki_link **ret_link, kith_error *err) {
    kith_status status = KITH_OK;
    ki_link *l = NULL;
    KI_TRY(ki_zalloc_or(&l, 1, sizeof *l, "a connection", err));
    KI_CHECK(split(l, address, err));
    KI_CHECK(connect(l, err));
    l->writes = writes;
    if (writes) KI_CHECK(ki_pg_lock(l, err));
    *ret_link = l;
    l = NULL;
done:
    ki_pg_close(l);
    return status;
}

/* The server ends a session some time after its client has gone; the next writer should not have to wait for that. */
static void unlock(ki_link *l) {
    if (!l->writes || PQstatus(l->conn) != CONNECTION_OK || PQtransactionStatus(l->conn) == PQTRANS_ACTIVE)
        return;
    if (l->in_change) PQclear(PQexec(l->conn, "rollback"));
    PQclear(PQexec(l->conn, "select pg_advisory_unlock_all()"));
}

void ki_pg_close(ki_link *l) {
    if (!l) return;
    unlock(l);
    PQclear(l->window);
    PQfinish(l->conn);
    if (l->password) explicit_bzero(l->password, strlen(l->password));
    ki_free(l->password);
    ki_free(l->address);
    ki_free(l);
}

const char *ki_pg_name(const ki_link *l) { return l->name; }

/* ---- reading and changing ---- */

kith_status ki_pg_run(ki_link *l, const char *sql, const ki_pg_values *v, bool is_binary,
                      PGresult **ret_result, kith_error *err) {
    if (v && v->status != KITH_OK) return ki_fail_memory(err, 1, "a statement's values");
    PGresult *result = execute(l, sql, v, is_binary);
    /* Only what reads is asked again: a change is gone with its connection, and so is the writer's lock. */
    if (!is_good(result) && PQstatus(l->conn) == CONNECTION_BAD && !l->writes) {
        const bool had_snapshot = l->in_snapshot;
        PQclear(result);
        result = NULL;
        KI_TRY(reconnect(l, err));
        if (had_snapshot) KI_TRY(ki_pg_snapshot(l, err));
        result = execute(l, sql, v, is_binary);
    }
    kith_status status = is_good(result) ? KITH_OK : ki_pg_fail(l, result, err);
    /* A transaction that failed answers nothing more. */
    if (status != KITH_OK && l->in_snapshot) ki_pg_snapshot_end(l);
    if (status == KITH_OK && ret_result) {
        *ret_result = result;
        result = NULL;
    }
    PQclear(result);
    return status;
}

/* Waits for the result of what was sent. */
static kith_status wait_long(ki_link *l, ki_tally *tally, kith_error *err) {
    bool is_stopped = false;
    while (PQisBusy(l->conn)) {
        struct pollfd socket = {.fd = PQsocket(l->conn), .events = POLLIN};
        poll(&socket, 1, ASK_MS);
        if (!PQconsumeInput(l->conn)) return fail_lost(l, err);
        if (is_stopped || ki_tally_add(tally, 0, NULL) == KITH_OK) continue;
        char text[256];
        PGcancel *cancel = PQgetCancel(l->conn);
        if (cancel) PQcancel(cancel, text, sizeof text);
        PQfreeCancel(cancel);
        is_stopped = true;
    }
    return KITH_OK;
}

kith_status ki_pg_run_long(ki_link *l, const char *sql, ki_tally *tally, kith_error *err) {
    if (!PQsendQueryParams(l->conn, sql, 0, NULL, NULL, NULL, NULL, 0)) return fail_lost(l, err);
    KI_TRY(wait_long(l, tally, err));
    kith_status status = KITH_OK;
    for (PGresult *result; (result = PQgetResult(l->conn));) {
        if (status == KITH_OK && !is_good(result)) status = ki_pg_fail(l, result, err);
        PQclear(result);
    }
    return status;
}

/* ---- transactions ---- */

kith_status ki_pg_snapshot(ki_link *l, kith_error *err) {
    if (l->writes || l->in_snapshot) return KITH_OK;
    KI_TRY(ki_pg_run(l, "begin isolation level repeatable read read only", NULL, false, NULL, err));
    l->in_snapshot = true;
    return KITH_OK;
}

void ki_pg_snapshot_end(ki_link *l) {
    forget_window(l);
    if (!l->in_snapshot) return;
    l->in_snapshot = false;
    PQclear(PQexec(l->conn, "rollback"));
}

kith_status ki_pg_change(ki_link *l, kith_error *err) {
    if (l->in_change) return KITH_OK;
    KI_TRY(ki_pg_run(l, "begin", NULL, false, NULL, err));
    l->in_change = true;
    return KITH_OK;
}
