/* Starting, asking and replacing decoding processes. */
#include "serve/decode/decoders.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/sanitizer.h"

enum { MOST_JPEG_BYTES = 64 << 20 };
static const double START_SECONDS = 20;

typedef struct decoder {
    pid_t pid; /* 0: there is none */
    int fd;
    bool is_busy;
} decoder;

struct ki_decoders {
    ki_decoders_options options;
    pthread_mutex_t lock;
    pthread_cond_t is_free;
    decoder decoder[];
};

/* ---- processes ---- */

static void end(decoder *d) {
    if (d->pid <= 0) return;
    close(d->fd);
    kill(d->pid, SIGKILL);
    while (waitpid(d->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    d->pid = 0;
}

/* The environment with one thread for every library: a decoder has no use for more, and each costs memory. */
static char **make_environment(void) {
    static char one[] = "OMP_NUM_THREADS=1", other[] = "OPENBLAS_NUM_THREADS=1";
    size_t n = 0;
    while (environ[n]) n++;
    char **list = ki_zalloc(n + 3, sizeof *list);
    if (!list) return NULL;
    size_t kept = 0;
    list[kept++] = one;
    list[kept++] = other;
    for (size_t i = 0; i < n; i++) {
        if (strncmp(environ[i], "OMP_NUM_THREADS=", 16) != 0 && strncmp(environ[i], "OPENBLAS_NUM_", 13) != 0)
            list[kept++] = environ[i];
    }
    return list;
}

static int spawn(const char *program, int fd, pid_t *ret_pid) {
    static char name[] = "kith", command[] = "serve", argument[] = "--decode-images";
    char *const arguments[] = {name, command, argument, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, usual;
    char **environment = make_environment();
    if (!environment) return ENOMEM;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, fd, STDIN_FILENO);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    /* What a decoder says may be a stranger's words; a sanitizer's report is not. */
    if (!KI_SANITIZED) posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
    posix_spawnattr_init(&attributes);
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setpgroup(&attributes, 0); /* Ctrl-C is for the server: it ends its decoders */
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    const int failed = posix_spawn(ret_pid, program, &files, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    ki_free(environment);
    return failed;
}

/* Start it, and wait until it is locked in. */
static kith_status start(const ki_decoders_options *o, decoder *d, kith_error *err) {
    int pair[2];
    ki_decode_reply ready;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return ki_fail(err, KITH_EIO, "a decoder cannot be started: %s", strerror(errno));
    const int failed = spawn(o->program, pair[1], &d->pid);
    close(pair[1]);
    if (failed) {
        close(pair[0]);
        d->pid = 0;
        return ki_fail(err, KITH_EIO, "a decoder cannot be started: %s", strerror(failed));
    }
    d->fd = pair[0];
    const double until = ki_seconds_now() + START_SECONDS;
    if (!ki_wire_write(d->fd, &o->memory_bytes, sizeof o->memory_bytes, until) ||
        !ki_wire_read(d->fd, &ready, sizeof ready, until)) {
        end(d);
        return ki_fail(err, KITH_EBACKEND, "a decoder was started and ended at once");
    }
    if (ready.status != KITH_OK) {
        end(d);
        ready.err.message[sizeof ready.err.message - 1] = '\0';
        return ki_fail(err, KITH_EUNSUPPORTED, "%.400s", ready.err.message);
    }
    return KITH_OK;
}

kith_status ki_decoders_new(const ki_decoders_options *options, ki_decoders **ret, kith_error *err) {
    ki_decoders *d = NULL;
    kith_status status = KITH_OK;
    KI_TRY(ki_zalloc_or(&d, 1, sizeof *d + (size_t)options->n * sizeof *d->decoder, "decoders", err));
    d->options = *options;
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->is_free, &clock);
    pthread_condattr_destroy(&clock);
    for (int64_t i = 0; status == KITH_OK && i < options->n; i++)
        status = start(&d->options, &d->decoder[i], err);
    if (status == KITH_OK)
        *ret = d;
    else
        ki_decoders_free(d);
    return status;
}

void ki_decoders_free(ki_decoders *d) {
    if (!d) return;
    for (int64_t i = 0; i < d->options.n; i++) end(&d->decoder[i]);
    pthread_cond_destroy(&d->is_free);
    pthread_mutex_destroy(&d->lock);
    ki_free(d);
}

/* ---- asking ---- */

static decoder *find_free(ki_decoders *d) {
    for (int64_t i = 0; i < d->options.n; i++) {
        if (!d->decoder[i].is_busy) return &d->decoder[i];
    }
    return NULL;
}

static decoder *take(ki_decoders *d, double until) {
    const struct timespec end_of_wait = {(time_t)floor(until), (long)((until - floor(until)) * 1e9)};
    decoder *found = NULL;
    int failed = 0;
    pthread_mutex_lock(&d->lock);
    while (!(found = find_free(d)) && failed == 0)
        failed = pthread_cond_timedwait(&d->is_free, &d->lock, &end_of_wait);
    if (found) found->is_busy = true;
    pthread_mutex_unlock(&d->lock);
    return found;
}

static void give_back(ki_decoders *d, decoder *one) {
    pthread_mutex_lock(&d->lock);
    one->is_busy = false;
    pthread_cond_signal(&d->is_free);
    pthread_mutex_unlock(&d->lock);
}

/* A decoder that waits says nothing: if there is something to read, it is the end. */
static bool is_gone(const decoder *one) {
    struct pollfd look = {.fd = one->fd, .events = POLLIN};
    return one->pid <= 0 || poll(&look, 1, 0) != 0;
}

static bool is_sound(const ki_decode_question *q, ki_decode_reply *r) {
    r->err.message[sizeof r->err.message - 1] = '\0';
    r->err.hint[sizeof r->err.hint - 1] = '\0';
    if (r->status != KITH_OK) return r->n_bytes == 0 && r->status > 0 && r->status <= KITH_EINTERNAL;
    if (q->want == KI_WANT_JPEG) return r->n_bytes > 0 && r->n_bytes <= MOST_JPEG_BYTES;
    if (r->w < 1 || r->h < 1 || r->w > KI_IMAGE_MOST_SIDE || r->h > KI_IMAGE_MOST_SIDE) return false;
    if (r->full_w < r->w || r->full_h < r->h) return false;
    if ((r->channels != 1 && r->channels != 3) || (int64_t)r->w * r->h > q->most_pixels) return false;
    return r->n_bytes == (uint64_t)r->w * (uint64_t)r->h * (uint64_t)r->channels;
}

static kith_status converse(const decoder *one, const ki_decode_question *q, const void *file, double until,
                            ki_decode_reply *ret_reply, void **ret_bytes, kith_error *err) {
    void *bytes = NULL;
    if (!ki_wire_write(one->fd, q, sizeof *q, until) || !ki_wire_write(one->fd, file, q->n_bytes, until) ||
        !ki_wire_read(one->fd, ret_reply, sizeof *ret_reply, until) || !is_sound(q, ret_reply))
        return ki_fail(err, KITH_EBACKEND, "the image stopped its decoder");
    if (ret_reply->status != KITH_OK) return KITH_OK;
    KI_TRY(ki_alloc_or(&bytes, ret_reply->n_bytes + KI_IMAGE_SLACK, 1, "an image", err));
    if (!ki_wire_read(one->fd, bytes, ret_reply->n_bytes, until)) {
        ki_free(bytes);
        return ki_fail(err, KITH_EBACKEND, "the image stopped its decoder");
    }
    memset((char *)bytes + ret_reply->n_bytes, 0, KI_IMAGE_SLACK);
    *ret_bytes = bytes;
    return KITH_OK;
}

kith_status ki_decoders_ask(ki_decoders *d, const ki_decode_question *question, const void *file,
                            double until, ki_decode_reply *ret_reply, void **ret_bytes, kith_error *err) {
    kith_status status = KITH_OK;
    decoder *one = take(d, until);
    *ret_bytes = NULL;
    if (!one) return ki_fail(err, KITH_ECANCELED, "no decoder was free in time");
    if (is_gone(one)) {
        if (one->pid > 0) atomic_fetch_add(d->options.n_failures, 1);
        end(one);
        status = start(&d->options, one, err);
    }
    if (status == KITH_OK)
        status =
            converse(one, question, file, ki_seconds_now() + d->options.seconds, ret_reply, ret_bytes, err);
    /* Whatever went wrong, its next words would be the rest of this answer. */
    if (status != KITH_OK) {
        atomic_fetch_add(d->options.n_failures, 1);
        end(one);
        kith_error later;
        start(&d->options, one, &later); /* if that fails, whoever asks next tries again */
    }
    give_back(d, one);
    return status;
}
