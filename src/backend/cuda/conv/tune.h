/* How a way is chosen for one pass: what tune.c, tune_offers.c and tune_time.c share. Candidates are collected, built
 * and timed; the fastest that is exact enough is chosen. */
#ifndef KI_CUDA_CONV_TUNE_H
#define KI_CUDA_CONV_TUNE_H

#include "backend/cuda/conv/way_parts.h"

enum {
    KI_TUNE_MOST = 192,   /* candidates */
    KI_TUNE_IMAGES = 256, /* for larger batches, choose what is best for so many images */
};

typedef struct ki_tune_candidate {
    ki_cudnn_form form;
    bool packs_dst;
    ki_cudnn_setting setting;
    int64_t n_tiles;  /* tile sizes of its engine besides the one it uses by default */
    ki_conv_way *way; /* NULL: not built */
} ki_tune_candidate;

typedef struct ki_conv_contest {
    ki_backend *backend;
    ki_cuda_libraries *libraries;
    const ki_conv_problem *problem;
    ki_tune_candidate candidate[KI_TUNE_MOST];
    int n, n_built; /* those before n_built have been tried */
    ki_conv_tuning stats;
    kith_error why; /* the last refusal, for the log */
} ki_conv_contest;

/* tune_offers.c. Only the first that can be built, without timing: every run must choose the same, and there is
 * no file to remember a way in. */
bool ki_tune_takes_first(const ki_conv_contest *tune);
/* Ask the libraries, and build what they offer. */
void ki_tune_collect(ki_conv_contest *tune);
/* Try all tile sizes of the engines that were nearly as fast as the fastest. */
void ki_tune_collect_tiles(ki_conv_contest *tune, double fastest_seconds);
const ki_tune_candidate *ki_tune_first(const ki_conv_contest *tune); /* that is built; NULL: none */
/* Bytes a way may use: engines that change the layout need memory for the maps in the other layout. */
size_t ki_tune_workspace(const ki_conv_problem *problem);

/* tune_time.c. Run and time the candidates that are built and not timed yet; those that cannot run are freed. */
kith_status ki_tune_time(ki_conv_contest *tune, ki_conv_io *ret_io, kith_error *err);
/* The fastest that rounds well; if none does, the one that rounds best. *ret_best stays NULL when nothing can
 * be run. */
kith_status ki_tune_pick(ki_conv_contest *tune, ki_conv_way **ret_best, kith_error *err);

#endif
