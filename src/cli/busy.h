/* What a training run does between steps, as a line: for kith train and kith reproduce. */
#ifndef KITH_CLI_BUSY_H
#define KITH_CLI_BUSY_H

#include "cli/cli.h"
#include "kith/train.h"

/* Begin with zeros. */
typedef struct cli_busy {
    cli_pace pace;
    int64_t n_done;
    char split[16];
} cli_busy;

/* Call it with every KITH_TRAIN_BUSY event: the seconds that are left of this piece of work, as by cli_pace_left. */
double cli_busy_left(cli_busy *busy, double now, const kith_train_event *event);

/* "step 0/150  judging validation 320/889, 0:12 left". Returns buf. */
const char *cli_busy_text(const kith_train_event *event, double left, char *buf, size_t bytes);

#endif
