/* Two result cards side by side, and what speaks against comparing them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/text.h"
#include "judge/card.h"
#include "judge/paired.h"

enum { MOST_RUNS = 128 };

/* A score and its interval: a number, or what folds and seeds have, {"mean": …, "low": …, "high": …}. */
static bool score_in(const kith_card *card, const char *block, const char *path, struct kith_card_side *ret) {
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

/* The mean over the runs that the card is about. */
static bool score_at(const kith_card *card, const char *block, const char *path, struct kith_card_side *ret) {
    const int64_t n = ki_card_n_runs(card);
    double values[MOST_RUNS];
    if (n == 1 || n > MOST_RUNS) return score_in(ki_card_run(card, 0), block, path, ret);
    for (int64_t i = 0; i < n; i++) {
        struct kith_card_side one;
        values[i] = score_in(ki_card_run(card, i), block, path, &one) ? one.value : NAN;
    }
    const kith_estimate mean = ki_estimate_mean(values, (int)n);
    *ret = (struct kith_card_side){.has_value = !isnan(mean.mean),
                                   .has_interval = !isnan(mean.low),
                                   .value = mean.mean,
                                   .interval = {mean.low, mean.high}};
    return ret->has_value;
}

/* Where a card has the block that counts: at its root, or the test classes of a run, else validation; as kith reproduce keeps
 * it, below "result". */
static const char *block_of(const kith_card *card) {
    static const char *const blocks[] = {"test.", "validation.", "result.test.", "result.validation."};
    struct kith_card_side ignored;
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        if (score_in(card, blocks[i], "map_at_r", &ignored)) return blocks[i];
    }
    return "";
}

