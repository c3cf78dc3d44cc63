/* What a training run does between steps, as a line; see busy.h. */
#include "cli/busy.h"

#include <math.h>
#include <string.h>

double cli_busy_left(cli_busy *busy, double now, const kith_train_event *e) {
    const char *split = e->split ? e->split : "";
    /* Each split is counted from its first image, and has its own pace. */
    if (e->n_done < busy->n_done || strcmp(split, busy->split) != 0) busy->pace = (cli_pace){0};
    busy->n_done = e->n_done;
    snprintf(busy->split, sizeof busy->split, "%s", split);
    return cli_pace_left(&busy->pace, now, e->n_done, e->n_all);
}

const char *cli_busy_text(const kith_train_event *e, double left, char *buf, size_t bytes) {
    char time[32], rest[48] = "";
    if (!isnan(left)) snprintf(rest, sizeof rest, ", %s left", cli_time_text(left, time, sizeof time));
    char step[64] = ""; /* before a run has a length there is none */
    if (e->n_steps > 0)
        snprintf(step, sizeof step, "step %lld/%lld  ", (long long)e->step, (long long)e->n_steps);
    snprintf(buf, bytes, "%s%s%s%s %lld/%lld%s", step, e->text, e->split ? " " : "", e->split ? e->split : "",
             (long long)e->n_done, (long long)e->n_all, rest);
    return buf;
}
