/* The server as a whole: options, the socket it listens on, its threads, its end. */
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netdb.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/cores.h"
#include "base/log.h"
#include "base/text.h"
#include "serve/server.h"

/* Seconds between two looks at connections, and at the index. */
static const double CUT_SECONDS = 0.1, REFRESH_SECONDS = 1;
/* Seconds for which a server that ends waits for the next byte of a request. */
static const double QUIET_SECONDS = 1;
/* Memory of a decoder: for each pixel, which some formats decode through several planes, and for the rest. */
enum { PIXEL_BYTES = 12, DECODER_BYTES = 256 << 20, MEMORY_PARTS = 8 };

void ki_serve_options_init(ki_serve_options *o) {
    *o = (ki_serve_options){.host = "127.0.0.1",
                            .port = 8017,
                            .hidden = (1u << KITH_N_FACTS) - 1,
                            .deadline = 30,
                            .rate = 100,
                            .burst = 500,
                            .n_connections = 2048,
                            .n_per_address = 128,
                            .most_body_bytes = 32 << 20,
                            .most_pixels = 50000000,
                            .most_decoded_bytes = ki_memory_part(512 << 20, MEMORY_PARTS),
                            .most_k = 1000,
                            .n_queue = 512,
                            .most_batch = 64,
                            .program = "/proc/self/exe",
                            .access_log = -1,
                            .rescan = 30};
    kith_model_options_init(&o->model, sizeof o->model);
}

const ki_serve_options *ki_server_options(const ki_server *server) { return &server->options; }
ki_indexer *ki_server_indexer(const ki_server *server) { return server->indexer; }
const char *ki_server_url(const ki_server *server) { return server->url; }

/* ---- the socket ---- */

static int bind_one(const struct addrinfo *to) {
    const int on = 1;
    const int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, to->ai_addr, to->ai_addrlen) == 0 && listen(fd, 1024) == 0) return fd;
    const int why = errno;
    close(fd);
    errno = why;
    return -1;
}

