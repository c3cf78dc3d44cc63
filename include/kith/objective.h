/* Objectives: the losses, miners and regularizers of deep metric learning, without a network.
 *
 *     kith_objective_sizes sizes = {.embedding = 128};
 *     kith_objective *objective = NULL;
 *     kith_objective_new("loss: {name: raw}\nminer: {name: vthm}", &sizes, 1, &objective, &err);
 *     kith_batch batch = {.n = n, .labels = labels, .tap[KITH_TAP_EMBEDDING] = {x, n, 128}};
 *     kith_objective_result result;
 *     kith_objective_evaluate(objective, &batch, &result, &err);
 *     … result.total, result.gradient[KITH_TAP_EMBEDDING] [n, 128] …
 *
 * A recipe's `objective:` section names a loss, a miner and regularizers (`kith list losses` and so on print
 * them with their options). An evaluation gives the value of every term, the gradient at every tap that a
 * term reads, and the gradient of every parameter that a term owns (proxies, a learned margin, projections).
 * All numbers are float32, row-major. An objective is used by one thread at a time; it uses several threads
 * itself. */
#ifndef KITH_OBJECTIVE_H
#define KITH_OBJECTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/array.h"
#include "kith/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kith_objective kith_objective;

/* Teachers at most. */
#define KITH_MOST_TEACHERS 4

/* What the shapes of parameters depend on; 0 = not there. Methods that own one thing per class (proxies,
 * density targets) need n_classes and labels from 0 to n_classes - 1. */
typedef struct kith_objective_sizes {
    int64_t n_classes;
    int64_t embedding; /* columns of the embedding */
    int64_t pooled;    /* columns of the pooled features */
    int64_t map;       /* channels of the feature map */
    int64_t heads; /* of an ensemble: the embedding is so many vectors of equal size side by side; 0: one */
    int64_t teacher[KITH_MOST_TEACHERS]; /* columns of what each teacher says (KITH_TAP_TEACHER) */
} kith_objective_sizes;

/* `recipe` is YAML: a recipe with a key `objective`, or the section itself. Unknown methods and options
 * are KITH_ENOTFOUND and suggest the nearest name. Parameters are drawn from seed. */
KITH_API kith_status kith_objective_new(const char *recipe, const kith_objective_sizes *sizes, uint64_t seed,
                                        kith_objective **ret_objective, kith_error *err);
/* The same from a file. */
KITH_API kith_status kith_objective_open(const char *path, const kith_objective_sizes *sizes, uint64_t seed,
                                         kith_objective **ret_objective, kith_error *err);
/* The same from a file, with everything learned from `state`, a safetensors file (kith_objective_save writes one).
 * What the recipe leaves open is taken from the state, if the state has it. This includes the number of classes,
 * whatever `sizes` says. */
KITH_API kith_status kith_objective_restore(const char *path, const char *state,
                                            const kith_objective_sizes *sizes, uint64_t seed,
                                            kith_objective **ret_objective, kith_error *err);
KITH_API void kith_objective_free(kith_objective *objective); /* NULL is fine */

/* Where terms read the network and gradients are returned. */
typedef enum kith_tap {
    KITH_TAP_MAP,       /* last feature map [n, c, h, w] */
    KITH_TAP_POOLED,    /* pooled features [n, c] */
    KITH_TAP_EMBEDDING, /* un-normalised output of the embedding layer [n, d] */
    KITH_TAP_WEIGHT,    /* that layer's weight matrix [d, c], for terms that look at it */
    KITH_TAP_TEACHER, /* KITH_TAP_TEACHER + t: what another network, teacher t, says of the items [n, its columns]; no gradient */
    KITH_N_TAPS = KITH_TAP_TEACHER + KITH_MOST_TEACHERS,
} kith_tap;

/* "map", "pooled", "embedding", "weight", "teacher", "teacher_1" … */
KITH_API const char *kith_tap_name(kith_tap tap);
/* Does some term read the tap? Then every batch must have it. */
KITH_API bool kith_objective_reads(const kith_objective *objective, kith_tap tap);

/* False for `loss: {name: none}`. */
KITH_API bool kith_objective_has_loss(const kith_objective *objective);

typedef struct kith_batch_tap {
    const float *data;     /* NULL: not there */
    int64_t rows, cols;    /* map: n and c; weight: d and c */
    int64_t height, width; /* map only */
} kith_batch_tap;

typedef struct kith_batch {
    int64_t n;
    const int64_t *
        labels; /* [n], each 0 … 2^31 - 1; or -1, no class, for items at the end that only terms of teachers count */
    kith_batch_tap tap[KITH_N_TAPS];
    uint64_t step; /* training step, from 0: for warm-ups and random choices */
} kith_batch;

typedef struct kith_term {
    const char *name; /* the method's; a second of the same is name_2 */
    double value;     /* unweighted */
    double weight;    /* at this step */
} kith_term;

/* Everything is borrowed from the objective until its next evaluation. */
typedef struct kith_objective_result {
    double total; /* sum of weight * value */
    int64_t n_terms;
    const kith_term *terms;
    /* d total / d tap, in the tap's shape; NULL where no term reads it. At the embedding this is the
     * whole gradient; `stopped` is the part of it (or NULL) that must not flow below the embedding
     * layer: it trains that layer's weights and ends there. */
    const float *gradient[KITH_N_TAPS];
    const float *stopped;
    int64_t n_positive, n_negative; /* ordered pairs that counted in the loss */
    int64_t n_empty;                /* evaluations so far whose batch had no pair for the loss */
} kith_objective_result;

