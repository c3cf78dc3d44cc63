/* Training: from a recipe to a model, in a run folder from which training can resume after any interruption.
 *
 *     KITH_OPTIONS(kith_train_options, options);
 *     options.recipe = "birds.yaml";
 *     options.out = "runs/birds";
 *     kith_train_result result;
 *     if (kith_train_run(&options, &result, &err) != KITH_OK) …
 *     printf("R@1 on unseen classes: %.1f %%\n", 100 * result.test.recall_at_1.mean);
 *
 * docs/training.md describes recipes and the files of a run folder. */
#ifndef KITH_TRAIN_H
#define KITH_TRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/objective.h"
#include "kith/status.h"
#include "kith/text.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum kith_train_event_kind {
    KITH_TRAIN_BEGIN,   /* a run is about to take its first step: step, n_steps, text says what is trained */
    KITH_TRAIN_STEP,    /* after every step: step, n_steps, total, terms … */
    KITH_TRAIN_EVAL,    /* split, recall_at_1, map_at_r; text is the name of a variant, or NULL */
    KITH_TRAIN_SAVED,   /* a checkpoint: text is its path */
    KITH_TRAIN_WARNING, /* text */
    KITH_TRAIN_NOTE,    /* text */
    KITH_TRAIN_BUSY, /* busy between steps (judging): text says with what, split of which images (NULL: others), n_done and n_all
                           how far it is. A chance to ask for a stop */
} kith_train_event_kind;

/* What happened. Strings and terms are valid during the call. */
typedef struct kith_train_event {
    kith_train_event_kind kind;
    const char *run;            /* its folder */
    int64_t run_number, n_runs; /* from 1; of folds and seeds */
    int64_t step, n_steps;      /* steps done, steps in all */
    int64_t epoch;
    /* Of the last step that was logged (recipe: log_every). */
    double total;
    int64_t n_terms;
    const kith_term *terms;
    double lr;
    double images_per_second; /* 0: not known yet */
    double
        seconds_left;  /* of training this run, without judging; 0: not known yet, as in the first seconds */
    const char *split; /* "validation", "seen", "test" */
    double recall_at_1, map_at_r;
    bool is_best; /* KITH_TRAIN_EVAL: the best so far on the split that chooses the model */
    const char *text;
    int64_t n_done, n_all; /* KITH_TRAIN_BUSY: images */
} kith_train_event;

/* Called from the thread that called kith_train_run, over ranks only on the first. A non-zero result asks for a stop: the step is finished
 * and saved, and kith_train_run returns KITH_ECANCELED. */
typedef int (*kith_train_fn)(void *user, const kith_train_event *event);

/* NULL and 0: not given. */
typedef struct kith_train_options {
    size_t size;             /* of the struct: set by kith_train_options_init */
    const char *recipe;      /* a YAML file, or a run folder (its recipe) … */
    const char *recipe_text; /* … or the YAML itself */
    const char *const *sets; /* "optim.lr=1e-4": overrides, in order */
    int64_t n_sets;
    const char *out;           /* the run folder; not needed when `recipe` is one */
    bool resume;               /* resume the run in it; begins one when there is none */
    bool allow_test_selection; /* let the best model be chosen on the test classes (eval.select: test) */
    bool no_report;            /* do not write report.html at the end */
    const char *command;       /* recorded in run.json */
    kith_train_fn notify;      /* may be NULL */
    void *user;
} kith_train_options;

/* All 0 and NULL. */
KITH_API void kith_train_options_init(kith_train_options *options, size_t size);

/* One value with its 95 % interval over queries (bootstrap), or the mean over several runs with its own (Student's t).
 * n is 0 when there is no value; low and high are NaN when there is no interval. */
typedef struct kith_estimate {
    double mean, low, high;
    int64_t n;
} kith_estimate;

typedef struct kith_train_scores {
    kith_estimate recall_at_1, map_at_r, r_precision;
    kith_estimate nmi; /* of `test`, where eval.clustering asked for it */
} kith_train_scores;

typedef struct kith_train_result {
    char run[1024];               /* the folder */
    char selection[16];           /* "validation", "test", "last" */
    int64_t n_runs;               /* folds times seeds */
    int64_t step, n_steps;        /* of the chosen model, and taken; of the last run when there are several */
    kith_train_scores test;       /* unseen classes, the chosen model */
    kith_train_scores untrained;  /* the same before the first step */
    kith_train_scores validation; /* the chosen model on the split that it was chosen on */
    kith_train_scores seen;       /* training classes */
    double seconds, images_per_second; /* of training, without judging and saving */
} kith_train_result;

/* Train. KITH_ECANCELED: stopped on request, and can be resumed. KITH_ENUMERIC: the loss is no longer a number; the
 * line names the batch's images, and the hint names a checkpoint that was read and is intact. A run folder that
 * another process works in, or that contains a run of another recipe, is refused, and so is resuming with other
 * data or weights than the run began with; the line says what changed. `ret_result` may be NULL. */
KITH_API kith_status kith_train_run(const kith_train_options *options, kith_train_result *ret_result,
                                    kith_error *err);

/* The effective recipe, every default written out, as YAML: a new string for kith_string_free. Nothing but the
 * recipe is opened. */
KITH_API kith_status kith_train_recipe(const kith_train_options *options, char **ret_text, kith_error *err);

/* The step of the last checkpoint of a run, or -1: for the line that a program prints after KITH_ECANCELED to
 * say how far the run came. */
KITH_API int64_t kith_train_last_checkpoint(const char *run);

#ifdef __cplusplus
}
#endif
#endif
