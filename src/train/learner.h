/* A learner: a network, an objective and an optimizer on one backend, one training step at a time.
 *
 *     for each step:
 *         for each micro-batch: ki_learner_add(learner, &batch, …)    forward, objective, backward
 *         ki_learner_update(learner, lr, …)                           optimizer
 *         now and then: ki_learner_read(learner, &values, …)
 *
 * Calls may be queued on a device and return before they are done; ki_learner_read waits for the last update
 * that was queued. Network, objective (objective/engine.h) and optimizer stay in the backend's memory. On the host every call
 * is finished when it returns.
 *
 * Gradients of the micro-batches of a step are averaged: a step of k micro-batches equals one of a batch k
 * times as large if the objective is a mean over items and items do not influence each other (no batch
 * statistics, no pairs across micro-batches).
 *
 * With settings.chunk a micro-batch may be larger than memory has room for: the network computes so many images at a time, twice,
 * and the objective sees all of them at once (learner_chunks.c). The gradients are those of the whole micro-batch up to rounding.
 *
 * A learner is used by one thread at a time. After the first step of a batch size nothing is allocated. */
#ifndef KI_LEARNER_H
#define KI_LEARNER_H

#include "data/loader/loader.h"
#include "net/net.h"
#include "nn/plan.h"
#include "objective/engine.h"
#include "objective/objective.h"
#include "optim/optim.h"
#include "train/teacher.h"

typedef struct ki_learner ki_learner;

/* Everything behind a pointer is borrowed and must outlive the learner. */
typedef struct ki_learner_settings {
    ki_backend *backend;
    const ki_net *net;       /* with an embedding layer */
    ki_params *params;       /* of the net, on the backend; inference plans may share them */
    ki_objective *objective; /* made with the net's sizes; its values are where training starts */
    int64_t batch;           /* the most images of a micro-batch here; memory is planned for so many */
    /* Micro-batches are parts of whole ones over its ranks (part ki_comm_own of each): every rank makes the same calls, and
     * afterwards all have the same parameters. NULL: one process. */
    ki_comm *comm;
    ki_device_comm *device_comm; /* the same ranks, for memory of the backend (ki_device_comm_open) */
    int64_t whole;               /* over ranks: the most images of a whole micro-batch */
    int64_t bucket;              /* over ranks: gradients summed at a time, at least; 0: 4 MiB of them */
    int n_micro;                 /* micro-batches of a step */
    int64_t chunk;               /* images that the network computes at once; 0: all of a micro-batch */
    ki_batch_format format;
    const kith_transform *transform; /* bytes: order, scale, mean and std; borrowed for the call */
    bool frozen_bn;                  /* batch norms use and keep their running statistics */
    uint64_t seed;                   /* of dropout */
    const ki_teacher *teacher;       /* [n_teachers] networks that see each batch, too; borrowed */
    int n_teachers;
    ki_crop_sides sides;  /* of the batches, where they differ; else they are the net's */
    int64_t n_unlabelled; /* so many images at the end of every whole batch have no class: label -1 */
    bool one_by_one;      /* device: queue every kernel of every step, record none */
    const ki_optim_settings *optim; /* borrowed for the call; its `accumulate` is n_micro */
} ki_learner_settings;

/* A batch from the loader, with labels that count the training classes. */
typedef struct ki_learner_batch {
    int64_t n; /* 1 … settings.batch; over ranks on the host also 0, if no batch norm uses batch statistics */
    int64_t n_all;         /* of the whole batch; read over ranks only */
    int64_t first;         /* the place of the first image in the whole batch */
    int64_t side;          /* of the images; read where settings.sides has some */
    const void *data;      /* in settings.format */
    const int32_t *label;  /* [n], 0 … training classes - 1; -1: no class */
    const int32_t *window; /* [n, 3] with KI_BATCH_WHOLE, else NULL */
} ki_learner_batch;

/* Gradient norms are of the objective's gradient alone (without weight decay), before clipping; parameters
 * whose learning rate is 0 do not count. */
typedef enum ki_learner_group {
    KI_GROUP_BACKBONE,
    KI_GROUP_EMBEDDING, /* the layer's weights and bias */
    KI_GROUP_OBJECTIVE, /* proxies, projections and whatever else terms learn */
    KI_N_GROUPS,
} ki_learner_group;

