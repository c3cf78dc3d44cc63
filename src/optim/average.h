/* A moving average of values that an optimizer changes (Polyak and Juditsky 1992), in backend memory:
 *
 *     average += (1 - d) (value - average),  d = min(decay, (1 + t) / (10 + t)) at update t, from 1
 *
 * so that the first updates count for as much as they should. Each launch is the same backend calls, so it can be recorded.
 *
 *     after each update:  ki_average_tick(average, t, err);  ki_average_launch(average, err); */
#ifndef KI_AVERAGE_H
#define KI_AVERAGE_H

#include "device/backend.h"

typedef struct ki_average ki_average;

/* What is averaged: borrowed backend memory. */
typedef struct ki_average_part {
    ki_real *value;
    int64_t n;
} ki_average_part;

/* The averages begin as the values are. */
kith_status ki_average_new(ki_backend *backend, const ki_average_part *parts, int n_parts, double decay,
                           ki_average **ret_average, kith_error *err);
void ki_average_free(ki_average *average); /* NULL is fine */

/* Write to backend memory what update t, from 1, needs. */
kith_status ki_average_tick(ki_average *average, int64_t t, kith_error *err);
kith_status ki_average_launch(ki_average *average, kith_error *err);

/* Exchange values and averages, bit by bit. Queued. */
kith_status ki_average_swap(ki_average *average, kith_error *err);

/* The average of part i, to and from host memory [n]; both wait for the backend. */
kith_status ki_average_get(const ki_average *average, int i, ki_real *ret_value, kith_error *err);
kith_status ki_average_set(ki_average *average, int i, const ki_real *value, kith_error *err);

#endif
