/* Benchmarks of the engine: how fast a network trains and embeds on this machine. */
#ifndef KITH_BENCH_H
#define KITH_BENCH_H

#include "kith/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One step of training: forward, the gradient of a linear function of the embedding (or of the tap
 * named), backward, Adam. One step of embedding: forward in inference mode. Input is random. */
typedef struct kith_bench_options {
    kith_model_options model; /* backbone, size, device …; training without a head gets embedding 512 */
    bool train;
    const char *tap;    /* where the gradient starts or the values are read; NULL: embedding, else pooled */
    int64_t batch;      /* images per step; 0: 32 */
    int64_t n_steps;    /* timed; 0: as many as fit in 10 s, 5 to 200 */
    int64_t n_warm_ups; /* before that; 0: 2 */
    int n_threads;      /* 0: all cores allowed to the process */
    bool frozen_bn;     /* training: batch norms keep their running statistics */
} kith_bench_options;

typedef struct kith_bench_result {
    const char *backbone, *device; /* constants of the library */
    int64_t height, width;
    int64_t batch, n_steps;
    int n_threads;
    double images_per_second;           /* batch / median step */
    double step_seconds;                /* median */
    double fastest_seconds;             /* least */
    double plan_seconds;                /* building and planning, once */
    double gflop_per_image, gflops;     /* multiply-adds count two; training counts three forwards */
    double allocations_per_step;        /* of the library, while timed */
    double reorders_per_step;           /* layout changes, with the ones at input and taps */
    uint64_t peak_rss_bytes;            /* of the process so far (VmHWM) */
    uint64_t activation_bytes;          /* the plan's one block */
    uint64_t unshared_activation_bytes; /* what it would be without reuse */
    double checksum;                    /* sum of the tap after the last step: it did run */
} kith_bench_result;

KITH_API kith_status kith_bench_run(const kith_bench_options *options, kith_bench_result *ret_result,
                                    kith_error *err);

#ifdef __cplusplus
}
#endif
#endif
