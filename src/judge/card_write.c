/* The writer of result cards: one list of names for kith eval, for runs and for several runs together. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "judge/card.h"
#include "judge/per_query.h"
#include "kith/version.h"

/* ---- values ---- */

ki_card_entry ki_entry_text(const char *key, const char *text) {
    return (ki_card_entry){.key = key, .kind = KI_ENTRY_TEXT, .text = text};
}
ki_card_entry ki_entry_int(const char *key, int64_t value) {
    return (ki_card_entry){.key = key, .kind = KI_ENTRY_INT, .whole = value};
}
ki_card_entry ki_entry_real(const char *key, double value) {
    return (ki_card_entry){.key = key, .kind = KI_ENTRY_REAL, .real = value};
}
ki_card_entry ki_entry_bool(const char *key, bool value) {
    return (ki_card_entry){.key = key, .kind = KI_ENTRY_BOOL, .whole = value};
}

void ki_card_put_entry(kith_json *json, const ki_card_entry *e) {
    if (e->kind == KI_ENTRY_TEXT && !e->text) return;
    kith_json_key(json, e->key);
    switch (e->kind) {
    case KI_ENTRY_TEXT: kith_json_string(json, e->text); break;
    case KI_ENTRY_INT: kith_json_int(json, e->whole); break;
    case KI_ENTRY_REAL: kith_json_real(json, e->real); break;
    case KI_ENTRY_BOOL: kith_json_bool(json, e->whole != 0); break;
    case KI_ENTRY_NULL: kith_json_null(json); break;
    }
}

static void put_text(kith_json *json, const char *key, const char *value) {
    const ki_card_entry e = ki_entry_text(key, value);
    ki_card_put_entry(json, &e);
}

static void put_int(kith_json *json, const char *key, int64_t value) {
    const ki_card_entry e = ki_entry_int(key, value);
    ki_card_put_entry(json, &e);
}

static void put_real(kith_json *json, const char *key, double value) {
    const ki_card_entry e = ki_entry_real(key, value);
    ki_card_put_entry(json, &e);
}

static void put_count(kith_json *json, const char *key, int64_t count) {
    if (count >= 0) put_int(json, key, count);
}

static void begin(kith_json *json, const char *key) {
    kith_json_key(json, key);
    kith_json_object_begin(json);
}

static void put_interval(kith_json *json, const char *key, kith_interval v) {
    kith_json_key(json, key);
    kith_json_array_begin(json);
    kith_json_real(json, v.low);
    kith_json_real(json, v.high);
    kith_json_array_end(json);
}

static const char *k_text(int64_t k, char buf[24]) {
    ki_snprintf(buf, 24, "%lld", (long long)k);
    return buf;
}

/* A score of one run, or of several. */
static void put_score(kith_json *json, const char *key, double value, const kith_estimate *mean) {
    if (!mean) {
        put_real(json, key, value);
        return;
    }
    begin(json, key);
    put_real(json, "mean", mean->mean);
    put_real(json, "low", mean->low);
    put_real(json, "high", mean->high);
    kith_json_object_end(json);
}

/* ---- facts ---- */

