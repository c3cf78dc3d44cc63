/* A request on its way through the server, and the answer that it gets.
 *
 * A route (serve/routes/route.h) is a function that answers a request, or hands it on to something that takes time and comes back
 * to it with another function: no thread waits for anything. One thread at a time has a request. */
#ifndef KI_SERVE_REQUEST_H
#define KI_SERVE_REQUEST_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/option.h"
#include "kith/experimental/json.h"
#include "serve/http/address.h"
#include "serve/http/limit.h"
#include "serve/http/token.h"

typedef struct ki_server ki_server;
typedef struct ki_route ki_route;
typedef struct ki_catalog ki_catalog;
typedef struct ki_picture_job ki_picture_job;
typedef struct ki_request ki_request;
struct MHD_Connection;

/* What is sent back. Bytes are freed by ki_free unless they are static. */
typedef struct ki_answer {
    unsigned status; /* 0: there is none yet */
    const char *type;
    void *bytes;
    size_t n_bytes;
    bool is_static;
    char etag[72];       /* with its quotes; empty: none */
    const char *cache;   /* Cache-Control; NULL: no-store */
    int64_t retry_after; /* seconds; 0: not said */
} ki_answer;

/* What became of a request: it has its answer, or somebody else has the request now. */
typedef enum ki_handling { KI_ANSWERED, KI_HANDED_ON } ki_handling;
typedef ki_handling (*ki_request_fn)(ki_request *request);

struct ki_request {
    ki_server *server;
    struct MHD_Connection *connection;
    const ki_route *route; /* NULL: none */
    bool is_head;
    char method[8];
    char *path;          /* as it was asked for, without what follows "?" */
    const char *url_end; /* behind the whole address; valid until the head was checked */
    ki_arena texts;      /* values of headers that came on several lines */
    bool closes;         /* the connection ends with the answer */
    int64_t id;          /* of the item in the path */
    ki_address client;
    double began; /* seconds */
    ki_access access;
    bool has_begun, is_in_work;
    ki_buffer body;
    size_t received;      /* bytes of the body */
    size_t counted_bytes; /* of them, in the server's sum of what is in memory */
    struct {
        int64_t place, n; /* what it has of its address's share (limit.h) */
    } share[KI_N_SHARES];
    ki_catalog *catalog;      /* the index as of when work began; NULL before */
    ki_picture_job *pictures; /* decoded for it, the last one first (picture.h) */
    ki_answer answer;

    /* For the stages of a route. */
    void *state;
    void (*state_free)(void *state);
    ki_request_fn then;
    ki_request *next;
};

void ki_request_free(ki_request *request); /* NULL is fine */
/* The body is no longer needed: the largest part of a request's memory. */
void ki_request_drop_body(ki_request *request);

/* ---- reading it ---- */

/* A header, all lines of it as one list (serve/http/head.h), or an argument after "?"; NULL when it was not sent. It lives as long as the
 * request. */
const char *ki_request_header(ki_request *request, const char *name);
const char *ki_request_argument(const ki_request *request, const char *name);
/* The arguments of a table, whole numbers (KI_OPTION_INT) and texts, which live as long as the request; or their defaults. Others are not
 * looked at. */
kith_status ki_request_arguments(const ki_request *request, const ki_option *table, void *settings,
                                 kith_error *err);

/* ---- answering it: the functions return KI_ANSWERED ---- */

/* Bytes of ki_alloc, which the answer takes over. */
ki_handling ki_answer_bytes(ki_request *request, const char *type, void *bytes, size_t n);
/* What was written; json is freed. */
ki_handling ki_answer_json(ki_request *request, kith_json *json);
/* application/problem+json: one line, and a hint (NULL: none). */
ki_handling ki_answer_problem(ki_request *request, unsigned status, const char *hint, const char *fmt, ...)
    KITH_PRINTF(4, 5);
/* The same for an error of the library. */
ki_handling ki_answer_error(ki_request *request, kith_status status, const kith_error *err);
/* The same for an error of reading the index: bytes that are not as they should be are not the client's fault there. */
ki_handling ki_answer_index_error(ki_request *request, kith_status status, const kith_error *err);
/* Come back later: 503, or 429 when it is this client's own doing. */
ki_handling ki_answer_later(ki_request *request, unsigned status, int64_t seconds, const char *why);

/* The reason phrase of a status: "Not found". */
const char *ki_status_title(unsigned status);

#endif
