/* Result cards inside the library: the blocks and facts of result.json (kith/card.h says what a card is). */
#ifndef KI_CARD_H
#define KI_CARD_H

#include "base/value.h"
#include "judge/estimate.h"
#include "judge/judge.h"
#include "kith/card.h"
#include "kith/experimental/json.h"

/* ---- what a card is made of; the writer is card_write.c, for kith eval, for runs and for several runs together ---- */

/* A key and its value. */
typedef struct ki_card_entry {
    const char *key;
    enum { KI_ENTRY_TEXT, KI_ENTRY_INT, KI_ENTRY_REAL, KI_ENTRY_BOOL, KI_ENTRY_NULL } kind;
    const char *text; /* NULL: the entry is not written */
    int64_t whole;    /* a BOOL's, too */
    double real;
} ki_card_entry;

ki_card_entry ki_entry_text(const char *key, const char *text);
ki_card_entry ki_entry_int(const char *key, int64_t value);
ki_card_entry ki_entry_real(const char *key, double value);
ki_card_entry ki_entry_bool(const char *key, bool value);

/* Scores over several runs. */
typedef struct ki_card_means {
    kith_estimate recall[KITH_MOST_K], map_at_r, r_precision, nmi, ami, f1;
} ki_card_means;

/* Other vectors than the embedding: how they were made of a row's numbers. */
typedef struct ki_card_variant {
    const char *name, *transform, *fitted_on; /* fitted_on NULL: nothing was fitted */
    int64_t dim[2];                           /* numbers of a row before and after; 0: not said */
} ki_card_variant;

/* The scores of one judgement. Pointers are borrowed and may be NULL; counts below 0 are not written. */
typedef struct ki_card_block {
    const char *key;
    bool is_there;                  /* false: it is left out */
    const ki_card_variant *variant; /* NULL: of the embedding */
    const bool *wanted;             /* [KITH_N_SCORES]: those that are written */
    kith_scores scores;
    const ki_card_means *means; /* written in place of the scores, as {"mean": …, "low": …, "high": …} */
    const int64_t *k;
    int64_t n_k;
    kith_metric metric;
    int64_t n_query, n_gallery, n_classes, n_lone, n_tied, n_zero, step;
    const char *data_sha256; /* of the split that was judged */
    const char *note;
    const kith_intervals *intervals;
    kith_bootstrap_settings bootstrap;
    const ki_clustered *clustered;
    const struct ki_per_query *per_query;
    /* What only kith eval says: means over classes, every class, the geometric NMI, re-ranking, verification. */
    const kith_judgement *judgement;
    bool per_class;
} ki_card_block;

/* What training keeps of a judgement. */
ki_card_block ki_card_block_of(const char *key, const ki_scores *scores, const int64_t *k, int64_t n_k);

/* A card, in the order it is written. */
typedef struct ki_card_content {
    const ki_card_entry *first;
    size_t n_first;
    const ki_card_block *block;
    size_t n_blocks;
    const ki_card_block *variant; /* items of the list `variants` */
    size_t n_variants;
    const ki_card_entry *last;
    size_t n_last;
    const kith_card_facts *facts;        /* NULL: none */
    const kith_calibration *calibration; /* written as `error_rates`; NULL or without points: not */
} ki_card_content;

/* Into the object that is open. */
void ki_card_put(kith_json *json, const ki_card_content *content);
/* The same without the block's own object. */
void ki_card_put_block(kith_json *json, const ki_card_block *block);
void ki_card_put_entry(kith_json *json, const ki_card_entry *entry);
void ki_card_put_facts(kith_json *json, const kith_card_facts *facts);     /* and version and commit */
void ki_card_put_worst(kith_json *json, const kith_card_options *options); /* card_worst.c: its `worst` */

/* The cards of n runs together, into the object that is open: the mean of every score in every block with its interval
 * over the runs, and whatever else the runs have in common. */
kith_status ki_card_put_runs(kith_json *json, kith_card *const *cards, int n, const int64_t *k, int64_t n_k,
                             kith_error *err);

/* ---- reading ---- */

/* Scores and clustering of a block that was read; not there when the card has none. */
ki_scores ki_card_scores(const kith_card *card, const char *block, const int64_t *k, int64_t n_k);
ki_clustered ki_card_clustered(const kith_card *card, const char *block);

/* The facts that all n cards agree on; texts live as long as the cards. */
kith_card_facts ki_card_common_facts(kith_card *const *cards, int n);

/* Where it was read from, and what such a file should have been. */
const char *ki_card_path(const kith_card *card);
#define KI_CARD_WANTED "a result of kith eval --json or a run's result.json"
/* The cards of the runs it is about: of one, itself. */
int64_t ki_card_n_runs(const kith_card *card);
const kith_card *ki_card_run(const kith_card *card, int64_t i);

/* The value at a path below `root`, by today's names or those of 0.1; NULL: none. The name of a variant is a key of the map
 * that has the list `variants`: earlier cards had a block of that name instead. */
const ki_value *ki_card_find(const ki_value *root, const char *path);
/* The i-th variant of a card, its sizes not said; false past the end. Earlier cards have some, too. */
bool ki_card_variant_at(const ki_value *root, size_t i, ki_card_variant *ret_variant);

/* card_older.c: the same of earlier cards; and what today's name for the path of one is, and the reverse. */
bool ki_card_older_variant(const ki_value *root, size_t i, ki_card_variant *ret_variant);
bool ki_card_moved_path(const char *path, char *ret_path, size_t bytes);

#endif
