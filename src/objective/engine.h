/* An engine: an objective evaluated where the network runs. The host is one as a device is: both run the objective's schedule
 * (schedule.h) with their own kernels.
 *
 * An engine belongs to one backend, one objective and one batch size. `open` allocates all its memory;
 * `evaluate` queues work on the backend's stream, allocates nothing, waits for nothing and copies nothing to
 * the host, so that it may be part of a captured step. Whatever changes from step to step (the step number,
 * warm-up weights, filled memory columns, random choices) is computed on the device from device memory.
 *
 *     const ki_engine_type *type = ki_engine_of(backend);
 *     type->open(backend, objective, &batch, m, &engine, err);
 *     … fill labels, step and taps on the stream …
 *     type->clear_diffs(engine, err);          // before the first micro-batch
 *     type->evaluate(engine, err);             // tap gradients assigned, parameter gradients added
 *     … optimizer over param_at …
 *     type->fetch(engine, err);                // optional: starts the copy that read waits for
 *     type->read(engine, &values, err);        // when somebody wants to know
 *
 * The host is the definition: devices have the same terms, the same gradients up to rounding, the same random choices. On a
 * device open and push copy the objective's parameters there, and pull copies them back; between the two, the device's copies are
 * the valid ones. The host's engine works on the objective's own values, and push and pull do nothing. Its evaluate is finished
 * when it returns, allocates nothing after the first of a size, and fails at once: KITH_EINVAL for labels, KITH_ENUMERIC for
 * numbers. */
#ifndef KI_OBJECTIVE_ENGINE_H
#define KI_OBJECTIVE_ENGINE_H

#include "comm/device.h"
#include "device/backend.h"
#include "objective/objective.h"

typedef struct ki_engine ki_engine;

/* Backend memory, fixed for the life of the engine; read and written when the queued work runs. */
typedef struct ki_engine_batch {
    const int32_t *label; /* [m] */
    int64_t
        n_unlabelled; /* so many rows at the end of the whole batch have no class: in every batch of this engine */
    const uint64_t *step; /* one number */
    /* Those that ki_objective_taps names. MAP: an edge in the backend's storage; the others plain ki_real:
     * EMBEDDING [m, dim] un-normalised, POOLED [m, c], WEIGHT [dim, c] (the master weights), a teacher's rows [m, its width]. */
    const void *tap[KI_N_TAPS];
    ki_edge tap_edge[KI_N_TAPS];
    /* Where d total / d tap goes, for the same taps. MAP: assigned, an edge like the tap's; EMBEDDING and
     * POOLED: assigned; WEIGHT: ADDED, it is the gradient of the layer's weights. A teacher has none: NULL. On the host NULL means
     * that nobody wants it. */
    void *diff[KI_N_TAPS];
    /* [m, dim] assigned: the part of the embedding's gradient that trains the embedding layer and goes no
     * further. Wanted when ki_engine_stops; else NULL. */
    ki_real *diff_stopped;
    /* Over ranks: labels, taps and gradients at taps are those of this rank's rows (part ki_comm_own of m), and the engine's m is
     * that of the whole batch, which every rank evaluates. The weight's tap is whole, and its gradient is added on the first
     * rank only, because gradients of the network are summed. NULL: the batch is whole. */
    ki_device_comm *comm;
} ki_engine_batch;

/* Whether some term of the objective stops at the embedding layer. */
bool ki_engine_stops(const ki_objective *objective);

/* The error of KITH_EUNSUPPORTED names the first method of the objective whose row is marked HOST: no device
 * has it. */
kith_status ki_engine_check(const ki_objective *objective, kith_error *err);

typedef struct ki_engine_values {
    uint64_t step; /* of the evaluation they belong to */
    double total;
    size_t n_terms;
    const ki_term *term; /* borrowed from the engine until its next read */
    int64_t n_pos, n_neg;
    int64_t n_empty; /* evaluations so far whose batch had no pair */
    bool is_finite;  /* false: an embedding or a value was NaN or infinite, and the gradients are useless */
} ki_engine_values;

/* A learned parameter (diff != NULL), or a buffer that is saved with them (diff NULL, lr_multiplier 0). */
typedef struct ki_engine_param {
    const char *name; /* as ki_objective_param has it */
    int64_t n;
    ki_real *value, *diff; /* backend memory */
    double lr_multiplier;
    bool is_part; /* this rank holds some of its rows; other ranks hold the others */
} ki_engine_param;

typedef struct ki_engine_type {
    /* KITH_EUNSUPPORTED: as ki_engine_check; KITH_EINVAL and KITH_ESHAPE for taps
     * that are missing or do not fit; KITH_ENOMEM with the size. The objective must outlive the engine. */
    kith_status (*open)(ki_backend *backend, ki_objective *objective, const ki_engine_batch *batch, int64_t m,
                        ki_engine **ret_engine, kith_error *err);
    /* Another engine for the objective of `first`, for batches of another size. The two share what they learn
     * and keep, in the memory of `first`, which must outlive the other. */
    kith_status (*open_beside)(ki_engine *first, const ki_engine_batch *batch, int64_t m,
                               ki_engine **ret_engine, kith_error *err);
    void (*close)(ki_engine *engine); /* NULL is fine */

    kith_status (*clear_diffs)(ki_engine *engine, kith_error *err); /* of the parameters; queued */
    kith_status (*evaluate)(ki_engine *engine, kith_error *err);
    /* Over ranks, once before the optimizer, and followed by ki_device_comm_settle: sums the gradients of parameters of which
     * each rank has only what its own rows say. Every other gradient is the same on all ranks. */
    kith_status (*sum_diffs)(ki_engine *engine, kith_error *err);

    /* Queue the copy of the last evaluation's values to the host. Not to be captured. */
    kith_status (*fetch)(ki_engine *engine, kith_error *err);
    /* Wait for the copy that the last fetch queued, or fetch now if there was none since the last read.
     * KITH_EINVAL when a label was outside the classes (it counted as class 0). */
    kith_status (*read)(ki_engine *engine, ki_engine_values *ret_values, kith_error *err);

    /* With others on the device, without the host waiting. `stream` is the device's own (a cudaStream_t; NULL: its default).
     * follow: what the engine queues from now on starts after everything that the stream has. lead: the other way round. */
    kith_status (*follow)(ki_engine *engine, void *stream, kith_error *err);
    kith_status (*lead)(ki_engine *engine, void *stream, kith_error *err);
    /* The total of the last evaluation that was queued, in backend memory. */
    const double *(*total)(const ki_engine *engine);
    const float *(*total_f32)(const ki_engine *engine); /* the same, rounded */

    /* Queue ki_objective_describe of the values that the taps will have then: rows [m, ki_objective_describe_dim]
     * in backend memory. Neither labels nor gradients are touched. May be captured. */
    kith_status (*describe)(ki_engine *engine, ki_real *rows, kith_error *err);

    /* In the order of ki_objective_param; false past the end. */
    bool (*param_at)(ki_engine *engine, size_t i, ki_engine_param *ret_param);
    kith_status (*pull)(ki_engine *engine, kith_error *err); /* device to host; waits */
    kith_status (*push)(ki_engine *engine, kith_error *err); /* host to device; waits */
} ki_engine_type;

/* The backend's own; the host's where it has none and its memory is the host's. NULL: neither. */
const ki_engine_type *ki_engine_of(const ki_backend *backend);

extern const ki_engine_type ki_engine_host;

#endif
