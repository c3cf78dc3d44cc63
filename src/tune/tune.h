/* Tuning: from a folder of photos to the best model that a number of minutes finds (kith/tune.h). README.md says in which order.
 *
 * What has been found out is a line of tried.jsonl in the run folder; who starts again reads it and does not do it again. So
 * everything below asks first (ki_tune_find), and says afterwards (ki_tune_add). */
#ifndef KI_TUNE_H
#define KI_TUNE_H

#include "embed/kept.h"
#include "judge/judge.h"
#include "kith/tune.h"
#include "objective/usual.h"
#include "train/run.h"

enum { KI_TUNE_MOST_MARKS = 4, KI_TUNE_MOST_FOLDS = 4, KI_TUNE_MOST_WAYS = 32 };

/* What a way to train came to on held-out classes: sums over the queries of each class of the data set. */
typedef struct ki_tune_scores {
    int64_t n_classes;
    double *n, *recall, *precision; /* [n_classes] queries; R@1 and MAP@R of them */
} ki_tune_scores;

/* By how much b is better than a over the classes that both have: the mean of differences and its standard error. */
typedef struct ki_tune_difference {
    int n;                    /* classes */
    double mean, error, t;    /* t: of the 95 % interval on both sides */
    double recall, precision; /* over queries */
    double recall_error;      /* standard error of the mean over classes of the difference in R@1 */
} ki_tune_difference;
/* Where an embedding layer starts. */
typedef enum ki_tune_start {
    KI_TUNE_OWN,   /* the layer of the pretrained model */
    KI_TUNE_AXES,  /* principal axes of its features (model.embedding_init: pca) */
    KI_TUNE_WHITE, /* … whitened */
} ki_tune_start;

/* A way to train. Those that are simpler come first in the table and have a smaller number. */
typedef struct ki_tune_way {
    char name[96];
    ki_tune_start start;
    const char *objective; /* YAML of the section; NULL: the start as it is, no step */
    double lr;
    const char *optim;  /* further keys of the section, ", eps: 0.01" */
    bool is_fine;       /* the network learns, too */
    ki_usual_part part; /* … and what of it */
    int complexity; /* of two that are as good the smaller is taken: as it is, whitened, a layer that learns, the network */
    int64_t steps; /* of the mark that is best so far */
} ki_tune_way;

/* A part of what trains: that share of the classes, or of the photos of each class. {.share = 1}: all. */
typedef struct ki_tune_part {
    double share;
    bool of_photos;
} ki_tune_part;

/* A partition of the training classes into folds. */
typedef struct ki_tune_folds {
    int number; /* which partition: 0, 1 … */
    int n;
    int *fold_of;  /* [n_items] the fold that holds an item out, -1: none does */
    bool by_photo; /* too few classes: photos are held out, not classes */
} ki_tune_folds;

/* The best layer, trained on a part of the photos: the gain over the pretrained model on held-out classes. */
typedef struct ki_tune_point {
    ki_tune_part part;
    double n_classes, n_photos; /* that trained, in the mean over the folds */
    ki_tune_difference gain;
} ki_tune_point;

/* What twice as many classes, or photos of each class, would likely bring. */
typedef struct ki_tune_forecast {
    bool is_known;
    double gain, low, high;   /* of the mean of R@1 and MAP@R */
    double recall, precision; /* of each */
} ki_tune_forecast;

enum { KI_TUNE_MOST_POINTS = 4 };

