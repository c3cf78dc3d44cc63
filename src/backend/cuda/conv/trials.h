/* Inside candidates.c, trials.c and choose.c: what is tried to choose a way for one pass. */
#ifndef KI_CUDA_TRIALS_H
#define KI_CUDA_TRIALS_H

#include "backend/cuda/conv/ways.h"

enum {
    KI_TRIAL_MOST = 192,   /* candidates */
    KI_TRIAL_IMAGES = 256, /* larger batches take what is best for so many: it takes as long */
};

typedef struct ki_candidate {
    ki_cudnn_form form;
    bool packs_dst;
    ki_cudnn_choice choice;
    int64_t n_tiles;              /* tile sizes its engine has beside the one it takes by itself */
    ki_conv_algorithm *algorithm; /* NULL: not built */
} ki_candidate;

typedef struct ki_trial {
    ki_backend *backend;
    ki_cuda_libraries *libraries;
    const ki_conv_problem *problem;
    ki_candidate candidate[KI_TRIAL_MOST];
    int n, n_built; /* those before n_built have been tried */
    ki_conv_trials stats;
    kith_error why; /* the last refusal, for the log */
} ki_trial;

/* candidates.c. Only the first that can be built, untimed: every run must choose the same, and there is no file to
 * remember a choice in. */
bool ki_trial_takes_first(const ki_trial *trial);
/* Ask the libraries, and build what they offer. */
void ki_trial_collect(ki_trial *trial);
/* All tile sizes of the engines that came near the fastest. */
void ki_trial_collect_tiles(ki_trial *trial, double fastest_seconds);
const ki_candidate *ki_trial_first(const ki_trial *trial); /* that is built; NULL: none */
/* Bytes a way may use: engines that change layouts need room for the maps in the other one. */
size_t ki_trial_workspace(const ki_conv_problem *problem);

/* trials.c. Run and time what is built and has not been; those that cannot run are freed. */
kith_status ki_trial_time(ki_trial *trial, ki_conv_io *ret_io, kith_error *err);
/* The fastest that rounds well, else the one that does best; *ret_best stays NULL when nothing can be run. */
kith_status ki_trial_pick(ki_trial *trial, ki_conv_algorithm **ret_best, kith_error *err);

#endif
