/* What the files of this folder know of the server. */
#ifndef KI_SERVE_SERVER_H
#define KI_SERVE_SERVER_H

#include <pthread.h>
#include <stdatomic.h>

#include "serve/decode/decoders.h"
#include "serve/http/connection.h"
#include "serve/http/limit.h"
#include "serve/http/metrics.h"
#include "serve/http/pool.h"
#include "serve/search/catalog.h"
#include "serve/search/groups.h"
#include "serve/search/indexer.h"
#include "serve/search/namer.h"
#include "serve/search/searcher.h"
#include "serve/serve.h"

struct MHD_Daemon;

struct ki_server {
    ki_serve_options options;
    char url[128];
    bool is_loopback;
    ki_network *proxies;

    pthread_rwlock_t tokens_lock;
    ki_tokens tokens;

    ki_limits *limits;
    ki_connections connections;
    ki_catalogs *catalogs;
    ki_indexer *indexer; /* NULL: an index is served, not photos */
    ki_metrics metrics;
    ki_pool *pool;
    ki_decoders *decoders;
    ki_searcher *searcher;
    ki_finder *finder;
    ki_namer *namer; /* NULL: names are not decided here */

    struct MHD_Daemon *daemon;
    int listener;                 /* -1: taken over by the daemon */
    atomic_int_least64_t n_open;  /* requests between their first line and their last byte */
    atomic_int_least64_t n_work;  /* requests in work or waiting for it */
    atomic_int_least64_t n_bytes; /* of bodies in memory */
    atomic_bool is_draining, is_closing;

    pthread_t keeper, renewer; /* cuts connections; looks whether the index has changed */
    bool has_keeper, has_renewer, is_ending;
    char refresh_fault[sizeof((kith_error){0})
                           .message]; /* the renewer's: why the index cannot be read; "": it can */
    pthread_mutex_t keeper_lock;
    pthread_cond_t keeper_wakes;
};

const ki_serve_options *ki_server_options(const ki_server *server);
ki_indexer *ki_server_indexer(const ki_server *server);

/* handler.c: start the daemon on server->listener. */
kith_status ki_handler_start(ki_server *server, kith_error *err);
/* The request has its answer: to be sent by the daemon's thread. */
void ki_handler_done(ki_request *request);

#endif
