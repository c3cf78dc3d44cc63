/* One run of a reproduction: its recipe with all overrides, and where its files lie. */
#ifndef KI_REPRODUCE_ONE_RUN_H
#define KI_REPRODUCE_ONE_RUN_H

#include "reproduce/list.h"
#include "reproduce/outcome.h"
#include "train/run.h"

/* Which run it is. */
typedef struct ki_job {
    const ki_list_row *row;
    int64_t seed;
    size_t pass; /* of the list's order */
} ki_job;

/* What all runs share; borrowed. */
typedef struct ki_jobs {
    const kith_reproduce_options *options;
    const kith_reproduce_paths *at;
    const ki_list *list;
    const ki_job *job;
    size_t n_jobs;
} ki_jobs;

enum { KI_MOST_SETS = 128 };

typedef struct ki_run {
    const ki_job *job;
    ki_recipe *recipe;
    const char *set[KI_MOST_SETS];
    size_t n_sets;
    const char *recorded[KI_MOST_SETS]; /* those that say more than where files lie */
    ki_origin origin;
    char seed_text[40];
    ki_path folder, result, failure, claim;
    int claimed; /* the claim's file, locked; -1: none */
} ki_run;

/* Read the recipe and check it. ki_recipe_free(recipe) and whatever is claimed are the caller's, also after a failure. */
kith_status ki_run_open(const ki_jobs *jobs, const ki_job *job, ki_run *ret_run, kith_error *err);

/* halving.c: does the job's combination go on to its round, by the results there are? */
typedef struct ki_halving_verdict {
    bool goes_on;   /* jobs of no grid always do */
    bool failed;    /* it does not because a run of it failed */
    ki_job missing; /* a result that would have to be known; its row is NULL when there is none */
} ki_halving_verdict;

kith_status ki_halving_goes_on(const ki_jobs *jobs, const ki_job *job, ki_halving_verdict *ret,
                               kith_error *err);

#endif
