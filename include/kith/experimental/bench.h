/* Benchmarks of the engine: how fast a network trains and embeds on this machine. */
#ifndef KITH_BENCH_H
#define KITH_BENCH_H

#include "kith/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One step of training: forward, the gradient of a linear function of the embedding (or of the tap named),
 * backward, Adam. With an objective or a recipe it is the step of `kith train`: images in the form that the
 * loader delivers, forward, objective, backward, the optimizer; on a device it is recorded and launched as a
 * whole. One step of embedding: forward in inference mode. Input is random. */
typedef struct kith_bench_options {
    size_t size; /* of the struct: set by kith_bench_options_init */
    const kith_model_options
        *model; /* NULL: the defaults; backbone, size, device …; training without a head gets embedding 512 */
    bool train;
    const char *tap;    /* where the gradient starts or the values are read; NULL: embedding, else pooled */
    int64_t batch;      /* images per step; 0: 32 */
    int64_t n_steps;    /* timed; 0: as many as fit in 10 s, 5 to 200 */
    int64_t n_warm_ups; /* before that; 0: 2 */
    int64_t n_threads;  /* 0: all cores allowed to the process */
    bool frozen_bn;     /* training: batch norms keep their running statistics */
    /* The real training step: an objective section as YAML ("{loss: raw, miner: vthm}"), or a recipe, whose
     * sections model, input, batch, objective, optim and device count where the options above are not set. */
    const char *objective, *recipe;
    int64_t images_per_class; /* of a batch; 0: the recipe's, else 4 */
    bool profile;             /* also say what the time is spent on */
    bool plain_plan;          /* every concat copies, every convolution runs alone: to compare with */
} kith_bench_options;

/* All 0 and NULL. */
KITH_API void kith_bench_options_init(kith_bench_options *options, size_t size);

/* What a step spends its time on: kernels of one kind. */
typedef struct kith_bench_row {
    char name[48];
    double calls;   /* per step */
    double seconds; /* per step */
    double bytes;   /* that must be read and written, per step; 0: not counted */
} kith_bench_row;
#define KITH_BENCH_ROWS 48

typedef struct kith_bench_result {
    const char *backbone, *device; /* constants of the library */
    int64_t height, width;
    int64_t batch, n_steps;
    int64_t n_threads;
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
    /* With an objective: of the last step. */
    double loss;
    /* On a device. */
    const char *precision;    /* "float32", "tf32" or "bf16" */
    uint64_t device_bytes;    /* taken since the device was opened */
    double copy_bytes_second; /* profile: read and written by a large copy inside the device's memory */
    int64_t n_rows;           /* profile: largest first */
    kith_bench_row row[KITH_BENCH_ROWS];
} kith_bench_result;

/* Build, warm up and time. KITH_EINVAL for negative numbers; otherwise the errors of opening a model and of training. */
KITH_API kith_status kith_bench_run(const kith_bench_options *options, kith_bench_result *ret_result,
                                    kith_error *err);

/* ---- one objective, without a network ---- */

/* Time value + gradient on a made-up batch, in turn with the two matrix products S = X X^T and G X. */
typedef struct kith_bench_objective_options {
    size_t size; /* of the struct: set by kith_bench_objective_options_init */
    const char *recipe;
    int64_t batch, dim;
    int64_t images;  /* per class */
    int64_t n_steps; /* 0: by the time one takes */
    bool no_products;
    const char
        *device; /* NULL or "cpu": the host; else its evaluations in a row, captured; no products then */
} kith_bench_objective_options;

/* All 0 and NULL. */
KITH_API void kith_bench_objective_options_init(kith_bench_objective_options *options, size_t size);

typedef struct kith_bench_objective_result {
    int64_t batch, dim, n_steps;
    int64_t n_threads;
    double seconds;         /* median of one evaluation */
    double product_seconds; /* median of the products alone */
    double allocations_per_step;
    size_t work_bytes;
    double value; /* the last total: it did run */
} kith_bench_objective_result;

/* What is timed by default: "LOSS" or "LOSS+MINER"; NULL past the end. */
KITH_API const char *kith_bench_objective_name(int64_t i);

/* Time it. KITH_EINVAL for a batch, dimension or number of images below 1. */
KITH_API kith_status kith_bench_objective_run(const kith_bench_objective_options *options,
                                              kith_bench_objective_result *ret_result, kith_error *err);

#ifdef __cplusplus
}
#endif
#endif
