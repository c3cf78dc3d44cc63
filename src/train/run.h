/* One run: from a recipe and a folder to a model and its result card. */
#ifndef KI_TRAIN_RUN_H
#define KI_TRAIN_RUN_H

#include "data/loader/cache.h"
#include "embed/embedder.h"
#include "judge/per_query.h"
#include "judge/variants.h"
#include "kith/experimental/json.h"
#include "kith/train.h"
#include "train/checkpoint.h"
#include "train/describe.h"
#include "train/folder.h"
#include "train/recipe.h"
#include "train/record.h"

typedef struct ki_train_options {
    const ki_recipe *recipe; /* folds and seeds 1 */
    const char *folder;
    bool resume;
    const char *sibling;    /* folder of another run whose data this one must have too; NULL: none */
    bool folds_differ;      /* … except for which training classes are held out */
    const char *command;    /* may be NULL */
    int run_number, n_runs; /* from 1 */
    ki_comm *comm;          /* the ranks that train together; NULL: one process */
    kith_train_fn notify;   /* may be NULL */
    void *user;
} ki_train_options;

/* What a result card says in numbers. */
typedef struct ki_train_result {
    ki_select selection; /* as it was used: `last` if nothing was held out */
    int64_t step, n_steps;
    ki_scores test, untrained, validation, seen;
    ki_scores best_on_test; /* where the test classes were watched */
    /* Of `test`, over queries; NaN where a result that was read back has none. */
    kith_interval recall_at_1, map_at_r, r_precision;
    ki_clustered clustered; /* of the test classes */
    double seconds, wall_seconds, images_per_second;
} ki_train_result;

kith_status ki_train(const ki_train_options *options, ki_train_result *ret_result, kith_error *err);

/* ---- inside; for the files of this folder ---- */

enum { KI_MOST_TERMS = 64 };

typedef struct ki_items {
    int64_t *item;
    int64_t n;
} ki_items;

enum { KI_HISTOGRAM_BINS = 50 };
typedef struct ki_pair_histogram {
    bool is_there;
    double low, high;
    int64_t positive[KI_HISTOGRAM_BINS], negative[KI_HISTOGRAM_BINS];
} ki_pair_histogram;

/* Items of the last batches, in a ring. */
typedef struct ki_recent {
    int64_t n_slots, n_added;
    int64_t *item; /* [n_slots, batch] */
    int64_t *n, *step;
} ki_recent;

/* What run.json says about the beginning of a run. */
typedef struct ki_beginning {
    char data_hash[65], weights_hash[65]; /* "": no weights */
    char teacher_hash[KI_MOST_TEACHERS][65];
    int64_t n_train, n_validation, n_test; /* images */
} ki_beginning;

typedef struct ki_train_state {
    const ki_train_options *options;
    const ki_recipe *recipe;
    ki_comm *comm;
    ki_device_comm *device_comm; /* NULL: one process */
    bool writes;                 /* the first rank: the only one that changes the folder, logs and notifies */
    ki_folder folder;
    bool has_begun;           /* whether another process began the run; then */
    ki_beginning beginning;   /* … its run.json, */
    ki_checkpoint from;       /* … until it is restored, the checkpoint to resume from, if there is one, */
    int64_t from_step;        /* … and its file's step */
    int64_t first_checkpoint; /* … and after how many steps there must have been one */
    char recipe_hash[65], data_hash[65], weights_hash[65];

    kith_dataset *set;
    ki_items train, validation, test, seen;
    int32_t *class_of; /* by the data set's label: 0 … n_classes - 1, or -1 when not trained on */
    int32_t n_classes;
    int64_t n_labelled; /* training images that have a class */

    ki_backend *backend;
    ki_net net;
    ki_net test_net; /* the same with the size of test images: what is judged and what model files describe */
    ki_params *params;
    ki_net whole, whole_test; /* model.frozen (frozen.h): the network whose embedding layer `net` is */
    ki_params *whole_params;
    char busy_text[40]; /* what is said of the features that are made */
    ki_teacher teacher[KI_MOST_TEACHERS];
    ki_objective *objective;
    ki_learner *learner;
    ki_embedder *embedder;
    ki_variant variant[KI_MOST_VARIANTS]; /* that are scored beside the embedding */
    size_t n_variants;
    ki_description
        *description;        /* from the first evaluation that scores variants of a term; NULL: none does */
    bool description_failed; /* there was no memory for that */
    kith_transform train_transform, test_transform;
    ki_cache *cache; /* of the loader; one for all ranks of a machine */
    ki_loader *loader;
    int64_t n_bad_told; /* unreadable images of the loader that the other ranks know of */
    ki_record *record;
    int64_t batch;         /* most images of one */
    int64_t n_unlabelled;  /* so many at the end of each have no class */
    int64_t epoch_batches; /* batches of the first epoch */
    int64_t n_steps;
    ki_select selection;
    int64_t started;     /* seconds since 1970 */
    double began;        /* this process, by the monotonic clock */
    double wall_seconds; /* of the processes before */

    ki_standing at;
    int64_t saved_step, saved_eval; /* step and last_eval of the last checkpoint; -1: none */
    double saved_time;              /* when, by the monotonic clock */
    bool must_stop;

    /* Of the last step that was read. */
    double total, lr, images_per_second;
    int n_terms;
    kith_term term[KI_MOST_TERMS];
    int64_t epoch, side;        /* side: of the images; 0: always the same */
    const char *embedded_split; /* the last that was judged; NULL: other images */
    /* The first step of this process, from which on its pace is measured. */
    bool is_paced;
    int64_t paced_from_step;
    double paced_from_seconds;
    /* Since the last line of the log. */
    double window_seconds;
    int64_t window_images;

    int32_t *label;   /* of one batch, by training class */
    float *embedding; /* of one batch */
    ki_recent recent;
    int64_t last_n;            /* images of the last batch */
    ki_pair_histogram weights; /* of pairs of a training batch */
} ki_train_state;