/* "backbone", "embedding", "objective" */
const char *ki_learner_group_name(ki_learner_group group);

/* Of the step that was updated last; means over its micro-batches. */
typedef struct ki_learner_values {
    double total;
    size_t n_terms;
    const ki_term *term;  /* borrowed until the next call with this learner */
    int64_t n_pos, n_neg; /* pairs the loss counted, all micro-batches together */
    double grad_norm[KI_N_GROUPS];
    /* False when a value or gradient was not a finite number in this step or in one since the last read;
     * bad_step is then the first such step. */
    bool is_finite;
    uint64_t bad_step;
} ki_learner_values;

/* KITH_EINVAL: in chunks, a network whose batch norms use the batch's statistics. */
kith_status ki_learner_new(const ki_learner_settings *settings, ki_learner **ret_learner, kith_error *err);
void ki_learner_free(ki_learner *learner); /* NULL is fine */
/* Of a job that is lost: forget what is recorded for the device, without waiting for it. NCCL's end waits for recordings that
 * hold its calls. Nothing but ki_learner_free may follow. NULL is fine. */
void ki_learner_drop_recordings(ki_learner *learner);

/* Forward, objective and backward of the next micro-batch of step `step` (from 0). The batch is borrowed
 * until the call returns. KITH_ENUMERIC, on the host: a value is not finite;
 * nothing has been updated. */
kith_status ki_learner_add(ki_learner *learner, const ki_learner_batch *batch, uint64_t step,
                           kith_error *err);
/* The optimizer's step with learning rate lr, from the gradients added since the last one. KITH_ENUMERIC, on the
 * host: a gradient was not finite, and the parameters are now useless. */
kith_status ki_learner_update(ki_learner *learner, double lr, kith_error *err);
kith_status ki_learner_read(ki_learner *learner, ki_learner_values *ret_values, kith_error *err);

/* With optim.ema, between steps: the network's values and their averages change places, so that the average can be used like any
 * network; and back again, before the next step, bit by bit. Nothing without optim.ema. */
kith_status ki_learner_swap(ki_learner *learner, kith_error *err);

/* Embeddings, as the objective saw them but not normalised, of the last micro-batch added here: [n, dim]. */
kith_status ki_learner_embedding(ki_learner *learner, ki_real *ret_embedding, kith_error *err);

/* Checkpoints. save: the network's parameters as "model/NAME", their averages as "average/NAME", the objective's as "objective/NAME",
 * the optimizer's state as "optim/…"; waits for the device first. The arrays passed to the writer belong to the
 * learner and stay unchanged until the next call with it. load: the reverse; a tensor that is missing or
 * misshapen is an error that names it, and then the learner must not be used further. */
kith_status ki_learner_save(ki_learner *learner, kith_tensors_writer *writer, kith_error *err);
/* Over ranks every rank calls save_begin before the first one saves: the first gets what others hold a part of, and needs memory
 * for the whole of it until save_end. */
kith_status ki_learner_save_begin(ki_learner *learner, kith_error *err);
void ki_learner_save_end(ki_learner *learner);
kith_status ki_learner_load(ki_learner *learner, const kith_tensors *tensors, kith_error *err);

/* Do all ranks have the same bits in the network and in what the objective learns, except what is shared out? KITH_EINTERNAL on all of them names a
 * rank that has not. Every rank calls it; without ranks nothing is looked at. */
kith_status ki_learner_check_ranks(ki_learner *learner, kith_error *err);

/* The plan of a full batch or, in chunks, of a full chunk; for its figures. */
const ki_plan *ki_learner_plan(const ki_learner *learner);

/* Copy the objective's values to the host, from where the learner works on them, and back after a change. */
kith_status ki_learner_pull(ki_learner *learner, kith_error *err);
kith_status ki_learner_push(ki_learner *learner, kith_error *err);

/* The engine whose parameters the learner works on, for others beside it (objective/engine.h). */
ki_engine *ki_learner_engine(const ki_learner *learner);

/* Does the objective have parameters that are shared out over ranks? */
bool ki_learner_has_parts(const ki_learner *learner);
/* How many numbers the network's parameters are. */
int64_t ki_learner_model_n(const ki_params *params);

/* Converts norms by the optimizer's groups to norms by the learner's groups. */
void ki_learner_norms(const double norm[KI_OPTIM_N_GROUPS], double ret_norm[KI_N_GROUPS]);

#endif