static kith_status listen_at(ki_server *s, kith_error *err) {
    const ki_serve_options *o = &s->options;
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    struct sockaddr_storage bound;
    socklen_t n = sizeof bound;
    char port[16], name[64], number[16];
    ki_address address = {{0}};
    ki_snprintf(port, sizeof port, "%lld", (long long)o->port);
    const int failed = getaddrinfo(o->host, port, &wanted, &found);
    if (failed) return ki_fail(err, KITH_EINVAL, "'%.80s' is no address: %s", o->host, gai_strerror(failed));
    ki_address_of(found->ai_addr, &address);
    s->is_loopback = ki_address_is_loopback(&address);
    if (!s->is_loopback && !o->token_file) {
        freeaddrinfo(found);
        ki_fail(err, KITH_EINVAL, "%.80s can be reached from other machines, and no tokens are given",
                o->host);
        return ki_hint(err, KITH_EINVAL, "name a file of tokens: --token-file F (docs/serving.md)");
    }
    s->listener = bind_one(found);
    const int why = errno;
    freeaddrinfo(found);
    if (s->listener < 0)
        return ki_fail(err, KITH_EIO, "%.80s, port %s cannot be listened on: %s", o->host, port,
                       strerror(why));
    if (getsockname(s->listener, (struct sockaddr *)&bound, &n) != 0 ||
        getnameinfo((struct sockaddr *)&bound, n, name, sizeof name, number, sizeof number,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return ki_fail(err, KITH_EIO, "the port that was bound is not known");
    ki_snprintf(s->url, sizeof s->url, bound.ss_family == AF_INET6 ? "http://[%s]:%s/" : "http://%s:%s/",
                name, number);
    return KITH_OK;
}

/* ---- what is looked after while requests come ---- */

static void refresh(ki_server *s) {
    kith_error err;
    bool is_new = false;
    const kith_status status = ki_catalogs_refresh(s->catalogs, &is_new, &err);
    /* Once for each fault: it may last. */
    if (status != KITH_OK && strcmp(s->refresh_fault, err.message) != 0)
        ki_log(KITH_LOG_WARNING, "the index cannot be read; what it held before is served: %s", err.message);
    if (status == KITH_OK && s->refresh_fault[0]) ki_log(KITH_LOG_INFO, "the index can be read again");
    /* Photos are indexed commit by commit. */
    if (is_new && !s->indexer) ki_log(KITH_LOG_INFO, "the index has changed and was opened anew");
    ki_snprintf(s->refresh_fault, sizeof s->refresh_fault, "%s", status != KITH_OK ? err.message : "");
}

/* Sleep, unless the server ends. Returns whether it goes on. The condition waits on the monotonic clock, too: one that is set back
 * must not put off deadlines. */
static bool sleep_for(ki_server *s, double seconds) {
    const double end = ki_seconds_now() + seconds;
    const struct timespec until = {(time_t)end, (long)((end - (double)(time_t)end) * 1e9)};
    pthread_mutex_lock(&s->keeper_lock);
    if (!s->is_ending) pthread_cond_timedwait(&s->keeper_wakes, &s->keeper_lock, &until);
    const bool goes_on = !s->is_ending;
    pthread_mutex_unlock(&s->keeper_lock);
    return goes_on;
}

static void *keep(void *context) {
    ki_server *s = context;
    while (sleep_for(s, CUT_SECONDS)) {
        const double now = ki_seconds_now();
        ki_connections_cut(&s->connections, now);
        ki_decoders_tick(s->decoders, now);
        ki_finder_tick(s->finder, now);
    }
    return NULL;
}

/* In a thread of its own: opening a large index takes seconds, and deadlines do not wait. */
static void *renew(void *context) {
    ki_server *s = context;
    while (sleep_for(s, REFRESH_SECONDS)) refresh(s);
    return NULL;
}

/* ---- beginning and end ---- */

/* Room for the connections that are allowed; where the system gives less, fewer are. */
static void raise_file_limit(ki_server *s) {
    enum { OTHERS = 256 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    const rlim_t wanted = (rlim_t)s->options.n_connections + OTHERS;
    if (limit.rlim_cur < wanted && limit.rlim_cur != RLIM_INFINITY) {
        limit.rlim_cur = limit.rlim_max == RLIM_INFINITY || limit.rlim_max > wanted ? wanted : limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
        if (limit.rlim_cur < wanted && limit.rlim_cur > 2 * OTHERS)
            s->options.n_connections = (int64_t)limit.rlim_cur - OTHERS;
    }
}

static kith_status read_proxies(ki_server *s, kith_error *err) {
    const ki_serve_options *o = &s->options;
    KI_TRY(ki_zalloc_or(&s->proxies, (size_t)o->n_proxies + 1, sizeof *s->proxies, "proxies", err));
    for (int64_t i = 0; i < o->n_proxies; i++) KI_TRY(ki_network_parse(o->proxies[i], &s->proxies[i], err));
    return KITH_OK;
}

/* As many as are wanted, where a container's memory holds them: together they may have a quarter of it. One is for other clients. */
static int64_t decoders_allowed(int wanted) {
    const int64_t n = ki_memory_part((int64_t)wanted * DECODER_BYTES, 4) / DECODER_BYTES;
    return n > 2 ? n : 2;
}

static kith_status open_server(ki_server *s, kith_error *err) {
    const ki_serve_options *o = &s->options;
    /* A client can have as many decoders as there are cores; those beyond that are never its own (decode/decoders.h). */
    const int cores = ki_cores_allowed(), others = cores / 3 > 1 ? cores / 3 : 1;
    raise_file_limit(s);
    KI_TRY(read_proxies(s, err));
    if (o->token_file) KI_TRY(ki_tokens_read(o->token_file, &s->tokens, err));
    KI_TRY(listen_at(s, err));
    KI_TRY(ki_limits_new(o->rate, o->burst, o->n_per_address, &s->limits, err));
    KI_TRY(ki_catalogs_new(o->index, &o->model, o->hidden, &s->catalogs, err));
    const ki_decoders_options decoders = {
        .program = o->program,
        .n = o->n_decoders ? o->n_decoders : decoders_allowed(cores + others),
        .memory_bytes =
            DECODER_BYTES + 2 * (uint64_t)o->most_body_bytes + PIXEL_BYTES * (uint64_t)KI_IMAGE_MOST_PIXELS,
        .most_decoded = o->most_decoded_bytes,
        .seconds = o->deadline / 3, /* so that its client can still be told */
        .n_failures = &s->metrics.n_decoder_failures};
    KI_TRY(ki_decoders_new(&decoders, &s->decoders, err));
    KI_TRY(ki_pool_new(o->n_workers ? o->n_workers : 4 * cores, ki_handler_done, &s->pool, err));
    KI_TRY(ki_searcher_new(s->pool, &s->metrics, o->most_batch, o->most_k, o->deadline, &s->searcher, err));
    KI_TRY(ki_finder_new(s->catalogs, s->pool, &s->finder, err));
    if (o->photos) KI_TRY(ki_indexer_new(o->photos, o->rescan, &s->indexer, err));
    KI_TRY(ki_handler_start(s, err));
    s->has_keeper = pthread_create(&s->keeper, NULL, keep, s) == 0;
    s->has_renewer = s->has_keeper && pthread_create(&s->renewer, NULL, renew, s) == 0;
    return s->has_renewer ? KITH_OK : ki_fail(err, KITH_ENOMEM, "a thread cannot be made");
}

kith_status ki_server_start(const ki_serve_options *options, ki_server **ret_server, kith_error *err) {
    ki_server *s = NULL;
    KI_TRY(ki_zalloc_or(&s, 1, sizeof *s, "a server", err));
    s->options = *options;
    s->listener = -1;
    pthread_rwlock_init(&s->tokens_lock, NULL);
    pthread_mutex_init(&s->connections.lock, NULL);
    pthread_mutex_init(&s->keeper_lock, NULL);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&s->keeper_wakes, &clock);
    pthread_condattr_destroy(&clock);
    const kith_status status = open_server(s, err);
    if (status != KITH_OK) {
        ki_server_free(s);
        return status;
    }
    ki_log(KITH_LOG_INFO, "serving %s at %s",
           options->photos ? kith_photos_folder(options->photos) : options->index, s->url);
    *ret_server = s;
    return KITH_OK;
}

static kith_status read_tokens(ki_server *s, kith_error *err) {
    ki_tokens tokens;
    if (!s->options.token_file) return KITH_OK;
    KI_TRY(ki_tokens_read(s->options.token_file, &tokens, err));
    pthread_rwlock_wrlock(&s->tokens_lock);
    s->tokens = tokens;
    pthread_rwlock_unlock(&s->tokens_lock);
    return KITH_OK;
}

kith_status ki_server_reload(ki_server *s, kith_error *err) {
    const kith_status status = read_tokens(s, err);
    if (status == KITH_OK)
        ki_log(KITH_LOG_INFO, "the tokens were read again");
    else
        ki_log(KITH_LOG_WARNING, "the tokens stay as they were: %s", err->message);
    return status;
}

static void pause_shortly(void) {
    const struct timespec moment = {.tv_nsec = 10000000};
    nanosleep(&moment, NULL);
}

void ki_server_drain(ki_server *s) {
    const double end = ki_seconds_now() + s->options.deadline;
    ki_log(KITH_LOG_INFO, "finishing what is under way");
    ki_indexer_end(s->indexer);
    atomic_store(&s->is_draining, true);
    const MHD_socket listener = MHD_quiesce_daemon(s->daemon);
    if (listener != MHD_INVALID_SOCKET) close(listener);
    for (double now; atomic_load(&s->n_open) > 0 && (now = ki_seconds_now()) < end;) {
        /* Who has stopped sending may never go on. */
        ki_connections_cut_quiet(&s->connections, now - QUIET_SECONDS);
        pause_shortly();
    }
}

void ki_server_free(ki_server *s) {
    if (!s) return;
    pthread_mutex_lock(&s->keeper_lock);
    s->is_ending = true;
    pthread_cond_broadcast(&s->keeper_wakes);
    pthread_mutex_unlock(&s->keeper_lock);
    if (s->has_keeper) pthread_join(s->keeper, NULL);
    if (s->has_renewer) pthread_join(s->renewer, NULL);
    ki_indexer_free(s->indexer);
    /* The daemon cannot end while a connection is suspended: everything in work gets its answer first. New requests are
     * refused meanwhile. */
    atomic_store(&s->is_closing, true);
    ki_finder_end(s->finder);
    ki_decoders_end(s->decoders);
    while (s->daemon && atomic_load(&s->n_work) > 0) pause_shortly();
    if (s->daemon) MHD_stop_daemon(s->daemon);
    ki_finder_free(s->finder);
    ki_searcher_free(s->searcher);
    ki_decoders_free(s->decoders);
    ki_pool_free(s->pool);
    ki_catalogs_free(s->catalogs);
    ki_limits_free(s->limits);
    if (s->listener >= 0) close(s->listener);
    ki_free(s->proxies);
    pthread_cond_destroy(&s->keeper_wakes);
    pthread_mutex_destroy(&s->keeper_lock);
    pthread_mutex_destroy(&s->connections.lock);
    pthread_rwlock_destroy(&s->tokens_lock);
    ki_free(s);
}
