/* What the engine's benchmarks share: bench.c times a bare plan, bench_step.c the steps of training and
 * embedding as a run takes them. */
#ifndef KI_BENCH_PARTS_H
#define KI_BENCH_PARTS_H

#include "device/backend.h"
#include "kith/experimental/bench.h"
#include "nn/plan.h"

enum { KI_BENCH_MOST_STEPS = 4096, KI_BENCH_BATCH = 32, KI_BENCH_EMBEDDING = 512 };

double ki_bench_median(double *values, int64_t n); /* sorts them */
uint64_t ki_bench_peak_rss(void);                  /* 0 where the system does not say */
/* How many steps to time, given the seconds that one took. */
int64_t ki_bench_n_steps(const kith_bench_options *options, double seconds);
/* Figures of a plan and of sorted step times. */
void ki_bench_fill(const kith_bench_options *options, const ki_plan *plan, int64_t batch, double *seconds,
                   int64_t n, kith_bench_result *result);

/* bench_step.c: whether it handles these options, and its result. result has batch and n_threads filled in. */
bool ki_bench_is_step(const kith_bench_options *options);
kith_status ki_bench_step_run(const kith_bench_options *options, kith_bench_result *result, kith_error *err);

/* bench_profile.c: time by kind of kernel. begin and end surround what is measured; rows are sums until
 * finish divides by n_steps and sorts them. */
typedef struct ki_bench_profile ki_bench_profile;
kith_status ki_bench_profile_new(ki_backend *backend, ki_bench_profile **ret_profile, kith_error *err);
void ki_bench_profile_free(ki_bench_profile *profile); /* NULL is fine; the backend has no probe afterwards */
kith_status ki_bench_profile_begin(ki_bench_profile *profile, kith_error *err);
kith_status ki_bench_profile_end(ki_bench_profile *profile, kith_error *err);
void ki_bench_profile_finish(const ki_bench_profile *profile, int64_t n_steps, kith_bench_result *result);
/* Bytes read and written per second by copies inside the backend's memory. */
kith_status ki_bench_copy_rate(ki_backend *backend, double *ret_rate, kith_error *err);

#endif
