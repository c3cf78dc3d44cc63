/* A hostile client of kith serve, and what it costs everybody else:
 *
 *   serve_hostile PORT SERVER memory    a request of 143 KB: one PNG of 7000 x 7000 pixels, named 16 times with crop and flips
 *   serve_hostile PORT SERVER decoders  twelve JPEGs of 200 scans and 49 million pixels from one address; meanwhile another asks
 *   serve_hostile PORT SERVER uploads   eighteen uploads of 31 MiB from one address that never end; then another sends a photo
 *   serve_hostile PORT SERVER halves    a hundred half requests that are closed at once; who is still there after a second
 *   serve_hostile PORT SERVER queries   a hundred clients of one address for 8 s, each with a photo named 16 times; another sends one
 *   serve_hostile PORT SERVER where     a filter of 60 KB
 *
 * SERVER is the server's process. Each prints one line that begins with the numbers that serve_hostile.sh reads. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../support/hostile.h"

static const char attacker[] = "127.0.0.66", other[] = "127.0.0.9";
static int port;
static long server;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void wait_seconds(double seconds) {
    const struct timespec moment = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&moment, NULL);
}

/* ---- memory of the server and its decoders ---- */

static double most_mib(long pid) {
    char path[64], line[256];
    long kib = 0;
    snprintf(path, sizeof path, "/proc/%ld/status", pid);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, "VmHWM:", 6) == 0) kib = strtol(line + 6, NULL, 10);
    }
    fclose(file);
    return (double)kib / 1024;
}

/* The sum of what each has had at most. */
static double most_of_all(void) {
    char path[64], line[4096] = "";
    double sum = most_mib(server);
    snprintf(path, sizeof path, "ps -o pid= --ppid %ld", server);
    FILE *list = popen(path, "r");
    if (!list) return sum;
    while (fgets(line, sizeof line, list)) sum += most_mib(strtol(line, NULL, 10));
    pclose(list);
    return sum;
}

/* ---- requests ---- */

static int open_from(const char *from) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct timeval most = {.tv_sec = 60};
    struct sockaddr_in here = {.sin_family = AF_INET},
                       to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, from, &here.sin_addr);
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
    if (bind(fd, (struct sockaddr *)&here, sizeof here) == 0 &&
        connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    close(fd);
    return -1;
}

static bool send_all(int fd, const void *bytes, size_t n) {
    const char *at = bytes;
    while (n > 0) {
        const ssize_t m = send(fd, at, n, MSG_NOSIGNAL);
        if (m <= 0) return false;
        at += m;
        n -= (size_t)m;
    }
    return true;
}

/* The status of the answer, 0 when there is none; its body goes to `body` as far as it fits. */
static int receive(int fd, char *body, size_t room) {
    static const size_t most = 1 << 20;
    char *all = malloc(most);
    size_t n = 0;
    if (!all) abort();
    for (ssize_t m; n < most - 1 && (m = recv(fd, all + n, most - 1 - n, 0)) > 0;) n += (size_t)m;
    all[n] = '\0';
    close(fd);
    const int status = strncmp(all, "HTTP/1.", 7) == 0 ? (int)strtol(all + 9, NULL, 10) : 0;
    const char *rest = strstr(all, "\r\n\r\n");
    if (body) snprintf(body, room, "%s", rest ? rest + 4 : "");
    free(all);
    return status;
}

static int ask(const char *from, const char *head, const void *body, size_t n, char *answer, size_t room) {
    const int fd = open_from(from);
    if (fd < 0) return 0;
    if (send_all(fd, head, strlen(head)) && n > 0) send_all(fd, body, n);
    return receive(fd, answer, room);
}

