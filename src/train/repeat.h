/* Folds and seeds: the runs that a recipe asks for, one after the other, and their combined result. */
#ifndef KI_REPEAT_H
#define KI_REPEAT_H

#include "train/run.h"

/* Called with the folder of each run that has a result, and last with the folder of all runs; for the report. */
typedef kith_status (*ki_finished_fn)(void *user, const char *folder, kith_error *err);

typedef struct ki_repeat_options {
    const ki_recipe *recipe;
    const char *folder;
    bool resume;
    const char *command;  /* may be NULL */
    ki_comm *comm;        /* the ranks that train together; NULL: one process */
    kith_train_fn notify; /* may be NULL */
    void *user;
    ki_finished_fn finished; /* may be NULL; a failure counts only if it is returned */
    void *finished_user;
} ki_repeat_options;

/* With folds and seeds 1: one run in `folder`. Otherwise runs in fold-K/, seed-J/ or fold-K/seed-J/, where K counts folds
 * from 1 and J is the seed, and result.json in `folder`: their cards together (judge/card.h). */
kith_status ki_repeat(const ki_repeat_options *options, kith_train_result *ret_result, kith_error *err);

#endif
