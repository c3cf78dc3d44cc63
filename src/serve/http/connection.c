/* The list of open connections. */
#include "serve/http/connection.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/alloc.h"

ki_connection *ki_connections_add(ki_connections *c, int fd, int64_t place, double cut_at) {
    ki_connection *one = ki_zalloc(1, sizeof *one);
    if (!one) return NULL;
    one->fd = fd;
    one->place = place;
    one->cut_at = cut_at;
    one->is_reading = true;
    pthread_mutex_lock(&c->lock);
    one->after = c->first;
    if (c->first) c->first->before = one;
    c->first = one;
    c->n++;
    pthread_mutex_unlock(&c->lock);
    return one;
}

int64_t ki_connections_remove(ki_connections *c, ki_connection *one) {
    const int64_t place = one->place;
    pthread_mutex_lock(&c->lock);
    if (one->before)
        one->before->after = one->after;
    else
        c->first = one->after;
    if (one->after) one->after->before = one->before;
    c->n--;
    pthread_mutex_unlock(&c->lock);
    ki_free(one);
    return place;
}

void ki_connections_cut_at(ki_connections *c, ki_connection *one, double cut_at) {
    pthread_mutex_lock(&c->lock);
    one->cut_at = cut_at;
    pthread_mutex_unlock(&c->lock);
}

void ki_connections_reading(ki_connections *c, ki_connection *one, bool is_reading) {
    pthread_mutex_lock(&c->lock);
    one->is_reading = is_reading;
    one->n_gone = 0;
    pthread_mutex_unlock(&c->lock);
}

void ki_connections_heard(ki_connections *c, ki_connection *one, double now) {
    pthread_mutex_lock(&c->lock);
    one->heard = now;
    pthread_mutex_unlock(&c->lock);
}

void ki_connections_cut_quiet(ki_connections *c, double before) {
    pthread_mutex_lock(&c->lock);
    for (ki_connection *one = c->first; one; one = one->after) {
        if (!one->is_reading || one->heard > before) continue;
        shutdown(one->fd, SHUT_RDWR);
        one->is_reading = false;
        c->n_cut++;
    }
    pthread_mutex_unlock(&c->lock);
}

/* Everything that it sent was read, and there will be nothing more. */
static bool is_gone(const ki_connection *one) {
    char byte;
    const ssize_t n = recv(one->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

static bool waits_for_nobody(ki_connection *one) {
    enum { ENOUGH = 2 };
    one->n_gone = one->is_reading && is_gone(one) ? one->n_gone + 1 : 0;
    return one->n_gone >= ENOUGH;
}

void ki_connections_cut(ki_connections *c, double now) {
    pthread_mutex_lock(&c->lock);
    for (ki_connection *one = c->first; one; one = one->after) {
        const bool is_late = now >= one->cut_at;
        if (!is_late && !waits_for_nobody(one)) continue;
        shutdown(one->fd, SHUT_RDWR);
        one->cut_at = now + 3600; /* once is enough */
        one->is_reading = false;
        c->n_cut += is_late;
    }
    pthread_mutex_unlock(&c->lock);
}
