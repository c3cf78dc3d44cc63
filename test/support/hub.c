/* Plain sockets and a thread for each connection: a hostile server must not be polite. */
#include "support/hub.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "hub/git_hash.h"
#include "kith/eval.h"
#include "support/testing.h"

hub_ways hub_way;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char asked[1 << 16];
static const hub_file *files;
static size_t n_files;
static int port[2]; /* the hub's, the storage's */
static const char *const side_names[] = {"hub", "storage"};

typedef struct connection {
    int fd, side;
    char request[8192];
} connection;

/* ---- what was asked ---- */

static void note(const char *fmt, ...) KITH_PRINTF(1, 2);
static void note(const char *fmt, ...) {
    va_list ap;
    pthread_mutex_lock(&lock);
    const size_t n = strlen(asked);
    va_start(ap, fmt);
    vsnprintf(asked + n, sizeof asked - n, fmt, ap);
    va_end(ap);
    pthread_mutex_unlock(&lock);
}

const char *hub_asked(void) { return asked; }

void hub_forget(void) {
    pthread_mutex_lock(&lock);
    asked[0] = '\0';
    pthread_mutex_unlock(&lock);
}

int hub_count(const char *text) {
    int n = 0;
    for (const char *at = asked; (at = strstr(at, text)); at += strlen(text)) n++;
    return n;
}

/* Takes one of a number that counts down. */
static bool take(int *n) {
    pthread_mutex_lock(&lock);
    const bool is_left = *n > 0;
    *n -= is_left;
    pthread_mutex_unlock(&lock);
    return is_left;
}

/* ---- sending ---- */

static bool put(int fd, const void *bytes, size_t n) {
    const char *at = bytes;
    while (n > 0) {
        const ssize_t m = send(fd, at, n, MSG_NOSIGNAL);
        if (m <= 0) return false;
        at += m, n -= (size_t)m;
    }
    return true;
}

