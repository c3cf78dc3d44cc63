/* Between libmicrohttpd and the routes: a request is checked, read, worked on and answered.
 *
 * One thread of the daemon reads and writes all sockets (epoll) and never waits. A request that needs work is suspended and given to
 * the pool; its connection is resumed when it has its answer. */
#include <microhttpd.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/text.h"
#include "serve/http/access_log.h"
#include "serve/http/head.h"
#include "serve/routes/picture.h"
#include "serve/routes/route.h"
#include "serve/server.h"

/* Seconds for the first line of a request, from the connection or the answer before. */
static const double FIRST_LINE_SECONDS = 10;
/* Bodies in memory at a time, in the largest ones that are allowed, and those of one address. */
enum { MOST_BODIES = 16, MOST_BODIES_EACH = 4 };

static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src "
    "'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/* ---- what a request says ---- */

const char *ki_request_header(ki_request *r, const char *name) { return ki_head_value(r, name); }

const char *ki_request_argument(const ki_request *r, const char *name) {
    return MHD_lookup_connection_value(r->connection, MHD_GET_ARGUMENT_KIND, name);
}

kith_status ki_request_arguments(const ki_request *r, const ki_option *table, void *settings,
                                 kith_error *err) {
    ki_options_default(table, settings);
    for (const ki_option *o = table; o->type != KI_OPTION_T_END; o++) {
        const char *text = ki_request_argument(r, o->name);
        int64_t value = 0;
        if (!text) continue;
        if (o->type == KI_OPTION_T_TEXT) { /* lives as long as the request */
            memcpy((char *)settings + o->offset, &text, sizeof text);
            continue;
        }
        if (!ki_parse_int64(text, &value) || (double)value < o->least || (double)value > o->most)
            return ki_fail(err, KITH_EINVAL, "%s is '%.40s'; wanted a whole number from %lld to %lld",
                           o->name, text, (long long)o->least, (long long)o->most);
        memcpy((char *)settings + o->offset, &value, sizeof value);
    }
    return KITH_OK;
}

/* n more of what all requests share, unless the request's address has too much of it then. */
static bool take_share(ki_request *r, ki_limits_share which, int64_t n, int64_t most) {
    int64_t place = -1;
    if (!ki_limits_take(r->server->limits, &r->client, which, n, most, ki_seconds_now(), &place))
        return false;
    if (place < 0) return true;    /* the table of addresses is full */
    r->share[which].place = place; /* the same as before: it is held */
    r->share[which].n += n;
    return true;
}

/* A body of n bytes so far. False: the request has its answer. */
static bool share_body(ki_request *r, int64_t n) {
    const int64_t more = n - r->share[KI_SHARE_BODY].n;
    if (more <= 0 ||
        take_share(r, KI_SHARE_BODY, more, MOST_BODIES_EACH * r->server->options.most_body_bytes))
        return true;
    ki_answer_later(r, 429, 1, "this address is sending too much at once");
    return false;
}

static void give_share_back(ki_request *r, ki_limits_share which) {
    ki_limits_give_back(r->server->limits, r->share[which].place, which, r->share[which].n);
    r->share[which].n = 0;
}

void ki_request_drop_body(ki_request *r) {
    ki_buffer_release(&r->body);
    give_share_back(r, KI_SHARE_BODY);
    atomic_fetch_sub(&r->server->n_bytes, (int64_t)r->counted_bytes);
    r->counted_bytes = 0;
}

void ki_request_free(ki_request *r) {
    if (!r) return;
    if (r->state_free) r->state_free(r->state);
    ki_catalog_give_back(r->server->catalogs, r->catalog);
    if (!r->answer.is_static) ki_free(r->answer.bytes);
    ki_request_drop_body(r);
    ki_picture_drop(r);
    ki_arena_release(&r->texts);
    ki_free(r->path);
    ki_free(r);
}

/* ---- checks, before anything of the body is read ---- */

static void find_client(ki_request *r) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    ki_address peer = {{0}};
    if (info) ki_address_of(info->client_addr, &peer);
    r->client = ki_address_of_client(&peer, ki_request_header(r, "X-Forwarded-For"), r->server->proxies,
                                     r->server->options.n_proxies);
}

