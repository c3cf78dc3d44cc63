/* Two result cards side by side, and what speaks against comparing them. */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/argument.h"
#include "core/text.h"
#include "judge/card.h"

/* A score and its interval: a number, or what folds and seeds have, {"mean": …, "low": …, "high": …}. */
static bool score_at(const kith_card *card, const char *block, const char *path, struct kith_card_side *ret) {
    char at[224];
    struct kith_card_side side = {0};
    ki_snprintf(at, sizeof at, "%s%s", block, path);
    side.has_value = kith_card_real(card, at, &side.value);
    const bool is_mean = !side.has_value;
    if (is_mean) {
        ki_snprintf(at, sizeof at, "%s%s.mean", block, path);
        side.has_value = kith_card_real(card, at, &side.value);
    }
    ki_snprintf(at, sizeof at, is_mean ? "%s%s.low" : "%sintervals.%s.0", block, path);
    side.has_interval = side.has_value && kith_card_real(card, at, &side.interval.low);
    ki_snprintf(at, sizeof at, is_mean ? "%s%s.high" : "%sintervals.%s.1", block, path);
    side.has_interval = side.has_interval && kith_card_real(card, at, &side.interval.high);
    *ret = side;
    return side.has_value;
}

/* Where a card has the block that counts: at its root, or the test classes of a run, else validation. */
static const char *block_of(const kith_card *card) {
    static const char *const blocks[] = {"test.", "validation."};
    struct kith_card_side ignored;
    for (size_t i = 0; i < 2; i++) {
        if (score_at(card, blocks[i], "map_at_r", &ignored)) return blocks[i];
    }
    return "";
}

/* block NULL: the one that counts. */
static kith_status add_row_of(kith_card_comparison *c, size_t *capacity, const kith_card *const card[2],
                              const char *name, const char *block, const char *path, kith_error *err) {
    kith_card_row row = {0};
    ki_snprintf(row.name, sizeof row.name, "%s", name);
    for (int i = 0; i < 2; i++) score_at(card[i], block ? block : block_of(card[i]), path, &row.side[i]);
    if (!row.side[0].has_value && !row.side[1].has_value) return KITH_OK;
    KI_TRY(ki_grow(&c->row, capacity, (size_t)c->n_rows + 1, sizeof *c->row, "a comparison", err));
    c->row[c->n_rows++] = row;
    return KITH_OK;
}

static kith_status add_row(kith_card_comparison *c, size_t *capacity, const kith_card *const card[2],
                           const char *name, const char *path, kith_error *err) {
    return add_row_of(c, capacity, card, name, NULL, path, err);
}

static bool has_row(const kith_card_comparison *c, const char *name) {
    for (int64_t i = 0; i < c->n_rows; i++) {
        if (strcmp(c->row[i].name, name) == 0) return true;
    }
    return false;
}

/* R@K for every K that one of the two has. */
static kith_status add_recalls(kith_card_comparison *c, size_t *capacity, const kith_card *const card[2],
                               kith_error *err) {
    char recall[64], path[160], name[72];
    for (int side = 0; side < 2; side++) {
        ki_snprintf(recall, sizeof recall, "%srecall", block_of(card[side]));
        for (int64_t i = 0; kith_card_key(card[side], recall, i); i++) {
            const char *key = kith_card_key(card[side], recall, i);
            ki_snprintf(path, sizeof path, "recall.%.60s", key);
            ki_snprintf(name, sizeof name, "R@%.60s", key);
            if (!has_row(c, name)) KI_TRY(add_row(c, capacity, card, name, path, err));
        }
    }
    return KITH_OK;
}

static kith_status add_rows(kith_card_comparison *c, const kith_card *const card[2], kith_error *err) {
    size_t capacity = 0;
    KI_TRY(add_recalls(c, &capacity, card, err));
    static const kith_score rows[] = {KITH_SCORE_PRECISION_AT_1,
                                      KITH_SCORE_R_PRECISION,
                                      KITH_SCORE_MAP_AT_R,
                                      KITH_SCORE_MAP,
                                      KITH_SCORE_MRR,
                                      KITH_SCORE_NMI,
                                      KITH_SCORE_AMI,
                                      KITH_SCORE_F1};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        KI_TRY(add_row(c, &capacity, card, kith_score_title(rows[i]), kith_score_name(rows[i]), err));
    return add_row_of(c, &capacity, card, "ROC AUC", "verification.", "auc", err);
}

/* When it matters that a card does not say a fact. */
typedef enum silence {
    ALWAYS,
    UNLESS_DATA_KNOWN, /* the items decide it */
    IF_CLUSTERED,      /* for scores of clustering that both have */
    NEVER,             /* another fact stands in for it */
} silence;