/* block NULL: the one that counts. */
static kith_status add_row_of(kith_card_comparison *c, size_t *capacity, const kith_card *const card[2],
                              const char *name, const char *block, const char *path, kith_error *err) {
    kith_card_row row = {.difference = {NAN, NAN}};
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

/* ---- query by query ---- */

/* What the queries of each run of both sides came to. */
typedef struct pairing {
    ki_per_query *run[2];
    int64_t n_runs[2];
} pairing;

static kith_status read_queries(const kith_card *const card[2], pairing *ret, kith_error *err) {
    for (int side = 0; side < 2; side++) {
        const int64_t n = ki_card_n_runs(card[side]);
        KI_TRY(ki_zalloc_or(&ret->run[side], (size_t)n, sizeof *ret->run[side], "outcomes of queries", err));
        ret->n_runs[side] = n;
        for (int64_t i = 0; i < n; i++) {
            const kith_card *run = ki_card_run(card[side], i);
            KI_TRY(ki_card_queries(run, block_of(run), &ret->run[side][i], err));
        }
    }
    return KITH_OK;
}

/* The hash of the data that a run was judged on, where it says so. */
static const char *judged_data(const kith_card *run) {
    return is_run(run) ? value_of(run, "data_sha256") : kith_card_fact(run, "data_sha256");
}

/* Of the same queries as the first run: as many, of the same classes in the same order and, where both say it, of the
 * same data. */
static kith_status check_same(const kith_card *first, const ki_per_query *q, const kith_card *other,
                              const ki_per_query *p, kith_error *err) {
    const char *data[2] = {judged_data(first), judged_data(other)};
    if (strcmp(q->sha256, p->sha256) == 0 && (!data[0] || !data[1] || strcmp(data[0], data[1]) == 0))
        return KITH_OK;
    ki_fail(err, KITH_EINVAL, "not the same queries: %s has %lld (data %.12s), %s %lld (data %.12s)",
            ki_card_path(first), (long long)q->n, data[0] ? data[0] : "unknown", ki_card_path(other),
            (long long)p->n, data[1] ? data[1] : "unknown");
    return ki_hint(err, KITH_EINVAL, "judge both on the same data, as in kith eval MODEL --data DIR --json");
}

/* *ret_is_paired false: some run does not say what its queries came to, and c->why names it. */
static kith_status match(const kith_card *const card[2], const pairing *p, kith_card_comparison *c,
                         bool *ret_is_paired, kith_error *err) {
    const kith_card *first = ki_card_run(card[0], 0);
    *ret_is_paired = false;
    for (int side = 0; side < 2; side++) {
        for (int64_t i = 0; i < p->n_runs[side]; i++) {
            const kith_card *run = ki_card_run(card[side], i);
            if (p->run[side][i].n == 0) {
                ki_snprintf(
                    c->why, sizeof c->why,
                    "%.150s does not say what every query came to (per_query): kith eval MODEL --data DIR "
                    "--json makes a result that does",
                    ki_card_path(run));
                return KITH_OK;
            }
            KI_TRY(check_same(first, p->run[0], run, &p->run[side][i], err));
        }
    }
    *ret_is_paired = true;
    return KITH_OK;
}

/* Which score of a query is the row's: a K, 0 for MAP@R; -1: none, or some run does not have it. */
static int64_t score_of(const kith_card_row *row, const pairing *p) {
    int64_t k = -1;
    if (strncmp(row->name, "R@", 2) == 0) {
        if (!ki_parse_int64(row->name + 2, &k)) return -1;
    } else if (strcmp(row->name, kith_score_title(KITH_SCORE_PRECISION_AT_1)) == 0) {
        k = 1;
    } else if (strcmp(row->name, kith_score_title(KITH_SCORE_MAP_AT_R)) == 0) {
        k = 0;
    }
    if (!row->side[0].has_value || !row->side[1].has_value) return -1;
    for (int side = 0; side < 2 && k >= 0; side++) {
        for (int64_t i = 0; i < p->n_runs[side]; i++)
            if (!ki_per_query_has(&p->run[side][i], k)) return -1;
    }
    return k;
}

static kith_status add_intervals(kith_card_comparison *c, const pairing *p, kith_error *err) {
    enum { MOST = KITH_MOST_K + 2 };
    KITH_OPTIONS(kith_bootstrap_options, bootstrap);
    int64_t score[MOST], row_of[MOST], n = 0;
    kith_interval found[MOST];
    for (int64_t i = 0; i < c->n_rows && n < MOST; i++) {
        score[n] = score_of(&c->row[i], p);
        row_of[n] = i;
        n += score[n] >= 0;
    }
    const ki_paired_input in = {.run = {p->run[0], p->run[1]},
                                .n_runs = {p->n_runs[0], p->n_runs[1]},
                                .score = score,
                                .n_scores = n,
                                .n_draws = bootstrap.n_draws};
    if (n == 0) return KITH_OK;
    KI_TRY(ki_paired_bootstrap(&in, found, err));
    for (int64_t i = 0; i < n; i++) {
        c->row[row_of[i]].is_paired = true;
        c->row[row_of[i]].difference = found[i];
    }
    c->n_draws = in.n_draws;
    c->n_queries = p->run[0]->n;
    return KITH_OK;
}

static kith_status pair(kith_card_comparison *c, const kith_card *const card[2], kith_error *err) {
    kith_status status;
    pairing p = {0};
    bool is_paired = false;
    KI_CHECK(read_queries(card, &p, err));
    KI_CHECK(match(card, &p, c, &is_paired, err));
    for (int side = 0; side < 2; side++) c->n_runs[side] = p.n_runs[side];
    if (is_paired) KI_CHECK(add_intervals(c, &p, err));
done:
    for (int side = 0; side < 2; side++) {
        for (int64_t i = 0; i < p.n_runs[side]; i++) ki_per_query_release(&p.run[side][i]);
        ki_free(p.run[side]);
    }
    return status;
}

kith_status kith_card_compare(const kith_card *a, const kith_card *b, kith_card_comparison *ret,
                              kith_error *err) {
    KI_NEED(err, a, b, ret);
    const kith_card *const both[2] = {a, b};
    kith_card_comparison c = {0};
    kith_status status = add_rows(&c, both, err);
    if (status == KITH_OK) status = check_scores(&c, both, err);
    if (status == KITH_OK) status = pair(&c, both, err);
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
