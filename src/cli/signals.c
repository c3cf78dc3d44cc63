/* Signals, ranks and the clock of commands that run for a long time. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"

static volatile sig_atomic_t stop_signal, n_asked;

/* A user who asks a second time does not want to wait. SIGHUP and SIGPIPE do not come from a user: a terminal that
 * closes may send several, and every line written to a reader that has gone sends one. */
static void on_signal(int signal_number) {
    const bool is_asked = signal_number == SIGINT || signal_number == SIGTERM;
    if (is_asked && n_asked) _exit(128 + signal_number);
    if (is_asked) n_asked = 1;
    if (!stop_signal) stop_signal = signal_number;
}

/* A signal that the parent ignores stays ignored, as nohup wants. */
static bool is_ignored(int signal_number) {
    struct sigaction action;
    return sigaction(signal_number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

void cli_catch_signals(void) {
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (!is_ignored(SIGHUP)) sigaction(SIGHUP, &action, NULL);
    if (!is_ignored(SIGPIPE)) sigaction(SIGPIPE, &action, NULL);
    /* A file that reaches its size limit is an error to report; it must not end the process. */
    signal(SIGXFSZ, SIG_IGN);
}

int cli_stop_signal(void) { return (int)stop_signal; }

bool cli_is_first_rank(void) {
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (!rank) rank = getenv("PMI_RANK");
    return !rank || strcmp(rank, "0") == 0;
}

double cli_seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
