/* Load for a search server: many clients for a while, each from an address of its own, and how long they waited.
 *
 *     serve_load PORT CLIENTS SECONDS ITEMS [IMAGE]
 *
 * Every client (a thread with one connection that is kept) asks again as soon as it has an answer: for the neighbours of a random item, or
 * with IMAGE for those of that file. Prints requests per second, the 50th and 99th percentile of seconds, and answers by status. Clients
 * are at 127.1.x.y, so that limits per address do not decide. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST_CLIENTS = 4096, MOST_EACH = 200000 };

static int port, n_items;
static double end_at;
static char *image;
static size_t n_image;

typedef struct client {
    pthread_t thread;
    int number;
    float *seconds;
    int n, n_ok, n_busy, n_other, n_cut;
} client;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int open_connection(const client *c) {
    const int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in here = {.sin_family = AF_INET},
                       to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    here.sin_addr.s_addr = htonl(0x7f010000u + (unsigned)c->number + 1);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&here, sizeof here) == 0 &&
        connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    close(fd);
    return -1;
}

static int send_all(int fd, const char *at, size_t n) {
    while (n > 0) {
        const ssize_t m = send(fd, at, n, MSG_NOSIGNAL);
        if (m <= 0) return 0;
        at += m;
        n -= (size_t)m;
    }
    return 1;
}

/* The whole answer; its status, or 0 when the connection is over. */
static int receive(int fd) {
    char buf[65536];
    size_t n = 0, whole = 0;
    while (whole == 0 || n < whole) {
        const ssize_t m =
            recv(fd, buf + (n < sizeof buf - 1 ? n : 0), n < sizeof buf - 1 ? sizeof buf - 1 - n : 1024, 0);
        if (m <= 0) return 0;
        n += (size_t)m;
        if (whole > 0) continue;
        buf[n < sizeof buf ? n : sizeof buf - 1] = '\0';
        const char *end = strstr(buf, "\r\n\r\n"), *length = strstr(buf, "Content-Length: ");
        if (end && length) whole = (size_t)(end - buf) + 4 + (size_t)strtoul(length + 16, NULL, 10);
    }
    return (int)strtol(buf + 9, NULL, 10);
}

static size_t make_request(char *to, size_t bytes, unsigned *random) {
    static const char line[] = "POST /api/v1/search HTTP/1.1\r\nHost: localhost\r\n";
    char body[512];
    if (!image) {
        *random = *random * 1664525u + 1013904223u;
        const int n = snprintf(body, sizeof body, "{\"images\": [{\"id\": %u}], \"k\": 10}",
                               (*random >> 8) % (unsigned)n_items);
        return (size_t)snprintf(to, bytes, "%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
                                line, n, body);
    }
    const int n = snprintf(body, sizeof body,
                           "--b\r\nContent-Disposition: form-data; name=\"query\"\r\n\r\n{\"images\": "
                           "[{\"part\": \"f\"}], \"k\": "
                           "10}\r\n--b\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\n");
    size_t m = (size_t)snprintf(
        to, bytes, "%sContent-Type: multipart/form-data; boundary=b\r\nContent-Length: %zu\r\n\r\n%s", line,
        (size_t)n + n_image + 9, body);
    memcpy(to + m, image, n_image);
    m += n_image;
    return m + (size_t)snprintf(to + m, bytes - m, "\r\n--b--\r\n");
}

static void *ask(void *context) {
    client *c = context;
    unsigned random = (unsigned)c->number * 2654435761u + 1;
    const size_t room = 4096 + n_image;
    char *request = malloc(room);
    int fd = -1;
    while (request && now() < end_at && c->n < MOST_EACH) {
        if (fd < 0) fd = open_connection(c);
        if (fd < 0) {
            usleep(10000);
            continue;
        }
        const double began = now();
        const size_t n = make_request(request, room, &random);
        const int status = send_all(fd, request, n) ? receive(fd) : 0;
        c->seconds[c->n++] = (float)(now() - began);
        c->n_ok += status == 200;
        c->n_busy += status == 503 || status == 429;
        c->n_cut += status == 0;
        c->n_other += status != 200 && status != 503 && status != 429 && status != 0;
        if (status == 0) {
            close(fd);
            fd = -1;
        }
    }
    if (fd >= 0) close(fd);
    free(request);
    return NULL;
}

static int by_size(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void read_image(const char *path) {
    FILE *file = fopen(path, "rb");
    image = malloc(64 << 20);
    if (!file || !image) exit(1);
    n_image = fread(image, 1, 64 << 20, file);
    fclose(file);
}

int main(int argc, char **argv) {
    static client clients[MOST_CLIENTS];
    if (argc < 5) {
        fprintf(stderr, "usage: serve_load PORT CLIENTS SECONDS ITEMS [IMAGE]\n");
        return 2;
    }
    port = (int)strtol(argv[1], NULL, 10);
    const int n = (int)strtol(argv[2], NULL, 10);
    const double seconds = strtod(argv[3], NULL);
    n_items = (int)strtol(argv[4], NULL, 10);
    if (argc > 5) read_image(argv[5]);
    if (n < 1 || n > MOST_CLIENTS || n_items < 1) return 2;
    const double began = now();
    end_at = began + seconds;
    for (int i = 0; i < n; i++) {
        clients[i].number = i;
        clients[i].seconds = malloc(MOST_EACH * sizeof(float));
        if (!clients[i].seconds || pthread_create(&clients[i].thread, NULL, ask, &clients[i]) != 0) return 1;
    }
    long total = 0, n_ok = 0, n_busy = 0, n_other = 0, n_cut = 0;
    for (int i = 0; i < n; i++) {
        pthread_join(clients[i].thread, NULL);
        total += clients[i].n;
        n_ok += clients[i].n_ok;
        n_busy += clients[i].n_busy;
        n_other += clients[i].n_other;
        n_cut += clients[i].n_cut;
    }
    const double took = now() - began;
    float *all = malloc((size_t)(total + 1) * sizeof *all);
    if (!all) return 1;
    long at = 0;
    for (int i = 0; i < n; i++) {
        memcpy(all + at, clients[i].seconds, (size_t)clients[i].n * sizeof *all);
        at += clients[i].n;
        free(clients[i].seconds);
    }
    qsort(all, (size_t)total, sizeof *all, by_size);
    printf(
        "%d clients, %.0f s: %.0f requests/s, p50 %.1f ms, p99 %.1f ms; %ld answered, %ld told to come back, "
        "%ld cut, %ld else\n",
        n, took, (double)total / took, total ? 1e3 * (double)all[total / 2] : 0,
        total ? 1e3 * (double)all[(total * 99) / 100] : 0, n_ok, n_busy, n_cut, n_other);
    free(all);
    return n_ok > 0 ? 0 : 1;
}