static int get(const char *from, const char *path, char *answer, size_t room) {
    char head[256];
    snprintf(head, sizeof head, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    return ask(from, head, NULL, 0, answer, room);
}

static int search(const char *from, const char *query, const void *file, size_t n_file) {
    char head[256];
    hostile_file body = {0};
    static const char first[] = "--b\r\nContent-Disposition: form-data; name=\"query\"\r\n\r\n",
                      second[] = "\r\n--b\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\n",
                      last[] = "\r\n--b--\r\n";
    hostile_put(&body, first, strlen(first));
    hostile_put(&body, query, strlen(query));
    if (file) {
        hostile_put(&body, second, strlen(second));
        hostile_put(&body, file, n_file);
    }
    hostile_put(&body, last, strlen(last));
    snprintf(head, sizeof head,
             "POST /api/v1/search HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: "
             "multipart/form-data; boundary=b\r\nContent-Length: %zu\r\n\r\n",
             body.n);
    const int status = ask(from, head, body.bytes, body.n, NULL, 0);
    free(body.bytes);
    return status;
}

static const char one_image[] = "{\"images\": [{\"part\": \"f\"}], \"k\": 1}";

/* A small image, with the bytes that a photo of a phone has. */
static double time_of_photo(int *ret_status) {
    hostile_file photo = hostile_png(64, 2 << 20);
    const double began = now();
    *ret_status = search(other, one_image, photo.bytes, photo.n);
    free(photo.bytes);
    return now() - began;
}

/* ---- the parts ---- */

/* Sixteen times the same part, and its mirror image. */
static const char *often(int side) {
    static char query[4096];
    strcpy(query, "{\"images\": [");
    for (int i = 0; i < 16; i++)
        snprintf(query + strlen(query), 100, "%s{\"part\": \"f\", \"crop\": [0, 0, %d, %d]}", i ? ", " : "",
                 side, side);
    return strcat(query, "], \"flips\": true}");
}

static void try_memory(void) {
    const char *query = often(7000);
    hostile_file file = hostile_png(7000, 0);
    const double began = now(), before = most_of_all();
    const int status = search(attacker, query, file.bytes, file.n);
    printf("%.0f MiB resident at most (%.0f before), %zu bytes sent, status %d after %.1f s\n", most_of_all(),
           before, file.n, status, now() - began);
    free(file.bytes);
}

static hostile_file slow;
static atomic_int n_left, n_found, n_refused;

static void *send_slow(void *unused) {
    const int status = search(attacker, one_image, slow.bytes, slow.n);
    if (status == 200)
        atomic_fetch_add(&n_found, 1);
    else
        atomic_fetch_add(&n_refused, 1);
    atomic_fetch_sub(&n_left, 1);
    return unused;
}

static void try_decoders(void) {
    enum { N = 12 };
    pthread_t thread[N];
    double slowest_info = 0, slowest_photo = 0;
    int photo = 0, n_asked = 0, n_failed = 0;
    slow = hostile_jpeg(7000, 200);
    atomic_store(&n_left, N);
    const double began = now();
    for (int i = 0; i < N; i++) pthread_create(&thread[i], NULL, send_slow, NULL);
    wait_seconds(0.5);
    do {
        const double asked = now();
        n_failed += get(other, "/api/v1/info", NULL, 0) != 200;
        n_asked++;
        if (now() - asked > slowest_info) slowest_info = now() - asked;
        const double took = time_of_photo(&photo);
        n_failed += photo != 200;
        if (took > slowest_photo) slowest_photo = took;
        wait_seconds(0.02);
    } while (atomic_load(&n_left) > 0 && now() - began < 60);
    for (int i = 0; i < N; i++) pthread_join(thread[i], NULL);
    printf(
        "%.3f s for /api/v1/info at most, %.3f s for a photo, asked %d times, %d without an answer; %d "
        "hostile files of %zu "
        "bytes found with and %d refused in %.1f s\n",
        slowest_info, slowest_photo, n_asked, n_failed, atomic_load(&n_found), slow.n,
        atomic_load(&n_refused), now() - began);
}

static double end_at;
static atomic_int n_queries;

static void *send_queries(void *query) {
    hostile_file photo = hostile_png(64, 0);
    while (now() < end_at) atomic_fetch_add(&n_queries, search(attacker, query, photo.bytes, photo.n) == 200);
    free(photo.bytes);
    return NULL;
}

static void try_queries(void) {
    enum { N = 100 };
    pthread_t thread[N];
    double slowest = 0, sum = 0;
    int n = 0, status = 0, n_failed = 0;
    char query[4096];
    snprintf(query, sizeof query, "%s", often(64));
    end_at = now() + 8;
    for (int i = 0; i < N; i++) pthread_create(&thread[i], NULL, send_queries, query);
    wait_seconds(1);
    while (now() < end_at) {
        const double took = time_of_photo(&status);
        n_failed += status != 200;
        if (took > slowest) slowest = took;
        sum += took;
        n++;
    }
    for (int i = 0; i < N; i++) pthread_join(thread[i], NULL);
    printf(
        "%.3f s for a photo at most, %.3f on average, asked %d times, %d without an answer; %d hostile "
        "queries answered\n",
        slowest, sum / n, n, n_failed, atomic_load(&n_queries));
}

/* Sends all but the end, as long as somebody takes it. */
static void *stall(void *context) {
    const size_t n = (size_t)31 << 20;
    char head[256], *bytes = calloc(1, n);
    const int fd = open_from(attacker);
    if (!bytes) abort();
    snprintf(head, sizeof head,
             "POST /api/v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; "
             "boundary=b\r\nContent-Length: %zu\r\n\r\n",
             n + 1000);
    if (send_all(fd, head, strlen(head))) send_all(fd, bytes, n);
    free(bytes);
    *(int *)context = fd;
    return NULL;
}

static void try_uploads(void) {
    enum { N = 18 };
    pthread_t thread[N];
    int fd[N], n_good = 0, n_tried = 20, status = 0;
    for (int i = 0; i < N; i++) pthread_create(&thread[i], NULL, stall, &fd[i]);
    for (int i = 0; i < N; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < n_tried; i++) {
        time_of_photo(&status);
        n_good += status == 200;
    }
    printf("%d of %d photos of another address answered (the last with %d), %.0f MiB resident at most\n",
           n_good, n_tried, status, most_of_all());
    for (int i = 0; i < N; i++) close(fd[i]);
}

static void try_halves(void) {
    static const char *const half[] = {
        "GET /api/v1/info HT", "GET /api/v1/info HTTP/1.1\r\nHost: loc",
        "POST /api/v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nabc",
        "POST /api/v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"};
    static char answer[1 << 16];
    for (int i = 0; i < 100; i++) {
        const int fd = open_from(attacker);
        send_all(fd, half[i % 4], strlen(half[i % 4]));
        close(fd);
    }
    wait_seconds(1);
    get(other, "/metrics", answer, sizeof answer);
    const char *at = strstr(answer, "\nkith_connections ");
    const long n_open = at ? strtol(at + strlen("\nkith_connections "), NULL, 10) - 1 : -1; /* our own */
    printf("%ld of 100 half requests are open after 1 s\n", n_open);
}

static void try_where(void) {
    hostile_file q = {0};
    static const char first[] = "{\"images\": [{\"id\": 0}], \"k\": 1, \"where\": \"", in[] = "label in (''",
                      between[] = ") or ", last[] = ") or id >= 0\"}";
    hostile_put(&q, first, strlen(first));
    for (int i = 0; i < 2; i++) {
        hostile_put(&q, in, strlen(in));
        for (int j = 0; j < 9990; j++) hostile_put(&q, ",''", 3);
        if (i == 0) hostile_put(&q, between, strlen(between));
    }
    hostile_put(&q, last, sizeof last); /* and its 0 */
    int status = search(attacker, "{\"images\": [{\"id\": 0}], \"k\": 1, \"where\": \"id >= 0\"}", NULL, 0);
    const double before = most_of_all(), began = now();
    status = search(attacker, (const char *)q.bytes, NULL, 0);
    printf("%.1f MiB more resident, %.3f s, %zu bytes of query, status %d\n", most_of_all() - before,
           now() - began, q.n, status);
    free(q.bytes);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } part[] = {{"memory", try_memory},   {"decoders", try_decoders}, {"queries", try_queries},
                {"uploads", try_uploads}, {"halves", try_halves},     {"where", try_where}};
    if (argc != 4) return 2;
    port = (int)strtol(argv[1], NULL, 10);
    server = strtol(argv[2], NULL, 10);
    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++) {
        if (strcmp(argv[3], part[i].name) != 0) continue;
        part[i].run();
        return 0;
    }
    fprintf(stderr, "serve_hostile: no part '%s'\n", argv[3]);
    return 2;
}