typedef struct ki_tune {
    const kith_tune_options *options;
    char folder[3072];
    int lock;
    double began, used_before, seconds_allowed;
    ki_arena arena;
    ki_value *line; /* a list of what is in tried.jsonl */
    int file;       /* tried.jsonl, appended to */

    /* look.c */
    int64_t n_found, n_used, n_unread; /* photos; n_unread: whose header cannot be read */
    int64_t n_classes, n_train_classes, n_test_classes;

    /* open.c */
    ki_recipe *base; /* what all ways share */
    kith_dataset *set;
    ki_backend *backend;
    ki_net net, test_net;
    ki_params *params;
    ki_kept *kept;
    kith_transform train_transform, test_transform;
    char half[80];   /* the last layer of the first half of the network; "": it has no such place */
    bool takes_lora; /* it learns mostly in linear layers of tokens */
    int64_t n_features, n_views, own; /* own: size of the model's own embedding layer; 0: it has none */
    double seconds_of_view;           /* of all photos that train, once through the network */
    double seconds_of_step;           /* of training the network, measured by fine.c */
    char busy[128];
    bool must_stop,
        is_over; /* asked to stop; an earlier call has used these minutes: what is known decides, nothing more is tried */
    ki_items learn; /* items that train or validate */
    bool *is_sound; /* [n_items] its features can be read */

    ki_tune_folds folds[2];
    /* Axes of the features of the photos outside a fold, largest first; made when asked for. */
    double *axes[2][KI_TUNE_MOST_FOLDS + 1][2];

    ki_tune_way way[KI_TUNE_MOST_WAYS];
    int n_ways;
    int best;   /* number of the best way on features */
    int winner; /* … and of that which makes the model; 0: the pretrained */
    char why[400], advice[400];
    ki_tune_point point[KI_TUNE_MOST_POINTS]; /* of the classes from few to all, then half of the photos */
    int n_points;
    ki_tune_forecast forecast[2]; /* of classes, of photos */
} ki_tune;

/* ---- tune.c ---- */

double ki_tune_seconds(const ki_tune *tune); /* used so far, by all processes */
double ki_tune_left(const ki_tune *tune);
/* A line for whoever is watching, and true if that one wants to stop. */
bool ki_tune_say(ki_tune *tune, const char *fmt, ...) KITH_PRINTF(2, 3);
int ki_tune_busy(void *tune, int64_t n_done, int64_t n_all); /* with tune->busy */
kith_status ki_tune_stopped(kith_error *err);                /* KITH_ECANCELED */

/* ---- state.c ---- */

kith_status ki_tune_state_open(ki_tune *tune, kith_error *err);
void ki_tune_state_close(ki_tune *tune);
/* A number that was decided: found, it is as it was; else it is `value`, which is remembered. */
kith_status ki_tune_decide(ki_tune *tune, const char *key, double value, double *ret, kith_error *err);
bool ki_tune_has_decided(const ki_tune *tune, const char *key);
/* The number, if it was decided; else *ret stays. */
void ki_tune_known(const ki_tune *tune, const char *key, double *ret);
/* Ends the object that `json` has begun, writes it as a line, and knows it from now on. */
kith_status ki_tune_add_line(ki_tune *tune, kith_json *json, kith_error *err);
/* A text of a line; "": it has none of that name. */
const char *ki_tune_text(const ki_value *line, const char *key);
/* The scores of a trial, added to *to. False: it has not been done. */
bool ki_tune_find(const ki_tune *tune, const char *trial, int64_t mark, ki_tune_scores *to);
kith_status ki_tune_add(ki_tune *tune, const char *trial, int64_t mark, const kith_retrieval *found,
                        kith_error *err);

/* ---- look.c: the photos; writes photos.csv ---- */

kith_status ki_tune_look(ki_tune *tune, kith_error *err);

/* unread.c: marks photos that cannot be read, and names one. */
kith_status ki_tune_find_unread(ki_tune *tune, const kith_dataset *set, bool *is_out, kith_error *err);

/* ---- open.c: network, features ---- */

kith_status ki_tune_open(ki_tune *tune, kith_error *err);
kith_status ki_tune_embed(ki_tune *tune, kith_error *err);
void ki_tune_close(ki_tune *tune);
/* Features of `less`, a part of `set` whose items have the numbers item[] there, are taken from those of `set`, which go. */
kith_status ki_tune_carry(ki_tune *tune, const kith_dataset *set, const kith_dataset *less,
                          const int64_t *item, kith_error *err);

/* ---- suspects.c: photos compared by their features ---- */

/* Needs one view of all photos. What is found is written down. */
kith_status ki_tune_suspect(ki_tune *tune, kith_error *err);
/* photos.csv, and the features, without what that leaves out. */
kith_status ki_tune_leave_out(ki_tune *tune, kith_error *err);

/* ---- half.c: what of the network can be trained alone ---- */

/* tune->half, tune->takes_lora */
void ki_tune_find_parts(ki_tune *tune);

/* ---- ways.c: what is tried, and recipes ---- */

void ki_tune_list(ki_tune *tune);
/* The recipe of a way with so many steps; fold -1: all training classes. The caller frees the recipe. */
kith_status ki_tune_recipe(const ki_tune *tune, const ki_tune_way *way, int64_t steps, ki_recipe **ret,
                           kith_error *err);
