/* Result cards inside the library: the blocks and facts of result.json (kith/card.h says what a card is). */
#ifndef KI_CARD_H
#define KI_CARD_H

#include "core/value.h"
#include "judge/orders.h"
#include "kith/card.h"
#include "kith/experimental/json.h"

/* key and value, for the object that is open. */
void ki_card_put_text(kith_json *json, const char *key, const char *value); /* NULL: nothing is written */
void ki_card_put_int(kith_json *json, const char *key, int64_t value);
void ki_card_put_real(kith_json *json, const char *key, double value);

/* Version, commit and facts, into the object that is open. */
void ki_card_put_facts(kith_json *json, const kith_card_facts *facts);

/* What training kept of a judgement; pointers may be NULL. */
typedef struct ki_card_block {
    const ki_scores *scores;
    const int64_t *k;
    int64_t n_k;
    const char *data_sha256; /* of the split that was judged */
    const kith_intervals *intervals;
    const ki_clustered *clustered;
    const char *note;
    const ki_orders *orders; /* each alone */
} ki_card_block;

/* Nothing when the scores are not there. */
void ki_card_put_block(kith_json *json, const char *key, const ki_card_block *block);

/* Scores and clustering (without its settings) of a block that was read; not there when the card has none. */
ki_scores ki_card_scores(const kith_card *card, const char *block, const int64_t *k, int64_t n_k);
ki_clustered ki_card_clustered(const kith_card *card, const char *block);

/* Where it was read from, and what such a file should have been. */
const char *ki_card_path(const kith_card *card);
#define KI_CARD_WANTED "a result of kith eval --json or a run's result.json"

/* The value at a path below `root`, by today's names or those of 0.1; NULL: none. */
const ki_value *ki_card_find(const ki_value *root, const char *path);

#endif