/* Every fact, in the order they are written. */
#define TEXT(name) \
    { #name, offsetof(kith_card_facts, name), true }
#define COUNT(name) \
    { #name, offsetof(kith_card_facts, name), false }
static const struct {
    const char *name;
    size_t offset;
    bool is_text;
} facts_list[] = {TEXT(model),
                  TEXT(model_sha256),
                  TEXT(recipe),
                  TEXT(recipe_sha256),
                  TEXT(data),
                  TEXT(dataset),
                  TEXT(data_sha256),
                  TEXT(split),
                  TEXT(embedding),
                  TEXT(embedding_sha256),
                  TEXT(labels_sha256),
                  TEXT(backbone),
                  TEXT(weights),
                  TEXT(weights_sha256),
                  TEXT(pool),
                  TEXT(tap),
                  TEXT(bn),
                  TEXT(preprocessing),
                  TEXT(resize),
                  TEXT(device),
                  TEXT(precision),
                  COUNT(crop),
                  COUNT(embedding_size)};
#undef TEXT
#undef COUNT
enum { N_FACTS = sizeof facts_list / sizeof facts_list[0] };

void ki_card_put_facts(kith_json *json, const kith_card_facts *f) {
    put_text(json, "kith", kith_version());
    put_text(json, "commit", *kith_commit() ? kith_commit() : "unknown");
    for (size_t i = 0; i < N_FACTS; i++) {
        const char *const at = (const char *)f + facts_list[i].offset;
        const int64_t count = facts_list[i].is_text ? 0 : *(const int64_t *)(const void *)at;
        if (facts_list[i].is_text)
            put_text(json, facts_list[i].name, *(const char *const *)(const void *)at);
        else if (count)
            put_int(json, facts_list[i].name, count);
    }
}

/* What all of the cards say of it, or NULL. */
static const char *common_fact(kith_card *const *cards, int n, const char *name) {
    const char *text = kith_card_fact(cards[0], name);
    for (int i = 1; text && i < n; i++) {
        const char *other = kith_card_fact(cards[i], name);
        if (!other || strcmp(other, text) != 0) text = NULL;
    }
    return text;
}

kith_card_facts ki_card_common_facts(kith_card *const *cards, int n) {
    kith_card_facts facts = {0};
    for (size_t i = 0; i < N_FACTS; i++) {
        const char *text = common_fact(cards, n, facts_list[i].name);
        char *const at = (char *)&facts + facts_list[i].offset;
        if (facts_list[i].is_text)
            memcpy(at, &text, sizeof text);
        else if (text)
            ki_parse_int64(text, (int64_t *)(void *)at);
    }
    return facts;
}

/* ---- a block ---- */

static const char *name_of(kith_score score) { return kith_score_name(score); }

static void put_variant(kith_json *json, const ki_card_variant *v) {
    put_text(json, "name", v->name);
    if (v->dim[0] > 0 && v->dim[1] > 0) {
        kith_json_key(json, "dim");
        kith_json_array_begin(json);
        for (int i = 0; i < 2; i++) kith_json_int(json, v->dim[i]);
        kith_json_array_end(json);
    }
    put_text(json, "transform", v->transform);
    put_text(json, "fitted_on", v->fitted_on);
}

static const kith_estimate *mean_of(const ki_card_means *m, kith_score score) {
    if (!m) return NULL;
    return score == KITH_SCORE_MAP_AT_R      ? &m->map_at_r
           : score == KITH_SCORE_R_PRECISION ? &m->r_precision
                                             : NULL;
}

/* Those of retrieval, of the block or of some of its queries. */
static void put_scores(kith_json *json, const ki_card_block *b, const kith_scores *s,
                       const ki_card_means *means) {
    char buf[24];
    if (b->wanted[KITH_SCORE_RECALL]) {
        begin(json, name_of(KITH_SCORE_RECALL));
        for (int64_t i = 0; i < b->n_k; i++)
            put_score(json, k_text(b->k[i], buf), s->recall[i], means ? &means->recall[i] : NULL);
        kith_json_object_end(json);
    }
    for (kith_score m = KITH_SCORE_PRECISION_AT_1; m < KITH_SCORE_NMI; m++)
        if (b->wanted[m]) put_score(json, name_of(m), kith_score_value(s, m), mean_of(means, m));
}

static void begin_intervals(kith_json *json, const kith_bootstrap_settings *how) {
    begin(json, "intervals");
    put_real(json, "level", how->level);
    put_int(json, "draws", how->n_draws);
    put_text(json, "unit", how->by_class ? "class" : "query");
}

static void put_intervals(kith_json *json, const ki_card_block *b) {
    char buf[24];
    begin_intervals(json, &b->bootstrap);
    if (b->wanted[KITH_SCORE_RECALL]) {
        begin(json, name_of(KITH_SCORE_RECALL));
        for (int64_t i = 0; i < b->n_k; i++)
            put_interval(json, k_text(b->k[i], buf), b->intervals->recall[i]);
        kith_json_object_end(json);
    }
    for (kith_score m = KITH_SCORE_PRECISION_AT_1; m < KITH_SCORE_NMI; m++)
        if (b->wanted[m]) put_interval(json, name_of(m), kith_score_interval(b->intervals, m));
    kith_json_object_end(json);
}

static void put_classes(kith_json *json, const ki_card_block *b, const kith_retrieval *r) {
    kith_json_key(json, "per_class");
    kith_json_array_begin(json);
    for (int64_t c = 0; c < r->n_classes; c++) {
        const kith_class_scores *p = r->per_class + c;
        kith_json_object_begin(json);
        put_int(json, "label", p->label);
        put_int(json, "queries", p->n_query);
        put_int(json, "lone_queries", p->n_lone);
        put_int(json, "gallery", p->n_gallery);
        put_scores(json, b, &p->mean, NULL);
        kith_json_object_end(json);
    }
    kith_json_array_end(json);
}

static void put_retrieval(kith_json *json, const ki_card_block *b) {
    put_scores(json, b, &b->scores, b->means);
    put_text(json, "metric", kith_metric_name(b->metric));
    put_count(json, "queries", b->n_query);
    put_count(json, "gallery", b->n_gallery);
    put_count(json, "classes", b->n_classes);
    put_count(json, "lone_queries", b->n_lone);
    put_count(json, "tied_queries", b->n_tied);
    put_count(json, "zero_rows", b->n_zero);
    put_count(json, "step", b->step);
    put_text(json, "data_sha256", b->data_sha256);
    put_text(json, "note", b->note);
    if (b->judgement) {
        begin(json, "class_mean");
        put_scores(json, b, &b->judgement->retrieval.class_mean, NULL);
        kith_json_object_end(json);
    }
    if (b->intervals) put_intervals(json, b);
    if (b->judgement && b->per_class) put_classes(json, b, &b->judgement->retrieval);
    if (b->per_query && b->per_query->n > 0) ki_per_query_put(json, b->per_query);
}

static void put_clustering(kith_json *json, const ki_card_block *b) {
    const kith_clustering *c = &b->clustered->scores;
    const kith_kmeans_settings *how = &b->clustered->settings;
    const ki_card_means *m = b->means;
    if (b->wanted[KITH_SCORE_NMI]) put_score(json, name_of(KITH_SCORE_NMI), c->nmi, m ? &m->nmi : NULL);
    if (b->wanted[KITH_SCORE_NMI] && b->judgement) put_real(json, "nmi_geometric", c->nmi_geometric);
    if (b->wanted[KITH_SCORE_AMI]) put_score(json, name_of(KITH_SCORE_AMI), c->ami, m ? &m->ami : NULL);
    if (b->wanted[KITH_SCORE_F1]) put_score(json, name_of(KITH_SCORE_F1), c->f1, m ? &m->f1 : NULL);
    begin(json, "kmeans");
    put_int(json, "clusters", how->n_clusters);
    put_text(json, "start", how->is_random_start ? "random rows" : "k-means++");
    put_int(json, "restarts", how->n_restarts);
    put_int(json, "iterations", how->n_iterations);
    put_int(json, "seed", (int64_t)how->seed);
    kith_json_key(json, "normalized");
    kith_json_bool(json, how->normalize);
    if (b->judgement) put_real(json, "objective", b->judgement->kmeans_objective);
    kith_json_object_end(json);
}

static void put_verification(kith_json *json, const kith_verification *v) {
    begin(json, "verification");
    put_real(json, "auc", v->auc);
    put_real(json, "eer", v->eer);
    put_real(json, "eer_threshold", v->eer_threshold);
    kith_json_key(json, "tar_at_far");
    kith_json_array_begin(json);
    for (int i = 0; i < KITH_N_FAR; i++) {
        const kith_accept_rate *at = &v->at[i];
        kith_json_object_begin(json);
        put_real(json, "far", at->far_wanted);
        put_real(json, "tar", at->tar);
        if (v->has_intervals) put_interval(json, "interval", at->interval);
        if (isfinite(at->threshold)) put_real(json, "threshold", at->threshold);
        put_int(json, "false_accepts", at->n_false);
        kith_json_object_end(json);
    }
    kith_json_array_end(json);
    put_text(json, "metric", kith_metric_name(v->metric));
    put_int(json, "same_pairs", v->n_same);
    put_int(json, "different_pairs", v->n_different);
    put_int(json, "classes", v->n_classes);
    if (v->has_intervals) {
        begin_intervals(json, &v->bootstrap);
        put_interval(json, "auc", v->auc_interval);
        put_interval(json, "eer", v->eer_interval);
        kith_json_object_end(json);
    }
    kith_json_object_end(json);
}

static void put_side(kith_json *json, const char *key, const kith_judgement *j, const kith_scores *s) {
    static const bool wanted[KITH_N_SCORES] = {
        [KITH_SCORE_RECALL] = true, [KITH_SCORE_PRECISION_AT_1] = true, [KITH_SCORE_MAP_AT_R] = true};
    const ki_card_block both = {.wanted = wanted, .k = j->retrieval.k, .n_k = j->retrieval.n_k};
    begin(json, key);
    put_scores(json, &both, s, NULL);
    kith_json_object_end(json);
}

static void put_rerank(kith_json *json, const kith_judgement *j) {
    const kith_reranking *r = &j->rerank;
    begin(json, "rerank");
    if (r->method == KITH_RERANK_EXPANSION) {
        put_text(json, "method", "qe");
        put_int(json, "k", r->k);
        put_real(json, "alpha", r->alpha);
    } else {
        put_text(json, "method", "kr");
        put_int(json, "k1", r->k1);
        put_int(json, "k2", r->k2);
        put_real(json, "lambda", r->lambda);
        put_int(json, "candidates", r->n_candidates);
    }
    put_side(json, "before", j, &r->before);
    put_side(json, "after", j, &r->after);
    put_real(json, "seconds", r->seconds);
    kith_json_object_end(json);
}

void ki_card_put_block(kith_json *json, const ki_card_block *b) {
    const kith_judgement *j = b->judgement;
    if (b->variant) put_variant(json, b->variant);
    if (b->is_there) put_retrieval(json, b);
    if (b->clustered && b->clustered->is_there) put_clustering(json, b);
    if (j && j->has_rerank) put_rerank(json, j);
    if (j && j->has_verification) put_verification(json, &j->verification);
}

ki_card_block ki_card_block_of(const char *key, const ki_scores *s, const int64_t *k, int64_t n_k) {
    static const bool kept[KITH_N_SCORES] = {
        [KITH_SCORE_RECALL] = true, [KITH_SCORE_MAP_AT_R] = true, [KITH_SCORE_R_PRECISION] = true,
        [KITH_SCORE_NMI] = true,    [KITH_SCORE_AMI] = true,      [KITH_SCORE_F1] = true};
    KITH_OPTIONS(kith_bootstrap_options, bootstrap);
    ki_card_block b = {.key = key,
                       .is_there = s->is_there,
                       .wanted = kept,
                       .scores = {.map_at_r = s->map_at_r, .r_precision = s->r_precision},
                       .k = k,
                       .n_k = n_k,
                       .metric = KITH_COSINE,
                       .n_query = s->n_query,
                       .n_gallery = -1,
                       .n_classes = s->n_classes,
                       .n_lone = s->n_lone,
                       .n_tied = -1,
                       .n_zero = -1,
                       .step = s->step,
                       .bootstrap = {.n_draws = bootstrap.n_draws, .level = bootstrap.level}};
    memcpy(b.scores.recall, s->recall, sizeof b.scores.recall);
    return b;
}

/* ---- error rates ---- */

/* Thresholds for round false-match rates, as far as the pairs tell them. */
static void put_error_rates(kith_json *json, const kith_calibration *c) {
    static const double rates[] = {1e-1, 1e-2, 1e-3, 1e-4};
    begin(json, "error_rates");
    put_text(json, "source", c->source);
    put_text(json, "metric", kith_metric_name(c->metric));
    put_int(json, "classes", c->n_classes);
    put_int(json, "same_pairs", c->n_same);
    put_int(json, "different_pairs", c->n_different);
    kith_json_key(json, "at");
    kith_json_array_begin(json);
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        const double threshold = kith_calibration_threshold(c, rates[i]);
        if (!isfinite(threshold)) continue;
        kith_json_object_begin(json);
        put_real(json, "false_match_rate", rates[i]);
        put_real(json, "threshold", threshold);
        put_real(json, "match_rate", kith_calibration_match_rate(c, threshold));
        kith_json_object_end(json);
    }
    kith_json_array_end(json);
    kith_json_object_end(json);
}

/* ---- a card ---- */

void ki_card_put(kith_json *json, const ki_card_content *c) {
    bool has_variants = false;
    for (size_t i = 0; i < c->n_first; i++) ki_card_put_entry(json, &c->first[i]);
    for (size_t i = 0; i < c->n_blocks; i++) {
        if (!c->block[i].is_there) continue;
        begin(json, c->block[i].key);
        ki_card_put_block(json, &c->block[i]);
        kith_json_object_end(json);
    }
    for (size_t i = 0; i < c->n_variants; i++) {
        if (!c->variant[i].is_there) continue;
        if (!has_variants) {
            kith_json_key(json, "variants");
            kith_json_array_begin(json);
        }
        has_variants = true;
        kith_json_object_begin(json);
        ki_card_put_block(json, &c->variant[i]);
        kith_json_object_end(json);
    }
    if (has_variants) kith_json_array_end(json);
    if (c->calibration && c->calibration->n > 0) put_error_rates(json, c->calibration);
    for (size_t i = 0; i < c->n_last; i++) ki_card_put_entry(json, &c->last[i]);
    if (c->facts) ki_card_put_facts(json, c->facts);
}
