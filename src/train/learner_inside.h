/* The inside of a learner; only for the files of this folder. */
#ifndef KI_LEARNER_INSIDE_H
#define KI_LEARNER_INSIDE_H

#include "device/recording.h"
#include "embed/feed.h"
#include "optim/average.h"
#include "train/learner.h"
#include "train/sided.h"
#include "train/sized.h"

enum { KI_LEARNER_MOST_TERMS = 64 };

/* The numbers of a batch in its feed: micro-batches so far and the place of the first image, which name dropout's random numbers,
 * and the step. */
enum { KI_LEARNER_FORWARD, KI_LEARNER_FIRST, KI_LEARNER_STEP };

/* What is recorded of a chunk: TEACH is what the teachers say, and LAST is the backward that completes a step. */
enum { KI_PASS_FORWARD, KI_PASS_TEACH, KI_PASS_BACKWARD, KI_PASS_LAST, KI_PASS_N };

/* Images that the network computes at once: a whole batch or, with settings.chunk, a part of one. */
typedef struct ki_pass {
    int64_t n;     /* images */
    ki_plan *plan; /* NULL: over ranks, this one has no image of such a batch */
    ki_edge input_edge, pooled_edge;
    void *input, *pooled;
    ki_plan *taught[KI_MOST_TEACHERS]; /* the teachers' plans, and where these have their inputs */
    ki_feed_place view[KI_MOST_TEACHERS];
    ki_engine_batch at; /* taps and gradients at taps of these images */
    ki_recording recording[KI_PASS_N];
} ki_pass;

/* What batches of one size need. */
typedef struct ki_course {
    /* The batch. In chunks: a full one, and the last one if that is smaller (n 0: it is not). */
    ki_pass pass[2];
    ki_engine *engine;
    /* Forward, objective, backward; in chunks: the objective alone. The second: of the last micro-batch of a step. */
    ki_recording recording[2];
} ki_course;

/* In chunks: what the objective reads and writes of a whole batch, in the backend's memory. */
typedef struct ki_learner_rows {
    int32_t *label;
    void *value[KI_N_TAPS], *diff[KI_N_TAPS];
    size_t bytes[KI_N_TAPS]; /* of each */
    ki_real *stopped;
} ki_learner_rows;

/* Means are made of them when they are read. */
typedef struct ki_learner_sums {
    double total, value[KI_LEARNER_MOST_TERMS];
    int64_t n_pos, n_neg;
    int n_micro;
    bool is_finite;
    uint64_t step;
} ki_learner_sums;

/* Host copies that a writer reads until it has saved. */
typedef struct ki_learner_copies {
    ki_real *model, *average, *optim;
    int64_t optim_steps;
    /* Between save_begin and save_end, on the first rank: the whole of what is shared out, in the order in which it is saved. */
    ki_real *parts;
} ki_learner_copies;

struct ki_learner {
    ki_learner_settings settings;
    const ki_queue_type *queues;
    const ki_engine_type *engine_type;
    int n_added; /* micro-batches since the last update */

    ki_sided *sided; /* the networks by the side of their images */
    ki_sized sized;
    ki_course course
        [KI_MOST_SIZED];  /* by place of `sized`; the first is for full batches, and has what engines learn */
    ki_course *now, *due; /* of the last micro-batch; the one whose engine has unread values, or NULL */
    ki_pass *pass;        /* of `now`: what the network computes */
    ki_learner_rows rows;
    int64_t n_last;       /* images of the last micro-batch here */
    ki_device_comm *comm; /* NULL: one process */
    int64_t unsummed;     /* gradients before this number are not summed yet */
    bool is_last;         /* of its step: the micro-batch or chunk */
    bool is_queued;       /* batches are not recorded */
    bool has_parts;       /* some parameters are shared out over ranks */
    ki_recording update;

    ki_optim *optim;
    ki_average *average; /* of the network; NULL: none */
    int *averaged;       /* of each of its parts, the number in settings.params */
    int n_averaged;
    bool is_swapped;               /* the network has the averages, and `average` what it learnt */
    const ki_param *weight, *bias; /* of the embedding layer; bias may be NULL */
    ki_feed *feed;
    ki_real *stopped; /* backend memory [of a pass, dim]; NULL: no term stops at the embedding */
    /* The host: the objective's own gradient of the layer's weights, zero between micro-batches. NULL: it is added where it belongs
     * at once. */
    ki_real *by_weight;
    ki_mark *summed; /* `sums` is that of the last update */
    double *sums;    /* pinned: squares of gradients by run of the optimizer */
    ki_learner_copies copies;

    ki_learner_sums sum, last; /* of the step that is being added, and of the one updated last */
    bool is_bad;               /* since the last read */
    uint64_t bad_step;
    size_t n_terms;
    ki_term term[KI_LEARNER_MOST_TERMS];
};

/* learner_make.c: from now on use what whole batches of m images of a side (0: the net's) need. If it does not exist, it is made in the place that was used
 * longest ago. */
kith_status ki_learner_course(ki_learner *learner, int64_t m, int64_t side, bool *ret_is_new,
                              kith_error *err);

/* learner.c: add the values of the previous micro-batch, which the device has finished or is about to finish. */
kith_status ki_learner_collect(ki_learner *learner, kith_error *err);

/* learner.c: run it, or launch what was recorded of it; and the backward of l->pass, from the gradients at its taps. */
kith_status ki_learner_run(ki_learner *learner, ki_recording *recording, ki_recording_fn queue,
                           kith_error *err);
kith_status ki_learner_queue_backward(ki_learner *learner, kith_error *err);

/* learner_chunks.c: the images of a pass at most; where the engine of whole batches of n images (here) has its rows; a batch from
 * its forward to its backward; its embeddings. */
int64_t ki_learner_pass_most(const ki_learner_settings *settings);
kith_status ki_chunks_place(ki_learner *learner, const ki_course *course, int64_t n, ki_engine_batch *batch,
                            kith_error *err);
kith_status ki_chunks_add(ki_learner *learner, const ki_feed_batch *batch, bool is_last, kith_error *err);
kith_status ki_chunks_embedding(ki_learner *learner, ki_real *ret_embedding, kith_error *err);
void ki_chunks_release(ki_learner *learner);

/* learner_state.c */
void ki_learner_copies_release(ki_learner_copies *copies);

#endif