static ki_handling check_sender(ki_request *r, const char *fault) {
    const ki_serve_options *o = &r->server->options;
    const char *host = ki_request_header(r, "Host"), *site = ki_request_header(r, "Sec-Fetch-Site");
    double wait = 0;
    if (!ki_limits_admit(r->server->limits, &r->client, r->began, &wait))
        return ki_answer_later(r, 429, 1 + (int64_t)wait, "too many requests from this address");
    if (fault) return ki_answer_problem(r, 400, NULL, "%s", fault);
    if (!ki_host_is_ours(host, o->names, o->n_names))
        return ki_answer_problem(r, 403, "if the server is reached by this name, start it with --name",
                                 "the host '%.80s' is not one of this server's names", host ? host : "");
    if (!ki_origin_is_ours(ki_request_header(r, "Origin"), host))
        return ki_answer_problem(r, 403, NULL, "a page of another site may not ask this server");
    if (site && strcasestr(site, "cross-site") && strcmp(r->path, "/") != 0)
        return ki_answer_problem(r, 403, NULL, "a page of another site may not ask this server");
    return KI_HANDED_ON;
}

static ki_handling check_access(ki_request *r) {
    ki_server *s = r->server;
    r->access = KI_ACCESS_ALL;
    if (s->options.token_file) {
        const char *given = ki_request_header(r, "Authorization");
        pthread_rwlock_rdlock(&s->tokens_lock);
        r->access = ki_tokens_check(&s->tokens, given);
        pthread_rwlock_unlock(&s->tokens_lock);
    }
    if (r->access >= r->route->access) return KI_HANDED_ON;
    if (r->access == KI_ACCESS_OPEN)
        return ki_answer_problem(r, 401, "send it as Authorization: Bearer TOKEN",
                                 "this needs a token of the server");
    return ki_answer_problem(r, 403, NULL, "the read-only token does not allow this");
}

static ki_handling check(ki_request *r, const char *fault) {
    const char *allow = NULL, *length = ki_request_header(r, "Content-Length");
    int64_t n_bytes = 0;
    if (check_sender(r, fault) == KI_ANSWERED) return KI_ANSWERED;
    r->route = ki_route_find(r->method, r->path, &r->id, &allow);
    if (!r->route && allow)
        return ki_answer_problem(r, 405, NULL, "%.60s takes %s, not %s", r->path, allow, r->method);
    if (!r->route) return ki_answer_problem(r, 404, "see /openapi.json", "there is no %.80s here", r->path);
    if (check_access(r) == KI_ANSWERED) return KI_ANSWERED;
    if (length && ki_parse_int64(length, &n_bytes) && n_bytes > r->server->options.most_body_bytes)
        return ki_answer_problem(r, 413, NULL, "the request has %lld bytes; at most %lld are read",
                                 (long long)n_bytes, (long long)r->server->options.most_body_bytes);
    /* A body whose length is said has its place from the start: later ones of the same address do not push it out. What is refused
     * here is answered when it was read. */
    if (n_bytes > 0) share_body(r, n_bytes);
    return KI_HANDED_ON;
}

/* ---- the answer ---- */

static void add_header(struct MHD_Response *response, const char *name, const char *value) {
    if (value && *value) MHD_add_response_header(response, name, value);
}

static struct MHD_Response *make_response(ki_request *r) {
    ki_answer *a = &r->answer;
    const char *known = ki_request_header(r, "If-None-Match");
    if (a->status == 200 && *a->etag && known && strstr(known, a->etag)) {
        a->status = 304;
        a->n_bytes = 0;
        return MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    }
    if (a->is_static) return MHD_create_response_from_buffer(a->n_bytes, a->bytes, MHD_RESPMEM_PERSISTENT);
    void *bytes = a->bytes;
    struct MHD_Response *response =
        MHD_create_response_from_buffer_with_free_callback(a->n_bytes, bytes, ki_free);
    if (response) a->bytes = NULL;
    return response;
}

