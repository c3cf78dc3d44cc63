/* Result cards inside the library: the blocks and facts of result.json (kith/card.h says what a card is). */
#ifndef KI_CARD_H
#define KI_CARD_H

#include "base/value.h"
#include "judge/estimate.h"
#include "judge/orders.h"
#include "kith/card.h"
#include "kith/experimental/json.h"

/* key and value, for the object that is open. */
void ki_card_put_text(kith_json *json, const char *key, const char *value); /* NULL: nothing is written */
void ki_card_put_int(kith_json *json, const char *key, int64_t value);
void ki_card_put_real(kith_json *json, const char *key, double value);

/* Version, commit and facts, into the object that is open. */
void ki_card_put_facts(kith_json *json, const kith_card_facts *facts);

/* Scores over several runs. */
typedef struct ki_card_means {
    kith_estimate recall[KITH_MOST_K], map_at_r, r_precision, nmi, ami, f1;
} ki_card_means;

/* Other vectors than the embedding: how they were made of a row's numbers. */
typedef struct ki_card_variant {
    const char *name;
    const char *transform; /* "pca", "pca_white", "each_white_pca", "white" */
    const char *fitted_on; /* "training", "test" */
    int64_t dim[2];        /* numbers of a row before and after; 0: not said */
} ki_card_variant;

/* What training kept of a judgement; pointers may be NULL. */
typedef struct ki_card_block {
    const ki_scores *scores;    /* counts below 0 are not written: the runs differ in them */
    const ki_card_means *means; /* written in place of the scores, as {"mean": …, "low": …, "high": …} */
    const int64_t *k;
    int64_t n_k;
    const char *data_sha256; /* of the split that was judged */
    const kith_intervals *intervals;
    const ki_clustered *clustered;
    const char *note;
    const ki_card_variant *variant; /* NULL: the block is of the embedding */
    const ki_orders *orders;        /* each alone */
    const struct ki_per_query *per_query;
} ki_card_block;

/* Nothing when the scores are not there. key NULL: an item of the list that is open. */
void ki_card_put_block(kith_json *json, const char *key, const ki_card_block *block);

/* The cards of n runs together, into the object that is open: the mean of every score in every block with its interval
 * over the runs, and whatever else the runs have in common. */
kith_status ki_card_put_runs(kith_json *json, kith_card *const *cards, int n, const int64_t *k, int64_t n_k,
                             kith_error *err);

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

#endif
