/* Checkpoints: everything a run needs to resume with the same bits, in one safetensors file.
 *
 * Tensors "model/…", "objective/…", "optim/…" belong to the learner. "run/…" and the metadata contain the run's
 * standing (numbers with names, so that fields can be added: old files lack them, old programs pass over them), the network (net/model_file.h) and the checksum of everything. Random numbers are functions of (seed,
 * step), so the step is their position. */
#ifndef KI_CHECKPOINT_H
#define KI_CHECKPOINT_H

#include "judge/judge.h"
#include "train/learner.h"

/* The standing of a run: how far it has come. */
typedef struct ki_standing {
    int64_t step; /* updates done */
    ki_sampler_state sampler;
    int64_t last_eval; /* step of the last complete evaluation; -1: none */
    int64_t best_step; /* -1: none */
    double best_score;
    char best_hash[65];     /* SHA-256 of the best model's file; "": there is none */
    int64_t n_without_gain; /* evaluations since the best */
    bool is_stopped;        /* patience ran out: no more steps */
    int64_t n_threads;      /* that computed it */
    int64_t n_images;       /* trained on so far */
    double seconds;         /* of training so far */
    double wall_seconds;    /* … and of everything: judging, saving, starting */
    int64_t log_bytes;      /* of log.jsonl that belong to this state */
    /* Signs of a collapse (collapse.c). */
    bool has_warned_alike, has_warned_margin, has_warned_drowned;
    int64_t n_alike, n_margin, n_drowned; /* times in a row */
    /* What the result card needs to know about earlier steps. */
    ki_scores untrained, untrained_validation; /* test and validation classes at step 0 */
    ki_scores best_validation, best_seen;      /* at best_step */
    ki_scores last_validation, last_seen;
    ki_scores best_test; /* the best R@1 on the test classes, if they are watched; never used to choose */
} ki_standing;

/* `recipe_hash` tells runs apart: 64 hex digits. `net` is the learner's. Its metadata are saved, too, so that the
 * weights file the run began with is not needed again. After a failure the file is as it was before. */
kith_status ki_checkpoint_save(const char *path, ki_learner *learner, const ki_net *net,
                               const ki_standing *standing, const char *recipe_hash, kith_error *err);

/* A checkpoint that was read and is intact; {0} is none. */
typedef struct ki_checkpoint {
    kith_tensors *tensors;
    ki_standing at;
} ki_checkpoint;

/* Every byte is checked (io/tensors.h, seals). KITH_EFORMAT, with the path and in one line, for a file that is cut
 * short, was changed, is not a checkpoint, or belongs to another recipe; KITH_EUNSUPPORTED for one of another
 * format. */
kith_status ki_checkpoint_open(const char *path, const char *recipe_hash, ki_checkpoint *ret_checkpoint,
                               kith_error *err);
void ki_checkpoint_release(ki_checkpoint *checkpoint); /* fine on a zeroed struct */
/* After a failure the learner must not be used further. */
kith_status ki_checkpoint_restore(const ki_checkpoint *checkpoint, ki_learner *learner, kith_error *err);

/* What the names of the model's tensors begin with. */
#define KI_CHECKPOINT_MODEL "model/"

#endif
