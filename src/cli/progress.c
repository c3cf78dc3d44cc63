/* Progress on standard error; see cli.h. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

enum { BAR_WIDTH = 28 };
static const double FIRST_SECONDS = 1, BAR_SECONDS = 0.1, LINE_SECONDS = 10, PACE_SECONDS = 2;

const char *cli_time_text(double seconds, char *buf, size_t bytes) {
    const long s = seconds > 0 ? (long)seconds : 0;
    if (s >= 3600)
        snprintf(buf, bytes, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(buf, bytes, "%ld:%02ld", s / 60, s % 60);
    return buf;
}

double cli_pace_left(cli_pace *pace, double now, int64_t done, int64_t total) {
    if (!pace->has_begun && done > 0) *pace = (cli_pace){.has_begun = true, .began = now, .first = done};
    const double seconds = now - pace->began;
    if (!pace->has_begun || seconds < PACE_SECONDS || done <= pace->first || done >= total) return NAN;
    return seconds / (double)(done - pace->first) * (double)(total - done);
}

static void draw(cli_progress *p, double now, double left, const char *note) {
    char time[32];
    const double part = p->total > 0 ? (double)p->done / (double)p->total : 0;
    flockfile(stderr); /* so that no other thread prints in the middle of this line */
    if (p->is_terminal) {
        const int n_full = (int)(part * BAR_WIDTH);
        fprintf(stderr, "\r%s [", p->what);
        for (int i = 0; i < BAR_WIDTH; i++) fputc(i < n_full ? '#' : '.', stderr);
        fprintf(stderr, "] ");
    } else {
        fprintf(stderr, "%s ", p->what);
    }
    fprintf(stderr, "%lld/%lld", (long long)p->done, (long long)p->total);
    if (!isnan(left)) fprintf(stderr, ", %s left", cli_time_text(left, time, sizeof time));
    if (note) fprintf(stderr, ", %s", note);
    /* Clear to the end of the line: the line before may have been longer. */
    fputs(p->is_terminal ? "\033[K" : "\n", stderr);
    fflush(stderr);
    funlockfile(stderr);
    p->drawn = now;
    p->has_drawn = true;
}

void cli_progress_begin(cli_progress *p, const char *what, int64_t total) {
    const double now = cli_seconds_now();
    *p = (cli_progress){.what = what, .total = total, .is_terminal = isatty(STDERR_FILENO), .began = now};
    p->drawn = now;
}

void cli_progress_update(cli_progress *p, int64_t done, const char *note) {
    const double now = cli_seconds_now();
    const double left = cli_pace_left(&p->pace, now, done, p->total);
    p->done = done;
    if (now - p->began < FIRST_SECONDS) return;
    const bool is_due = now - p->drawn >= (p->is_terminal ? BAR_SECONDS : LINE_SECONDS);
    if (is_due || !p->has_drawn || (done == p->total && p->has_drawn)) draw(p, now, left, note);
}

void cli_progress_end(cli_progress *p) {
    if (p->has_drawn && p->is_terminal) fputc('\n', stderr);
    p->has_drawn = false;
}
