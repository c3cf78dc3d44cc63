/* The learning rate of every step. It depends on the step alone and nothing is remembered, so a run that is
 * resumed at step k continues as if it had never stopped.
 *
 *     optim: {lr: 1e-4, epochs: 50, warmup: 500, head_only: 200, schedule: {name: step, at: [20, 40], factor: 0.1}} */
#ifndef KI_SCHEDULE_H
#define KI_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/option.h"

typedef enum ki_schedule_name { KI_SCHEDULE_CONSTANT, KI_SCHEDULE_STEP, KI_SCHEDULE_COSINE } ki_schedule_name;

enum { KI_SCHEDULE_MOST_AT = 32 };

typedef struct ki_schedule_settings {
    double lr; /* the highest */
    /* The length: one of the two is given, or neither (the caller then has a default). */
    int64_t steps, epochs; /* 0: not given */
    int64_t warmup;        /* steps over which lr grows linearly: lr * (step + 1) / warmup */
    int64_t head_only;     /* steps in which the backbone does not learn */
    int name;              /* ki_schedule_name */
    double factor;         /* step: on lr, at each of `at` */
    double final;          /* cosine: the last rate as a fraction of lr */
    const ki_value *at;    /* as given */
    int n_at;
    double at_value[KI_SCHEDULE_MOST_AT]; /* step: in epochs when `epochs` is given, else in steps; rising */
} ki_schedule_settings;

/* The `schedule:` map, without lr, steps, epochs, warmup and head_only, which are beside it. */
extern const ki_option ki_schedule_options[];
kith_status ki_schedule_parse(const ki_value *map, ki_schedule_settings *settings, kith_error *err);

typedef struct ki_schedule_point {
    double lr;
    bool head_only; /* only the embedding layer and the objective learn */
} ki_schedule_point;

/* For step `step` (from 0) of a run of n_steps. With `epochs` given, n_steps is their number of steps. */
ki_schedule_point ki_schedule_at(const ki_schedule_settings *settings, int64_t step, int64_t n_steps);

#endif