static ki_connection *connection_of(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

/* Whether the client still has to send something. */
static void set_reading(const ki_request *r, bool is_reading) {
    ki_connection *one = connection_of(r->connection);
    if (one) ki_connections_reading(&r->server->connections, one, is_reading);
}

static enum MHD_Result send_answer(ki_request *r) {
    struct MHD_Response *response = make_response(r);
    const ki_answer *a = &r->answer;
    char number[24];
    if (!response) return MHD_NO;
    set_reading(r, false);
    add_header(response, "Content-Type", a->status == 304 ? NULL : a->type);
    add_header(response, "Content-Security-Policy", policy);
    add_header(response, "X-Content-Type-Options", "nosniff");
    add_header(response, "Referrer-Policy", "no-referrer");
    add_header(response, "Cross-Origin-Resource-Policy", "same-origin");
    add_header(response, "Cross-Origin-Opener-Policy", "same-origin");
    add_header(response, "Cache-Control", a->cache ? a->cache : "no-store");
    add_header(response, "ETag", a->etag);
    ki_snprintf(number, sizeof number, "%lld", (long long)a->retry_after);
    if (a->retry_after > 0) add_header(response, "Retry-After", number);
    if (a->status == 401) add_header(response, "WWW-Authenticate", "Bearer");
    if (a->status == 405) add_header(response, "Allow", "GET, HEAD, POST");
    if (r->closes || atomic_load(&r->server->is_draining)) add_header(response, "Connection", "close");
    const enum MHD_Result result = MHD_queue_response(r->connection, a->status, response);
    MHD_destroy_response(response);
    return result;
}

/* ---- the body ---- */

static bool keep_body(ki_request *r, const char *bytes, size_t n) {
    ki_server *s = r->server;
    const int64_t most = s->options.most_body_bytes;
    if ((int64_t)(r->body.n + n) > most) {
        ki_answer_problem(r, 413, NULL, "the request has more than the %lld bytes that are read",
                          (long long)most);
        return false;
    }
    if (!share_body(r, (int64_t)(r->body.n + n))) return false;
    r->counted_bytes += n;
    if (atomic_fetch_add(&s->n_bytes, (int64_t)n) + (int64_t)n > MOST_BODIES * most) {
        ki_answer_later(r, 503, 1, "the server is reading too many requests");
        return false;
    }
    ki_buffer_add(&r->body, bytes, n);
    if (r->body.status != KITH_OK) ki_answer_later(r, 503, 5, "out of memory");
    return r->body.status == KITH_OK;
}

/* What is refused is read to its end and thrown away: only then can it be answered. */
static void take_body(ki_request *r, const char *bytes, size_t n) {
    ki_connection *one = connection_of(r->connection);
    if (one) ki_connections_heard(&r->server->connections, one, ki_seconds_now());
    r->received += n;
    if (!r->answer.status && !keep_body(r, bytes, n)) ki_request_drop_body(r);
}

/* ---- work ---- */

static enum MHD_Result begin_work(ki_request *r) {
    ki_server *s = r->server;
    if (atomic_fetch_add(&s->n_work, 1) >= s->options.n_queue || atomic_load(&s->is_closing)) {
        atomic_fetch_sub(&s->n_work, 1);
        ki_answer_later(r, 503, 1, "the server has more to do than it can");
        return send_answer(r);
    }
    if (!take_share(r, KI_SHARE_WORK, 1, s->options.n_queue / 2 + 1)) {
        atomic_fetch_sub(&s->n_work, 1);
        ki_answer_later(r, 429, 1, "this address has too many requests in work");
        return send_answer(r);
    }
    r->is_in_work = true;
    set_reading(r, false);
    r->catalog = ki_catalog_take(s->catalogs);
    r->then = r->route->run;
    MHD_suspend_connection(r->connection);
    ki_pool_add(s->pool, r);
    return MHD_YES;
}

void ki_handler_done(ki_request *r) {
    ki_server *s = r->server;
    give_share_back(r, KI_SHARE_WORK);
    atomic_fetch_sub(&s->n_work, 1);
    MHD_resume_connection(r->connection); /* from here on the request is the daemon's */
}

/* ---- the daemon's callbacks ---- */

static void on_connection(void *context, struct MHD_Connection *connection, void **socket_context,
                          enum MHD_ConnectionNotificationCode code) {
    ki_server *s = context;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (*socket_context)
            ki_limits_disconnect(s->limits, ki_connections_remove(&s->connections, *socket_context));
        *socket_context = NULL;
        return;
    }
    /* libmicrohttpd 1 answers every question in the same place: one is used up before the next is asked. */
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    ki_address peer = {{0}};
    if (!info) return;
    const int fd = info->connect_fd;
    info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const double now = ki_seconds_now();
    const bool is_known = info && ki_address_of(info->client_addr, &peer);
    const bool is_proxy = ki_network_has(s->proxies, s->options.n_proxies, &peer);
    const int64_t place = is_known && !is_proxy ? ki_limits_connect(s->limits, &peer, now) : -1;
    *socket_context = ki_connections_add(&s->connections, fd, place, now + FIRST_LINE_SECONDS);
    if (!*socket_context || (place < 0 && !is_proxy)) shutdown(fd, SHUT_RDWR);
}