/* Notify the caller; true when it wants to stop (this is remembered). */
bool ki_train_notify(ki_train_state *run, const kith_train_event *event);
/* A kith_progress_fn between batches of an evaluation; non-zero: the caller wants to stop. */
int ki_train_tell_busy(void *run, int64_t n_done, int64_t n_all);
/* A line for the log and for the caller. */
kith_status ki_train_say(ki_train_state *run, kith_train_event_kind kind, kith_error *err, const char *fmt,
                         ...) KITH_PRINTF(4, 5);

/* ranks.c. What this rank did alone has ended with `status`: all ranks leave with the same, and if one was asked to stop, all
 * were. */
kith_status ki_train_agree(ki_train_state *run, kith_status status, kith_error *err);
/* The standing of the first rank, for all. */
kith_status ki_train_share_standing(ki_train_state *run, kith_error *err);
/* Vectors of all ranks, in their order, from each rank's own, which are released; has status, that of making them. */
kith_status ki_train_gather_vectors(ki_train_state *run, kith_status status, ki_vectors *own,
                                    ki_vectors *ret_all, kith_error *err);
/* Learned things for each class are shared out over ranks, where the objective is evaluated on the host. */
void ki_train_share_out(const ki_train_state *run, ki_sizes *sizes);
/* The first rank's answer, for all. */
kith_status ki_train_first_says(ki_train_state *run, bool *answer, kith_error *err);
/* What one rank could not read, all know: it counts once, and no other tries it. KITH_EFORMAT: these are too many. */
kith_status ki_train_share_bad(ki_train_state *run, kith_error *err);
/* ki_alike of the last batch, all ranks' images together; 0 where there are none. */
kith_status ki_train_batch_alike(ki_train_state *run, double *ret_alike, kith_error *err);
/* The device of a rank, for a recipe that names none: the ranks of a machine take its devices in turn. Without ranks
 * *ret_device is unchanged. */
kith_status ki_train_choose_device(const ki_recipe *recipe, const ki_comm *comm, int *ret_device,
                                   kith_error *err);
/* How many threads a rank uses. */
int64_t ki_train_threads(const ki_recipe *recipe, const ki_comm *comm);

double ki_train_wall(const ki_train_state *run); /* seconds the run has taken, all processes together */

/* setup.c */
kith_status ki_train_setup(ki_train_state *run, kith_error *err);
/* The hash of the recipe, for a run's checkpoints and card. */
void ki_train_hash_recipe(const ki_recipe *recipe, char ret_hash[65]);
void ki_train_release(ki_train_state *run);
/* Starts at the first batch of the first epoch. */
kith_status ki_train_make_sampler(ki_train_state *run, ki_sampler **ret_sampler, kith_error *err);
kith_status ki_train_save(ki_train_state *run, kith_error *err);

/* resume.c. Check that the folder is new or contains this same run. */
kith_status ki_train_check_folder(ki_train_state *run, kith_error *err);
/* The newest intact checkpoint and the step in its name; -1 when there is no checkpoint at all, an error when
 * there are some but none is intact. */
kith_status ki_train_find_checkpoint(const ki_train_state *run, ki_checkpoint *ret_checkpoint,
                                     int64_t *ret_step, kith_error *err);
/* If there is no checkpoint: refuse a run whose log shows that there were some. */
kith_status ki_train_check_fresh(ki_train_state *run, kith_error *err);
/* Refuse data that differs from what the run, or its sibling, began with, and say what changed. */
kith_status ki_train_check_data(ki_train_state *run, kith_error *err);
/* Hash the weights file, and refuse one that the run did not begin with. If there is a checkpoint, the file is not
 * needed and may be missing. */
kith_status ki_train_check_weights(ki_train_state *run, bool *ret_are_there, kith_error *err);
/* Refuse teacher number t, which is open, if the run did not begin with it. */
kith_status ki_train_check_teacher(ki_train_state *run, int t, kith_error *err);
/* Resume from run->from; newer checkpoints, which are damaged, are renamed, with a warning. */
kith_status ki_train_restore(ki_train_state *run, kith_error *err);

