/* An objective and one batch of arrays on a device that evaluates objectives itself (objective/engine.h). */
#ifndef KI_OBJECTIVE_PLACED_H
#define KI_OBJECTIVE_PLACED_H

#include "objective/engine.h"

typedef struct ki_placed ki_placed;

/* For batches with the sizes of `batch`, whose last n_unlabelled items have no class. KITH_EUNSUPPORTED for the host, which takes arrays where they are. The objective
 * must outlive it. */
kith_status ki_placed_new(const char *device, ki_objective *objective, const ki_batch *batch,
                          int64_t n_unlabelled, ki_placed **ret_placed, kith_error *err);
void ki_placed_free(ki_placed *placed); /* NULL is fine */
bool ki_placed_fits(const ki_placed *placed, const ki_batch *batch, int64_t n_unlabelled);

/* What ki_objective_evaluate does: the objective's parameters go to the device, and what the evaluation changes
 * comes back to them. KITH_ENUMERIC when something was not finite. */
kith_status ki_placed_evaluate(ki_placed *placed, const ki_batch *batch, ki_result *ret_result,
                               kith_error *err);

/* The same on memory of the device, queued beside `stream` (engine.h); taps and labels of the batch are there. The host waits only
 * where the objective has parameters, which go there and whose gradients come back. */
typedef struct ki_placed_results {
    float *diff[KI_N_TAPS]; /* for every tap that is read */
    float *diff_stopped;    /* where ki_engine_stops */
    double *total;          /* may be NULL */
    float *total_f32;       /* the same, rounded; may be NULL */
} ki_placed_results;
kith_status ki_placed_queue(ki_placed *placed, const ki_batch *batch, const ki_placed_results *results,
                            void *stream, kith_error *err);
/* Wait for the last evaluation and read its values; *ret_result has no gradients. */
kith_status ki_placed_read(ki_placed *placed, ki_result *ret_result, kith_error *err);

/* Seconds of one evaluation: means of runs of n_steps each (0: enough to time them), captured where the device can. */
enum { KI_PLACED_RUNS = 9 };
kith_status ki_placed_time(ki_placed *placed, const ki_batch *batch, int64_t n_steps,
                           double ret_seconds[KI_PLACED_RUNS], double *ret_value, kith_error *err);

#endif
