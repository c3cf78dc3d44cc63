/* Training without a recipe: from a folder of photos to the best model that a number of minutes finds.
 *
 *     KITH_OPTIONS(kith_tune_options, options);
 *     options.photos = "photos";
 *     options.out = "runs/photos";
 *     kith_tune_result result;
 *     if (kith_tune_run(&options, &result, &err) != KITH_OK) …
 *     printf("%s: %s\n", result.winner, result.why);
 *
 * It looks at the photos (kith/doctor.h) and leaves out what the doctor leaves out, holds classes out for the test, computes the pretrained network once for several views of each photo, tries
 * ways to train on what the network says and, if time is left, to train the network itself, and keeps what is better than the
 * pretrained model on held-out classes by more than chance. Nothing is chosen on test classes. docs/training.md says how. */
#ifndef KITH_TUNE_H
#define KITH_TUNE_H

#include "kith/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NULL and 0: not given. */
typedef struct kith_tune_options {
    size_t size; /* of the struct: set by kith_tune_options_init */
    const char *
        photos; /* a folder of one folder per class, also train/ and test/ of them, or whatever kith_dataset_open takes */
    const char
        *out;       /* the run folder. What an earlier call did there for the same photos is not done again */
    double minutes; /* about how long it may take; 0: 5 */
    const char *model;    /* what to start from: a file, a run, hub:NAME; NULL: general */
    const char *device;   /* NULL: cpu */
    int64_t seed;         /* of all random choices */
    bool no_report;       /* do not write report.html at the end */
    const char *command;  /* recorded in run.json */
    kith_train_fn notify; /* may be NULL; the same events as of a training: notes, and how far it is */
    void *user;
} kith_tune_options;

/* All 0 and NULL. */
KITH_API void kith_tune_options_init(kith_tune_options *options, size_t size);

typedef struct kith_tune_result {
    kith_train_result run;        /* the run that made the model: recipe.yaml of its folder makes it again */
    kith_train_scores pretrained; /* the test classes by the model it started from */
    bool is_pretrained;           /* nothing was better by more than chance: the model is as it was */
    int64_t n_tried;
    double seconds;   /* of all calls together */
    char winner[160]; /* "binomial on the model's own layer, 75 steps" */
    char why[400];    /* in words: by how much it won on held-out classes, and how sure that is */
    char advice[400]; /* in words: what more photos, classes or minutes would likely bring */
} kith_tune_result;

/* Find and train. KITH_ECANCELED: stopped on request; the same call goes on. KITH_EINVAL: photos of fewer than three classes, or a run
 * folder with something else in it. ret_result may be NULL. */
KITH_API kith_status kith_tune_run(const kith_tune_options *options, kith_tune_result *ret_result,
                                   kith_error *err);

/* Does the path name photos that kith_tune_run could train on: a folder that is neither a run nor an index, a manifest (a name that ends
 * in .csv), or tar files? */
KITH_API bool kith_tune_can(const char *path);

#ifdef __cplusplus
}
#endif
#endif