const char *ki_tune_describe(const ki_tune_way *way, char *buf, size_t bytes);

/* ---- folds.c ---- */

kith_status ki_tune_make_folds(ki_tune *tune, int number, int n, ki_tune_folds *ret, kith_error *err);
/* Items that train (held false) or validate with a fold; part (NULL: all): only that part of them. */
kith_status ki_tune_select(const ki_tune *tune, const ki_tune_folds *folds, int fold, bool held,
                           const ki_tune_part *part, ki_items *ret, kith_error *err);

/* ---- trial.c: a way on features, with a fold held out ---- */

/* Scores at each of the marks (rising numbers of steps) that are not known yet. ret_held (NULL: not wanted) receives the vectors of the held-out
 * photos after the last mark. fold -1 holds nothing out, and `held` is then judged instead. */
typedef struct ki_tune_trial {
    const ki_tune_way *way;
    const ki_tune_folds *folds;
    int fold;
    ki_tune_part part;
    const int64_t *mark;
    int n_marks;
    double until; /* ki_tune_seconds: marks that begin later are left out, but the first; 0: none */
} ki_tune_trial;
kith_status ki_tune_try(ki_tune *tune, const ki_tune_trial *trial, ki_vectors *ret_held, kith_error *err);
/* Its name in tried.jsonl. */
const char *ki_tune_trial_name(const ki_tune_trial *trial, char *buf, size_t bytes);

/* Photos by the pretrained model, from their features. */
kith_status ki_tune_pretrained(ki_tune *tune, const ki_items *items, ki_vectors *ret, kith_error *err);

/* ---- compare.c ---- */

kith_status ki_tune_scores_init(const ki_tune *tune, ki_tune_scores *ret, kith_error *err);
void ki_tune_scores_release(ki_tune_scores *scores);
/* The mean over queries, and of a class its mean of both scores. */
double ki_tune_recall(const ki_tune_scores *scores);
double ki_tune_precision(const ki_tune_scores *scores);
double ki_tune_mean(const ki_tune_scores *scores); /* of classes, of the mean of both */

ki_tune_difference ki_tune_compare(const ki_tune_scores *a, const ki_tune_scores *b);

/* ---- curve.c: what more photos would bring; tune->point, forecast, advice ---- */

kith_status ki_tune_curve(ki_tune *tune, kith_error *err);

/* ---- search.c, fine.c: which way is best ---- */

kith_status ki_tune_search(ki_tune *tune, kith_error *err);
kith_status ki_tune_fine(ki_tune *tune, kith_error *err);
/* Where a short run of a way lies, with a fold of a partition held out. */
kith_status ki_tune_run_folder(const ki_tune *tune, const ki_tune_way *way, const ki_tune_folds *folds,
                               int fold, ki_path *ret, kith_error *err);
/* A call with so many minutes came to its end: tune->is_over from then on, and the search finds what it found. */
kith_status ki_tune_end(ki_tune *tune, kith_error *err);
bool ki_tune_has_ended(const ki_tune *tune);
/* Is a way better than the pretrained model by more than chance, over these folds of the second partition? Then tune->why says so. */
bool ki_tune_is_better(ki_tune *tune, int way, unsigned mask, ki_tune_difference *ret_by);
/* Photos by the model in a run's folder. */
kith_status ki_tune_embed_run(ki_tune *tune, const char *folder, const ki_items *items, ki_vectors *ret,
                              kith_error *err);
/* Scores of a way over the folds of a partition that are in the mask, as far as they are known: how many folds. part NULL: all. */
int ki_tune_sum(const ki_tune *tune, const ki_tune_way *way, const ki_tune_folds *folds, int64_t steps,
                unsigned mask, const ki_tune_part *part, ki_tune_scores *to);

/* ---- clear.c ---- */

void ki_tune_remove(const char *path); /* a file or a folder with all in it; what cannot be removed stays */
/* The run in the folder, of another recipe than the one that follows. */
void ki_tune_clear_run(const ki_tune *tune);

/* ---- finish.c: the winner's run, error rates, tune.json ---- */

kith_status ki_tune_finish(ki_tune *tune, kith_tune_result *ret_result, kith_error *err);

kith_status ki_tune_run(const kith_tune_options *options, kith_tune_result *ret_result, kith_error *err);

#endif