/* loop.c: steps until the end, a stop or a failure. */
kith_status ki_train_loop(ki_train_state *run, kith_error *err);

/* evaluate.c: judge the splits that are due at this step, and remember the best. What is judged is the network, or its average. */
kith_status ki_train_evaluate(ki_train_state *run, kith_error *err);
/* The values of a tap, or what the describer makes (NULL: the tap), for those images of a list that can be read.
 * KITH_ECANCELED if the caller asked to stop. */
kith_status ki_train_embed(ki_train_state *run, const int64_t *items, int64_t n, const char *tap,
                           const ki_describer *describer, ki_vectors *ret_vectors, kith_error *err);

/* The same of the embeddings that are judged, of as many views as eval.views says. */
kith_status ki_train_embed_judged(ki_train_state *run, const int64_t *items, int64_t n,
                                  ki_vectors *ret_vectors, kith_error *err);

/* best.c: the best model so far. Save the present model as the best one, and remember the step and the file's
 * hash. */
kith_status ki_best_save(ki_train_state *run, kith_error *err);

/* What best.safetensors is, compared with the one that a standing remembers. */
typedef struct ki_best_found {
    bool is_other; /* not the same bytes */
    bool is_ours;  /* a run of this recipe wrote it, at */
    int64_t step;
} ki_best_found;

/* ret_tensors may be NULL. */
kith_status ki_best_look(const ki_train_state *run, const ki_standing *at, ki_best_found *ret_found,
                         kith_tensors **ret_tensors, kith_error *err);
kith_status ki_best_fail_other(const ki_train_state *run, const ki_standing *at, kith_error *err);

/* numeric.c: the error when the loss of step `step` (from 0) is not a finite number. */
kith_status ki_train_fail_numeric(ki_train_state *run, int64_t step, const char *what, kith_error *err);
kith_status ki_train_recent_make(ki_train_state *run, kith_error *err);
void ki_train_recent_release(ki_train_state *run);
void ki_train_recent_add(ki_train_state *run, const ki_loader_batch *batch);

/* collapse.c: warn, once, when the embeddings have become alike or the loss stays at its margin. */
kith_status ki_train_watch(ki_train_state *run, const ki_learner_values *values, double alike,
                           kith_error *err);
kith_status ki_train_watch_alike(ki_train_state *run, double alike, bool is_eval, kith_error *err);

/* finish.c: the chosen model, test classes, result card. */
kith_status ki_train_finish(ki_train_state *run, ki_train_result *ret_result, kith_error *err);
/* variants.c: those of the objective that the recipe wants, once the objective is made. */
void ki_train_choose_variants(ki_train_state *run);
/* Those with a curve at an evaluation: begin makes run->description unless it is there or nothing needs it. */
kith_status ki_train_variants_begin(ki_train_state *run, kith_error *err);
void ki_train_variants_end(ki_train_state *run); /* before the learner goes */
/* Of a split: scores by the embedding, and by each of these variants. If memory is short, warns, ends the description and leaves
 * *ret_scores and *ret_list as they were. */
kith_status ki_train_variants_judge(ki_train_state *run, const ki_items *items, ki_scores *ret_scores,
                                    ki_variant_list *ret_list, kith_error *err);
/* All of them on the test classes, at the end, with the model of that step. */
kith_status ki_train_variants_score(ki_train_state *run, int64_t step, ki_variant_list *ret_list,
                                    kith_error *err);
/* Training images that something is fitted on: all, or every k-th of many. The caller frees ret->item. */
kith_status ki_train_choose_fitted(const ki_train_state *run, ki_items *ret, kith_error *err);
/* start_layer.c: with model.embedding_init pca or white, before the first step. */
kith_status ki_train_start_layer(ki_train_state *run, kith_error *err);
/* whiten.c: with model.whiten, changes the embedding layer of the model as it is. */
kith_status ki_train_whiten(ki_train_state *run, kith_error *err);
/* card.c */
kith_status ki_train_write_run(const ki_train_state *run, kith_error *err);
kith_status ki_train_read_run(const char *folder, ki_beginning *ret_beginning, kith_error *err);
kith_status ki_train_write_result(const ki_train_state *run, const ki_train_result *result,
                                  const kith_intervals *intervals, const ki_per_query *queries,
                                  const ki_variant_list *variants, const kith_calibration *calibration,
                                  kith_error *err);
kith_status ki_train_read_result(const char *folder, const ki_recipe *recipe, ki_train_result *ret_result,
                                 kith_error *err);
/* pairs.c: the weights that the loss gives to the pairs of a training batch with the present network (kept
 * until pairs.json is written), and pairs.json. */
kith_status ki_train_weigh_pairs(ki_train_state *run, kith_error *err);
kith_status ki_train_write_pairs(ki_train_state *run, ki_vectors *test, kith_error *err);

#endif
