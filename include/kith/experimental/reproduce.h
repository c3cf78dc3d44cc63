/* Reproduction: a list of recipes run one after the other, each result kept as a small JSON file, and a page of
 * tables made from those files.
 *
 *     KITH_OPTIONS(kith_reproduce_options, options);
 *     options.list = "research/recipes/cub/tables.yaml";
 *     if (kith_reproduce_run(&options, &summary, &err) != KITH_OK) …
 *     if (kith_reproduce_table(&options, &err) != KITH_OK) …
 *
 * What is in the folder of results is not run again, so a stopped or killed reproduction goes on where it was. Several
 * processes may work on one list side by side, in the same folders: each takes the runs that no other is at.
 * docs/reproduction.md describes the list and the files. */
#ifndef KITH_REPRODUCE_H
#define KITH_REPRODUCE_H

#include "kith/train.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum kith_reproduce_event_kind {
    KITH_REPRODUCE_BEGIN,      /* a run is about to begin; seconds: how long it should take, 0: not known */
    KITH_REPRODUCE_TRAIN,      /* something happened in it: train */
    KITH_REPRODUCE_DONE,       /* its result is on the disk: recall_at_1, seconds, text is the file */
    KITH_REPRODUCE_SKIPPED,    /* the result is there already */
    KITH_REPRODUCE_STALE,      /* the result that is there is another recipe's; it is left as it is */
    KITH_REPRODUCE_FAILED,     /* text says why; the next run goes on */
    KITH_REPRODUCE_LATE,       /* would not end in the time there is: seconds */
    KITH_REPRODUCE_BUSY,       /* another process is at it */
    KITH_REPRODUCE_OTHER_DATA, /* the result that is there is of other data; it is left as it is */
    KITH_REPRODUCE_DROPPED, /* halving: it is not run; text: others did better with fewer steps, or it failed */
    KITH_REPRODUCE_WAITS,   /* halving: text says which result with fewer steps is missing */
} kith_reproduce_event_kind;

typedef struct kith_reproduce_event {
    kith_reproduce_event_kind kind;
    const char *row;
    int64_t seed;
    int64_t number, n; /* of the runs in the order of the list, from 1 */
    double recall_at_1, seconds;
    const char *text;
    const kith_train_event *train;
} kith_reproduce_event;

/* A non-zero result asks for a stop: the step is finished and saved, and kith_reproduce_run returns
 * KITH_ECANCELED. */
typedef int (*kith_reproduce_fn)(void *user, const kith_reproduce_event *event);

/* NULL and 0: not given. */
typedef struct kith_reproduce_options {
    size_t size;             /* of the struct: set by kith_reproduce_options_init */
    const char *list;        /* the YAML list; recipes are named from its folder */
    const char *const *sets; /* "data.root=…": overrides for all recipes, behind the rows' own */
    int64_t n_sets;
    int64_t seeds;     /* where the list says `all`: so many, from 1 */
    int64_t seed_from; /* the first seed */
    const char *only;  /* rows whose names match one of these patterns, as in "*-resnet50,cub-*" */
    /* Where files lie; NULL: kith_reproduce_places says. */
    const char *out;  /* folder of results */
    const char *runs; /* folder of run folders */
    bool
        keep_models; /* leave checkpoints and models in the run folders; else they go once the result is kept */
    bool renew;      /* run again what has a result of another version of the recipe or of other data */
    double minutes;       /* begin no run that would end after this many minutes; 0: no limit */
    const char *page;     /* the page of tables … */
    const char *notes;    /* … with the blocks of this file in it, when there is such a file */
    const char *pictures; /* folder of its drawings */
    const char *command;  /* recorded in run.json */
    kith_reproduce_fn notify;
    void *user;
} kith_reproduce_options;

/* 3 seeds from 0, and files where kith_reproduce_places says. */
KITH_API void kith_reproduce_options_init(kith_reproduce_options *options, size_t size);

/* Where the files of a reproduction lie: as the options say, else results/NAME, runs/NAME and, for an `out` of OUT,
 * OUT.md, OUT-notes.md and OUT-pictures. NAME is the list's file name without its ending, or the name of its folder for a
 * list called tables.yaml. KITH_EINVAL for paths that are too long. */
#define KITH_REPRODUCE_PATH 4096
typedef struct kith_reproduce_paths {
    char out[KITH_REPRODUCE_PATH], runs[KITH_REPRODUCE_PATH], page[KITH_REPRODUCE_PATH],
        notes[KITH_REPRODUCE_PATH], pictures[KITH_REPRODUCE_PATH];
} kith_reproduce_paths;
/* Those places. */
KITH_API kith_status kith_reproduce_places(const kith_reproduce_options *options,
                                           kith_reproduce_paths *ret_paths, kith_error *err);

typedef struct kith_reproduce_summary {
    int64_t n; /* runs of the list, as far as `only` and `seeds` go */
    int64_t n_done, n_skipped, n_stale, n_failed, n_late, n_busy, n_other_data;
    int64_t n_dropped, n_waiting; /* of grids with halving */
} kith_reproduce_summary;

/* Run what is missing. A run that fails is recorded (NAME-seedK.failed.json) and counted, and is tried again by the
 * next call; errors of this function are a list, notes, or a result already there, that cannot be read, a folder or a page
 * that cannot be written (all found before the first run), and KITH_ECANCELED. ret_summary (may be NULL) is filled in any case. */
KITH_API kith_status kith_reproduce_run(const kith_reproduce_options *options,
                                        kith_reproduce_summary *ret_summary, kith_error *err);

/* Write the page and its drawings from the list and the results alone: the same files give the same bytes.
 * KITH_EFORMAT names a result that cannot be read. */
KITH_API kith_status kith_reproduce_table(const kith_reproduce_options *options, kith_error *err);

#ifdef __cplusplus
}
#endif
#endif