/* What must be the same: a fact, a value of the block, or one that is either (say_either). */
static const struct fact {
    const char *what, *fact, *value;
    silence silence;
} facts[] = {{"backbone", "backbone", NULL, ALWAYS},
             {"embedding size", "embedding_size", NULL, ALWAYS},
             {"resize", "resize", NULL, ALWAYS},
             {"crop", "crop", NULL, ALWAYS},
             {"preprocessing", "preprocessing", NULL, ALWAYS},
             {"pooling", "pool", NULL, ALWAYS},
             {"tap", "tap", NULL, ALWAYS},
             {"data", "data_sha256", "data_sha256", UNLESS_DATA_KNOWN},
             {"labels", "labels_sha256", NULL, NEVER},
             {"split", "split", NULL, UNLESS_DATA_KNOWN},
             {"similarity", NULL, "metric", ALWAYS},
             {"number of queries", NULL, "queries", ALWAYS},
             {"gallery size", NULL, "gallery", UNLESS_DATA_KNOWN},
             {"k-means restarts", NULL, "kmeans.restarts", IF_CLUSTERED},
             {"k-means iterations", NULL, "kmeans.iterations", IF_CLUSTERED}};
enum { N_FACTS = sizeof facts / sizeof facts[0] };

static bool is_run(const kith_card *card) { return *block_of(card) != '\0'; }

static const char *value_of(const kith_card *card, const char *name) {
    char path[96];
    ki_snprintf(path, sizeof path, "%s%s", block_of(card), name);
    return kith_card_text(card, path);
}

/* Two runs have it of all they read, as a fact; each beside the scores for the split that was judged, which is what
 * kith eval has as a fact. 0.1 had the first alone: beside kith eval that says nothing. */
static void say_either(const kith_card *const card[2], const struct fact *f, const char *ret[2]) {
    const bool run[2] = {is_run(card[0]), is_run(card[1])};
    for (int i = 0; i < 2; i++)
        ret[i] = run[i] ? value_of(card[i], f->value) : kith_card_fact(card[i], f->fact);
    if ((ret[0] && ret[1]) || (!run[0] && !run[1])) return;
    for (int i = 0; i < 2; i++) ret[i] = run[0] && run[1] ? kith_card_fact(card[i], f->fact) : NULL;
}

static void say(const kith_card *const card[2], const struct fact *f, const char *ret[2]) {
    if (f->fact && f->value) {
        say_either(card, f, ret);
        return;
    }
    for (int i = 0; i < 2; i++)
        ret[i] = f->fact ? kith_card_fact(card[i], f->fact) : value_of(card[i], f->value);
}

/* Both say of what they are: the items of a data set, or the labels of a file. */
static bool is_data_known(const kith_card *const card[2]) {
    for (size_t i = 0; i < N_FACTS; i++) {
        const char *said[2];
        if (strcmp(facts[i].what, "data") != 0 && strcmp(facts[i].what, "labels") != 0) continue;
        say(card, &facts[i], said);
        if (said[0] && said[1]) return true;
    }
    return false;
}

static bool is_clustered(const kith_card_comparison *c) {
    for (int64_t i = 0; i < c->n_rows; i++) {
        const kith_card_row *row = &c->row[i];
        if (strcmp(row->name, kith_score_title(KITH_SCORE_NMI)) == 0)
            return row->side[0].has_value && row->side[1].has_value;
    }
    return false;
}

static kith_status add_differences(kith_card_comparison *c, const kith_card *const card[2], kith_error *err) {
    size_t capacity = 0;
    const bool matters[] = {[ALWAYS] = true,
                            [UNLESS_DATA_KNOWN] = !is_data_known(card),
                            [IF_CLUSTERED] = is_clustered(c),
                            [NEVER] = false};
    for (size_t i = 0; i < N_FACTS; i++) {
        const char *said[2];
        say(card, &facts[i], said);
        const bool is_known = said[0] && said[1];
        if (is_known ? strcmp(said[0], said[1]) == 0 : !matters[facts[i].silence]) continue;
        KI_TRY(ki_grow(&c->difference, &capacity, (size_t)c->n_differences + 1, sizeof *c->difference,
                       "a comparison", err));
        c->difference[c->n_differences++] = (kith_card_difference){facts[i].what, {said[0], said[1]}};
    }
    return KITH_OK;
}

static kith_status check_scores(const kith_card_comparison *c, const kith_card *const card[2],
                                kith_error *err) {
    for (int i = 0; i < 2; i++) {
        bool has_any = false;
        for (int64_t row = 0; row < c->n_rows; row++) has_any |= c->row[row].side[i].has_value;
        if (!has_any)
            return ki_fail(err, KITH_EFORMAT, "%s has no scores; wanted " KI_CARD_WANTED,
                           ki_card_path(card[i]));
    }
    return KITH_OK;
}

kith_status kith_card_compare(const kith_card *a, const kith_card *b, kith_card_comparison *ret,
                              kith_error *err) {
    KI_NEED(err, a, b, ret);
    const kith_card *const both[2] = {a, b};
    kith_card_comparison c = {0};
    kith_status status = add_rows(&c, both, err);
    if (status == KITH_OK) status = check_scores(&c, both, err);
    if (status == KITH_OK) status = add_differences(&c, both, err);
    if (status == KITH_OK)
        *ret = c;
    else
        kith_card_comparison_release(&c);
    return status;
}

void kith_card_comparison_release(kith_card_comparison *c) {
    if (!c) return;
    ki_free(c->row);
    ki_free(c->difference);
    *c = (kith_card_comparison){0};
}
