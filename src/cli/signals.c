/* Signals of commands that work long, and the clock they tell time by. */
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"

static volatile sig_atomic_t stop_signal;

static void on_signal(int signal_number) {
    if (stop_signal) _exit(128 + signal_number);
    stop_signal = signal_number;
}

void cli_catch_signals(void) {
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    /* A file that reaches its size limit is an error to report, not a reason to die. */
    signal(SIGXFSZ, SIG_IGN);
}

int cli_stop_signal(void) { return (int)stop_signal; }

double cli_seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