static bool putf(int fd, const char *fmt, ...) KITH_PRINTF(2, 3);
static bool putf(int fd, const char *fmt, ...) {
    char text[16384];
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return put(fd, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

static void etag_of(const hub_file *file, char ret[65]) {
    kith_hash sha256 = {0};
    ki_git_hash git;
    if (file->is_large) {
        kith_hash_add(&sha256, file->data, file->n);
        kith_hash_finish(&sha256, ret);
        return;
    }
    ki_git_hash_begin(&git, (int64_t)file->n);
    ki_git_hash_add(&git, file->data, file->n);
    ki_git_hash_finish(&git, ret);
}

/* The hub's own lines, also with a redirect. */
static void put_facts(int fd, const hub_file *file) {
    char etag[65];
    const char *prefix = file->is_large ? "X-Linked-" : "";
    etag_of(file, etag);
    if (hub_way.is_endless) {
        while (putf(fd, "X-Filler: %0900d\r\n", 0)) continue;
    }
    if (!hub_way.says_no_commit) putf(fd, "X-Repo-Commit: " HUB_COMMIT "\r\n");
    if (hub_way.says_odd_etag)
        putf(fd, "%sETag: W/\"seven\"\r\n", prefix);
    else if (!hub_way.says_no_etag)
        putf(fd, "%sEtag: \"%s\"\r\n", prefix, hub_way.etag ? hub_way.etag : etag);
    if (hub_way.size)
        putf(fd, "X-Linked-Size: %s\r\n", hub_way.size);
    else if (file->is_large && !hub_way.says_no_size)
        putf(fd, "X-Linked-Size: %zu\r\n", file->n);
}

static void nap(int ms) {
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    nanosleep(&t, NULL);
}

/* The bytes from `first` on, whole or not. */
static void put_body(const connection *c, const hub_file *file, size_t first) {
    const size_t n = file->n - first, half = n / 2;
    char *copy = malloc(n + 1);
    if (!copy) abort();
    memcpy(copy, (const char *)file->data + first, n);
    if (hub_way.flips_bit && file->is_large) copy[n / 3] ^= 1;
    if (hub_way.cut_after < n && take(&hub_way.n_cuts)) {
        put(c->fd, copy, hub_way.cut_after);
    } else if (take(&hub_way.n_stalls)) {
        put(c->fd, copy, half);
        for (char byte; recv(c->fd, &byte, 1, 0) > 0;) continue; /* until the other side has had enough */
    } else if (put(c->fd, copy, half)) {
        nap(file->is_large ? hub_way.delay_ms : 0);
        put(c->fd, copy + half, n - half);
        if (hub_way.sends_more) put(c->fd, copy, n);
    }
    free(copy);
}

static void send_file(const connection *c, const hub_file *file, bool is_head, long first) {
    if (first > 0 && hub_way.refuses_range) {
        putf(c->fd, "HTTP/1.1 416 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        return;
    }
    if (hub_way.ignores_range || first < 0) first = 0;
    putf(c->fd, "HTTP/1.1 %s\r\nConnection: close\r\n", first ? "206 Part" : "200 OK");
    if (first)
        putf(c->fd, "Content-Range: bytes %ld-%zu/%zu\r\n", hub_way.lies_range ? first - 1 : first,
             file->n - 1, file->n);
    if (c->side == 0) put_facts(c->fd, file);
    if (!hub_way.sends_more && !(c->side == 0 && hub_way.says_no_size))
        putf(c->fd, "Content-Length: %zu\r\n", file->n - (size_t)first);
    putf(c->fd, "\r\n");
    if (!is_head) put_body(c, file, (size_t)first);
}

/* ---- answering ---- */

static const hub_file *find(const char *name) {
    for (size_t i = 0; i < n_files; i++) {
        if (strcmp(files[i].name, name) == 0) return &files[i];
    }
    return NULL;
}

static void redirect(int fd, const hub_file *file, const char *location) {
    char *idle = calloc(1, hub_way.n_idle_body + 1);
    putf(fd, "HTTP/1.1 302 Found\r\nConnection: close\r\n");
    put_facts(fd, file);
    putf(fd, "Location: %s\r\nContent-Length: %zu\r\n\r\n", location, hub_way.n_idle_body);
    if (idle) put(fd, idle, hub_way.n_idle_body);
    free(idle);
}

static void refuse(int fd, const char *status, const char *code) {
    putf(fd, "HTTP/1.1 %s\r\nX-Error-Code: %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", status,
         code);
}

static void answer_hub(const connection *c, const char *path, bool is_head, bool has_token, long first) {
    char revision[256], name[256], to[600];
    const bool is_moved = strncmp(path, "/moved/", 7) == 0;
    if (take(&hub_way.n_refusals)) {
        putf(c->fd, "HTTP/1.1 %d No\r\n%sContent-Length: 0\r\nConnection: close\r\n\r\n", hub_way.refusal,
             hub_way.refusal_head ? hub_way.refusal_head : "");
        return;
    }
    if (hub_way.wants_token && !has_token) {
        refuse(c->fd, "401 Who", "RepoNotFound");
        return;
    }
    if (sscanf(path, is_moved ? "/moved/resolve/%255[^/]/%255s" : "/" HUB_REPO "/resolve/%255[^/]/%255s",
               revision, name) != 2) {
        refuse(c->fd, "404 No", "RepoNotFound");
        return;
    }
    const hub_file *file = find(name);
    if (strcmp(revision, "main") != 0 && strcmp(revision, HUB_COMMIT) != 0 &&
        strcmp(revision, "refs%2Fpr%2F1") != 0) {
        refuse(c->fd, "404 No", "RevisionNotFound");
    } else if (!file) {
        refuse(c->fd, "404 No", "EntryNotFound");
    } else if (hub_way.is_relative && !is_moved) {
        snprintf(to, sizeof to, "/moved/resolve/%s/%s", revision, name);
        redirect(c->fd, file, to);
    } else if (file->is_large) {
        snprintf(to, sizeof to, "http://127.0.0.1:%d/%s?signature=x%%3D", port[1], name);
        redirect(c->fd, file, hub_way.location ? hub_way.location : to);
    } else {
        send_file(c, file, is_head, first);
    }
}

static void *serve(void *argument) {
    connection *c = argument;
    char method[8] = "", path[1024] = "";
    size_t n = 0;
    for (ssize_t m;
         n + 1 < sizeof c->request && (m = recv(c->fd, c->request + n, sizeof c->request - 1 - n, 0)) > 0;) {
        n += (size_t)m;
        c->request[n] = '\0';
        if (strstr(c->request, "\r\n\r\n")) break;
    }
    const char *range = strcasestr(c->request, "\r\nRange: bytes=");
    const long first = range ? strtol(range + strlen("\r\nRange: bytes="), NULL, 10) : -1;
    const bool has_token = strcasestr(c->request, "\r\nAuthorization: Bearer " HUB_TOKEN "\r\n") != NULL;
    const bool has_any = strcasestr(c->request, "Authorization") || strstr(c->request, HUB_TOKEN);
    if (sscanf(c->request, "%7s %1023s", method, path) == 2) {
        note("%s %s %s%s", side_names[c->side], method, path, has_any ? " token" : "");
        if (range) note(" range=%ld", first);
        note("\n");
        if (c->side == 0) {
            answer_hub(c, path, strcmp(method, "HEAD") == 0, has_token, first);
        } else {
            path[strcspn(path, "?")] = '\0';
            const hub_file *file = find(path + 1);
            if (file)
                send_file(c, file, strcmp(method, "HEAD") == 0, first);
            else
                refuse(c->fd, "404 No", "-");
        }
    }
    shutdown(c->fd, SHUT_WR);
    for (char byte; recv(c->fd, &byte, 1, 0) > 0;) continue; /* so that nothing sent is lost */
    close(c->fd);
    free(c);
    return NULL;
}

typedef struct listener {
    int fd, side;
} listener;

static void *listen_on(void *argument) {
    const listener *l = argument;
    for (int fd; (fd = accept(l->fd, NULL, NULL)) >= 0;) {
        connection *c = calloc(1, sizeof *c);
        pthread_t thread;
        if (!c) abort();
        c->fd = fd, c->side = l->side;
        const struct timeval most = {.tv_sec = 60};
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
        if (pthread_create(&thread, NULL, serve, c) != 0) abort();
        pthread_detach(thread);
    }
    return NULL;
}

const char *hub_start(const hub_file *list, size_t n) {
    static char url[64];
    static listener listeners[2];
    files = list, n_files = n;
    for (int side = 0; side < 2 && !*url; side++) {
        struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t bytes = sizeof here;
        pthread_t thread;
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (bind(fd, (struct sockaddr *)&here, sizeof here) != 0 || listen(fd, 64) != 0 ||
            getsockname(fd, (struct sockaddr *)&here, &bytes) != 0)
            fail_msg("cannot listen on 127.0.0.1");
        port[side] = ntohs(here.sin_port);
        listeners[side] = (listener){fd, side};
        if (pthread_create(&thread, NULL, listen_on, &listeners[side]) != 0) abort();
        pthread_detach(thread);
    }
    snprintf(url, sizeof url, "http://127.0.0.1:%d", port[0]);
    return url;
}

int hub_storage_port(void) { return port[1]; }

bool hub_has_plugin(void) {
    char out[512];
    return testing_run(
               out, sizeof out,
               "ls \"$(dirname %s)\"/lib*/kith/libkith-hub.so \"$(dirname %s)\"/lib/*/kith/libkith-hub.so "
               "2>/dev/null | grep .",
               testing_program(), testing_program()) == 0;
}
