/* Starting and ending a decoding process. */
#include "serve/decode/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/sanitizer.h"
#include "serve/decode/wire.h"

static const double START_SECONDS = 20;

void ki_decode_process_end(ki_decode_process *p) {
    if (p->pid <= 0) return;
    close(p->fd);
    kill(p->pid, SIGKILL);
    while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    p->pid = 0;
}

/* Of the environment a decoder gets what its libraries need to be found, and nothing else: there may be a password in it. It has no use
 * for more than one thread, and each costs memory. */
static char **make_environment(void) {
    static char one[] = "OMP_NUM_THREADS=1", other[] = "OPENBLAS_NUM_THREADS=1";
    static const char *const kept[] = {"LD_LIBRARY_PATH=", "OMP_WAIT_POLICY=", "GOMP_SPINCOUNT=",
                                       "ASAN_OPTIONS=",    "UBSAN_OPTIONS=",   "TSAN_OPTIONS="};
    enum { N_KEPT = sizeof kept / sizeof kept[0] };
    char **list = ki_zalloc(N_KEPT + 3, sizeof *list);
    if (!list) return NULL;
    size_t n = 0;
    list[n++] = one;
    list[n++] = other;
    for (size_t i = 0; i < N_KEPT; i++) {
        for (char **at = environ; *at; at++) {
            if (strncmp(*at, kept[i], strlen(kept[i])) != 0) continue;
            list[n++] = *at;
            break;
        }
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

kith_status ki_decode_process_start(const char *program, uint64_t memory_bytes, ki_decode_process *p,
                                    kith_error *err) {
    int pair[2];
    ki_decode_reply ready;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return ki_fail(err, KITH_EIO, "a decoder cannot be started: %s", strerror(errno));
    const int failed = spawn(program, pair[1], &p->pid);
    close(pair[1]);
    if (failed) {
        close(pair[0]);
        p->pid = 0;
        return ki_fail(err, KITH_EIO, "a decoder cannot be started: %s", strerror(failed));
    }
    p->fd = pair[0];
    const double until = ki_seconds_now() + START_SECONDS;
    if (!ki_wire_write(p->fd, &memory_bytes, sizeof memory_bytes, until) ||
        !ki_wire_read(p->fd, &ready, sizeof ready, until)) {
        ki_decode_process_end(p);
        return ki_fail(err, KITH_EBACKEND, "a decoder was started and ended at once");
    }
    if (ready.status != KITH_OK) {
        ki_decode_process_end(p);
        ready.err.message[sizeof ready.err.message - 1] = '\0';
        return ki_fail(err, KITH_EUNSUPPORTED, "%.400s", ready.err.message);
    }
    return KITH_OK;
}

/* A decoder that waits says nothing: if there is something to read, it is the end. */
bool ki_decode_process_is_gone(const ki_decode_process *p) {
    struct pollfd look = {.fd = p->fd, .events = POLLIN};
    return p->pid <= 0 || poll(&look, 1, 0) != 0;
}
