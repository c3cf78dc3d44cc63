/* Open connections, each with the moment at which it is cut.
 *
 * libmicrohttpd's own timeout is for connections on which nothing happens: a client that sends a byte now and then passes it.
 * Here a whole request has a deadline. The first line must come within a shorter time, so that connections on which nothing is
 * asked do not fill the server.
 *
 * Nor does it always notice that a client has gone: its epoll reports a change once, and bytes that arrive together with the end of the
 * stream hide the end. So connections on which a request is still awaited are looked at for that, too. */
#ifndef KI_SERVE_CONNECTION_H
#define KI_SERVE_CONNECTION_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct ki_connection ki_connection;
struct ki_connection {
    int fd;
    int64_t place;   /* in the limits per address; -1: not counted */
    double cut_at;   /* seconds */
    bool is_reading; /* a request, or the rest of it, is still to come */
    double heard;    /* when the last bytes of it came, or its first line */
    int n_gone;      /* looks in a row at which the client had gone */
    ki_connection *before, *after;
};

typedef struct ki_connections {
    pthread_mutex_t lock;
    ki_connection *first;
    int64_t n, n_cut;
} ki_connections;

/* Takes over a connection that is open until ki_connections_remove; cut at `cut_at`. NULL when there is no memory. */
ki_connection *ki_connections_add(ki_connections *connections, int fd, int64_t place, double cut_at);
/* Before its descriptor is closed. Returns its place. */
int64_t ki_connections_remove(ki_connections *connections, ki_connection *connection);
/* A request has begun, or is over: when to cut it from now on. */
void ki_connections_cut_at(ki_connections *connections, ki_connection *connection, double cut_at);
/* Whether more of a request is awaited: true for a new connection. A client that has sent a whole request may close its side. */
void ki_connections_reading(ki_connections *connections, ki_connection *connection, bool is_reading);

/* More of the request has come. */
void ki_connections_heard(ki_connections *connections, ki_connection *connection, double now);

/* Cut those on which more of a request is awaited and nothing was heard since `before`. */
void ki_connections_cut_quiet(ki_connections *connections, double before);

/* Cut those whose time is over, and those that wait for what cannot come; the daemon then notices. To be called again and again: who
 * has gone must have gone at two calls, so that what the daemon is reading at this moment is not cut. */
void ki_connections_cut(ki_connections *connections, double now);

#endif
