/* Result cards: what a judgement found, and on what. One schema for `kith eval --json` and for the result.json of a run,
 * written, read and compared here (docs/evaluation.md lists the keys).
 *
 * The scores of one judgement are a block of a JSON object: {"recall": {"1": …}, "map_at_r": …, "queries": …}. kith eval
 * prints one block, with what it is about under "card"; the result.json of a run has several ("test", "untrained",
 * "validation" …), with what they are about beside them. Cards of 0.1 are read too. */
#ifndef KITH_CARD_H
#define KITH_CARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/eval.h"
#include "kith/worst.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- scores by name ---- */

typedef enum kith_score {
    KITH_SCORE_RECALL, /* R@K, for every K */
    KITH_SCORE_PRECISION_AT_1,
    KITH_SCORE_MAP_AT_R,
    KITH_SCORE_R_PRECISION,
    KITH_SCORE_MAP,
    KITH_SCORE_MRR,
    KITH_SCORE_NMI, /* from here on of clustering */
    KITH_SCORE_AMI,
    KITH_SCORE_F1,
} kith_score;
#define KITH_N_SCORES 9

/* The key in a card ("map_at_r") and what people write ("MAP@R"); NULL when there is no such score. */
KITH_API const char *kith_score_name(kith_score score);
KITH_API const char *kith_score_title(kith_score score);
/* The value of one that is not R@K or of clustering, and its interval; NaN for those. */
KITH_API double kith_score_value(const kith_scores *scores, kith_score score);
KITH_API kith_interval kith_score_interval(const kith_intervals *intervals, kith_score score);

/* ---- writing ---- */

/* What a card is about: everything two results must share to be compared, and where they come from. NULL and 0: not
 * said. Strings are borrowed for the call. */
typedef struct kith_card_facts {
    size_t size;                      /* of the struct: set by kith_card_facts_init */
    const char *model, *model_sha256; /* the file that was judged */
    const char *backbone, *pool, *tap;
    const char *preprocessing, *resize;
    int64_t crop;
    int64_t embedding_size;
    const char *dataset, *data, *data_sha256, *split; /* kind, root, items, which part */
    const char *recipe, *recipe_sha256;
    const char *embedding, *embedding_sha256, *labels_sha256; /* of files that were judged */
    const char *weights, *weights_sha256;                     /* that training began with */
    const char *bn, *device, *precision;
    double embed_seconds; /* from files to vectors; 0: not known */
} kith_card_facts;

/* Nothing is said. */
KITH_API void kith_card_facts_init(kith_card_facts *facts, size_t size);

typedef struct kith_card_options {
    size_t size;                /* of the struct: set by kith_card_options_init */
    bool scores[KITH_N_SCORES]; /* which are written */
    bool per_class;             /* one entry per class, too */
    bool per_query;             /* what every query came to, packed: kith_card_compare pairs by it */
    const kith_worst *worst;    /* written, too; NULL: not */
    const char *const *paths;   /* of every row of the embedding, for `worst`; NULL: not said … */
    const char *const *classes; /* … and the names of the classes of the rows */
} kith_card_options;

/* All scores, with the queries, without the classes. */
KITH_API void kith_card_options_init(kith_card_options *options, size_t size);

/* The card of a judgement as one line of JSON: a new string for kith_string_free (kith/text.h). */
KITH_API kith_status kith_card_make(const kith_judgement *judgement, const kith_card_facts *facts,
                                    const kith_card_options *options, char **ret_text, kith_error *err);

/* ---- reading ---- */

/* A card that was read; used by any number of threads at once. */
typedef struct kith_card kith_card;

/* The path is that of a card, of the folder of a run that has ended (also one of folds and seeds), of a result of kith reproduce
 * (ROW-seed0.json), or, where nothing has that name, of all results of its row: results/ROW stands for
 * results/ROW-seed0.json, results/ROW-seed1.json … KITH_EIO, or KITH_EFORMAT for what is no JSON object. The functions
 * below speak of the first of several results, or of the means that a run of seeds keeps; kith_card_compare of all. */
KITH_API kith_status kith_card_read(const char *path, kith_card **ret_card, kith_error *err);
KITH_API void kith_card_free(kith_card *card); /* NULL is fine */

/* The scalar at a path ("recall.1", "test.map_at_r"), or NULL when there is none; items of lists go by number:
 * "intervals.map.0", those of `variants` also by name: "all_orders.recall.1". Names of 0.1 stand for today's and the reverse.
 * Lives as long as the card. */
KITH_API const char *kith_card_text(const kith_card *card, const char *path);
/* The scalar as a number; false when there is none. */
KITH_API bool kith_card_real(const kith_card *card, const char *path, double *ret_value);
/* The i-th key of the map at `path` ("": the card), or NULL. */
KITH_API const char *kith_card_key(const kith_card *card, const char *path, int64_t i);
/* One of kith_card_facts by its name, wherever the card has it; NULL: not said. */
KITH_API const char *kith_card_fact(const kith_card *card, const char *name);

/* ---- comparing ---- */

typedef struct kith_card_row {
    char name[72]; /* "R@1" */
    struct kith_card_side {
        bool has_value, has_interval;
        double value;
        kith_interval interval;
    } side[2];
    bool is_paired;           /* both were scored query by query */
    kith_interval difference; /* 95 % interval of side[1].value - side[0].value; NaN when not paired */
} kith_card_row;

/* A fact that speaks against comparing: what it is, and what the two cards say. The two differ, or one of them is NULL:
 * that card does not say it, and nobody knows whether it is the same. */
typedef struct kith_card_difference {
    const char *what, *side[2];
} kith_card_difference;

typedef struct kith_card_comparison {
    int64_t n_rows, n_differences;
    kith_card_row *row;
    kith_card_difference *difference; /* strings of the cards and of the library */
    int64_t n_runs[2];                /* seeds and folds of each side */
    int64_t n_queries, n_draws;       /* of the paired bootstrap; 0: there is none … */
    char why[256];                    /* … and why, in a sentence */
} kith_card_comparison;

/* Scores of two cards side by side; of a run's card, those of the test classes, else of validation; of folds and seeds,
 * the mean with its interval over runs. Where both say what every query came to, differences of R@K, P@1 and MAP@R have an
 * interval: a bootstrap that draws the same queries for both sides and, where a side has several runs, also runs.
 * KITH_EFORMAT names a card that has no scores; KITH_EINVAL: the two are not of the same queries. The cards must outlive the
 * comparison. */
KITH_API kith_status kith_card_compare(const kith_card *a, const kith_card *b,
                                       kith_card_comparison *ret_comparison, kith_error *err);
KITH_API void kith_card_comparison_release(kith_card_comparison *comparison); /* fine on a zeroed struct */

#ifdef __cplusplus
}
#endif
#endif
