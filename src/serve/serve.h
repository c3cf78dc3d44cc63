/* The search server: an index as a page in the browser, and the same as an HTTP API (docs/serving.md).
 *
 *     ki_serve_options options;
 *     ki_serve_options_init(&options);
 *     options.index = "birds.kith";
 *     ki_server *server = NULL;
 *     ki_server_start(&options, &server, &err);
 *     … until it is to end …
 *     ki_server_free(server);
 *
 * The server only reads, but for photos that it was given to index. It runs on threads of its own; the functions below are for the thread that started it. Beginning, end
 * and new tokens are lines of the log. This is all that the program knows of this layer, which is a library of its own:
 * libkith needs no HTTP library (docs/adr/0070-serve.md). */
#ifndef KI_SERVE_H
#define KI_SERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "kith/model.h"
#include "kith/photos.h"
#include "kith/status.h"

typedef struct ki_server ki_server;

/* Strings and lists are borrowed as long as the server lives. */
typedef struct ki_serve_options {
    const char *index;
    /* Photos whose index that is: the server keeps it in line with their folder, looking again every `rescan` seconds (0: only at its
     * start). NULL: an index that is only read */
    kith_photos *photos;
    double rescan;
    const char *host; /* an address or a name that has one: "127.0.0.1" */
    int64_t port;     /* 0: one that is free */
    /* Who may ask, and how much. */
    const char *token_file;     /* NULL: no token is asked for; only on loopback addresses */
    const char *const *names;   /* of this server in the Host header, beside addresses and localhost */
    const char *const *proxies; /* addresses or networks (10.0.0.0/8) whose X-Forwarded-For is believed */
    int64_t n_names, n_proxies;
    unsigned
        hidden; /* bits: columns of KITH_FACT_COLUMNS that nobody is told of; all unless told otherwise */
    double deadline;         /* seconds for a whole request, from its first line to the end of the answer */
    double rate, burst;      /* requests per second of one address, and how many at once */
    int64_t n_connections;   /* open at a time … */
    int64_t n_per_address;   /* … and of one address */
    int64_t most_body_bytes; /* of a request */
    int64_t most_pixels;     /* of an image that is sent */
    int64_t most_decoded_bytes; /* of decoded images, of all requests together */
    int64_t most_k;             /* hits that can be asked for, with those that are left out before them */
    int64_t n_queue;            /* requests in work or waiting for it; one more is told to come back */
    /* What works for them. */
    int64_t n_workers; /* threads that read requests and write answers; 0: four per core */
    int64_t
        n_decoders; /* processes that decode images; 0: one per core and some more, fewer where memory is short */
    int64_t most_batch;  /* queries that are embedded and searched together */
    const char *program; /* started as `PROGRAM serve --decode-images` to decode images */
    kith_model_options model;
    int access_log; /* file descriptor for a line per request; -1: none. It stays the caller's */
} ki_serve_options;

/* Loopback, port 8017, and the limits that docs/serving.md lists. */
void ki_serve_options_init(ki_serve_options *options);

/* Open index and model, bind the port, and answer from now on. KITH_EINVAL: another address than a loopback one without a token,
 * or a network that cannot be read; KITH_EIO: the port is taken. */
kith_status ki_server_start(const ki_serve_options *options, ki_server **ret_server, kith_error *err);

/* "http://127.0.0.1:8017/"; lives as long as the server. */
const char *ki_server_url(const ki_server *server);

/* Read the token file again. On failure the tokens stay as they were. */
kith_status ki_server_reload(ki_server *server, kith_error *err);

/* Take no new connections, and wait until the requests under way are answered, at most the deadline. */
void ki_server_drain(ki_server *server);
/* Ends at once. NULL is fine. */
void ki_server_free(ki_server *server);

/* What a decoding process does: answer questions on its standard input until that is closed (serve/decode/). Returns the exit
 * status. */
int ki_decoder_main(void);

#endif