/* The first line of a request is there. */
static void *on_first_line(void *context, const char *uri, struct MHD_Connection *connection) {
    ki_server *s = context;
    ki_connection *one = connection_of(connection);
    ki_request *r = ki_zalloc(1, sizeof *r);
    if (!r) return NULL;
    r->server = s;
    r->connection = connection;
    r->began = ki_seconds_now();
    r->path = ki_strndup(uri, strcspn(uri, "?"));
    r->url_end = uri + strlen(uri);
    atomic_fetch_add(&s->n_open, 1);
    if (one) ki_connections_cut_at(&s->connections, one, r->began + s->options.deadline);
    if (one) ki_connections_heard(&s->connections, one, r->began);
    return r;
}

static enum MHD_Result begin(ki_request *r, const char *method, const char *version) {
    r->has_begun = true;
    r->is_head = strcmp(method, "HEAD") == 0;
    ki_snprintf(r->method, sizeof r->method, "%s", method);
    if (!r->path) return MHD_NO;
    find_client(r);
    const char *fault = ki_head_fault(r, method, version, r->url_end);
    r->closes = fault != NULL; /* where the next request begins is not known */
    return check(r, fault) == KI_ANSWERED ? send_answer(r) : MHD_YES;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_bytes, void **request) {
    (void)context, (void)connection, (void)url;
    ki_request *r = *request;
    if (!r) return MHD_NO;
    if (!r->has_begun) return begin(r, method, version);
    if (*upload_bytes > 0) {
        take_body(r, upload, *upload_bytes);
        *upload_bytes = 0;
        return MHD_YES;
    }
    if (r->answer.status) return send_answer(r);
    if (r->route->where == KI_AS_WORK) return begin_work(r);
    r->route->run(r);
    return send_answer(r);
}

static void on_completed(void *context, struct MHD_Connection *connection, void **request,
                         enum MHD_RequestTerminationCode why) {
    ki_server *s = context;
    ki_request *r = *request;
    ki_connection *one = connection_of(connection);
    (void)why;
    if (!r) return;
    const double now = ki_seconds_now();
    if (r->answer.status) {
        ki_metrics_count(&s->metrics, r->route ? (int)(r->route - ki_routes) : -1, r->answer.status,
                         now - r->began);
        ki_access_log(s->options.access_log, r, now - r->began);
    }
    atomic_fetch_sub(&s->n_open, 1);
    if (one) {
        ki_connections_cut_at(&s->connections, one, now + FIRST_LINE_SECONDS);
        ki_connections_reading(&s->connections, one, true);
    }
    ki_request_free(r);
    *request = NULL;
}

kith_status ki_handler_start(ki_server *s, kith_error *err) {
    s->daemon =
        MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request,
                         s, MHD_OPTION_LISTEN_SOCKET, s->listener, MHD_OPTION_CONNECTION_LIMIT,
                         (unsigned)s->options.n_connections, MHD_OPTION_CONNECTION_TIMEOUT,
                         (unsigned)s->options.deadline + 1, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)32768,
                         MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_NOTIFY_COMPLETED,
                         on_completed, s, MHD_OPTION_URI_LOG_CALLBACK, on_first_line, s, MHD_OPTION_END);
    if (!s->daemon) return ki_fail(err, KITH_EIO, "the HTTP server cannot be started on %s", s->url);
    s->listener = -1;
    return KITH_OK;
}