/* KITH_ESHAPE when rows do not match the labels or columns do not match the sizes, KITH_EINVAL for a missing
 * tap or a class id outside the classes, KITH_ENUMERIC for NaN or infinity: each names the place. A failed
 * evaluation changes nothing. Parameter gradients accumulate until kith_objective_clear_gradients. The first
 * evaluations of a size allocate memory, later ones do not. */
KITH_API kith_status kith_objective_evaluate(kith_objective *objective, const kith_batch *batch,
                                             kith_objective_result *ret_result, kith_error *err);

/* Where it is evaluated from now on: "cpu" (the host, the default) or "cuda". Batches are copied there and results
 * back: a way to compare devices, not to train. An unknown device, or a term that it does not have, is an error of
 * the next evaluation (KITH_ENOTFOUND, KITH_EUNSUPPORTED). Pair weights and descriptors are always computed on the
 * host. */
KITH_API kith_status kith_objective_place(kith_objective *objective, const char *device, kith_error *err);

/* ---- on memory of the device ---- */

/* A batch in the memory of the device that the objective was placed on (kith_objective_place), and where its results go there. */
typedef struct kith_device_batch {
    size_t size; /* of the struct: set by kith_device_batch_init */
    int64_t n;
    const int32_t *labels;           /* [n]; each item has a class here */
    kith_batch_tap tap[KITH_N_TAPS]; /* as in kith_batch; map is not supported here */
    uint64_t step;
    float *gradient[KITH_N_TAPS]; /* d total / d tap in the tap's shape, for every tap that a term reads */
    float *stopped; /* [n, d]: as in kith_objective_result, where some term stops at the embedding */
    double *total;  /* one number; NULL: not wanted */
    void *
        stream; /* the cudaStream_t that the batch comes from and the results are for; NULL: the default one */
    float *total_f32; /* one number: the total again, rounded; NULL: not wanted */
} kith_device_batch;

/* All 0 and NULL. */
KITH_API void kith_device_batch_init(kith_device_batch *batch, size_t size);

/* Queue an evaluation after everything that the stream has queued; what is queued there later starts after it. Nothing goes
 * through the host, and the host does not wait, unless the objective has parameters: their values go to the device, and their
 * gradients come back (kith_objective_param_at). gradient[KITH_TAP_EMBEDDING] is without the part in `stopped` here. Sizes are
 * checked; labels and numbers are checked on the device, and kith_objective_read says what was found. KITH_EINVAL when the
 * objective was not placed on a device. */
KITH_API kith_status kith_objective_queue(kith_objective *objective, const kith_device_batch *batch,
                                          kith_error *err);
/* Wait for the evaluation that was queued last, and read its values; the result has no gradients. KITH_EINVAL for a class id
 * outside the classes, KITH_ENUMERIC for NaN or infinity: what was written to the device's memory is then worthless. */
KITH_API kith_status kith_objective_read(kith_objective *objective, kith_objective_result *ret_result,
                                         kith_error *err);

/* Pair weights of the loss (the unified view): w = -dL/dS for positive pairs, +dL/dS for negative ones,
 * 0 for pairs that do not count, S the similarities. float32 [n, n] over the items that have a class; [n, proxies] for a proxy loss.
 * ret_similarity (may be NULL): S in the same shape. KITH_EINVAL when the loss is none. */
KITH_API kith_status kith_objective_weights(kith_objective *objective, const kith_batch *batch,
                                            kith_array *ret_weight, kith_array *ret_similarity,
                                            kith_error *err);

/* What to search with at test time if a term has its own descriptors (HORDE: all orders): the normalised
 * embedding and then those descriptors, float32 [n, dim], a new array. Meant for a PCA afterwards
 * (kith_pca_fit in kith/knn.h). Labels are checked but do not matter. KITH_EINVAL when no term has any. */
KITH_API kith_status kith_objective_describe(kith_objective *objective, const kith_batch *batch,
                                             kith_array *ret_descriptor, kith_error *err);

/* Draw weight over similarity, one dot per pair, positives and negatives separately, as an SVG file. */
KITH_API kith_status kith_objective_plot(kith_objective *objective, const kith_batch *batch, const char *path,
                                         kith_error *err);

/* What the objective learns. lr_multiplier 0 marks a buffer that is saved but not trained; its gradient
 * is NULL. Pointers stay valid as long as the objective; values may be written between evaluations. */
typedef struct kith_objective_param {
    const char *name; /* "proxies", "density.alpha", "horde.w1" … */
    int n_dims;
    int64_t dim[KITH_MAX_DIMS];
    int64_t n;
    double lr_multiplier;
    float *value;
    float *gradient;
} kith_objective_param;

/* False when there is no i-th parameter. */
KITH_API bool kith_objective_param_at(kith_objective *objective, int64_t i, kith_objective_param *ret_param);
KITH_API void kith_objective_clear_gradients(kith_objective *objective);

/* Take values from, and write them to, a safetensors file by name. Reading: parameters that the file does not
 * have keep their values; a shape that differs, or a tensor that belongs to no parameter, is an error that
 * names it. */
KITH_API kith_status kith_objective_load(kith_objective *objective, const char *path, kith_error *err);
KITH_API kith_status kith_objective_save(const kith_objective *objective, const char *path, kith_error *err);

/* Most bytes of working memory in use at once so far. */
KITH_API size_t kith_objective_work_bytes(const kith_objective *objective);

#ifdef __cplusplus
}
#endif
#endif
