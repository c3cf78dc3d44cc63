/* Writing result cards: one list of names for kith eval and for runs. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/text.h"
#include "judge/card.h"
#include "judge/per_query.h"
#include "kith/version.h"

static const struct {
    const char *name, *title;
} names[KITH_N_SCORES] = {{"recall", "R@K"},     {"precision_at_1", "P@1"},
                          {"map_at_r", "MAP@R"}, {"r_precision", "R-precision"},
                          {"map", "MAP"},        {"mrr", "MRR"},
                          {"nmi", "NMI"},        {"ami", "AMI"},
                          {"f1", "F1"}};

const char *kith_score_name(kith_score score) {
    return (unsigned)score < KITH_N_SCORES ? names[score].name : NULL;
}

const char *kith_score_title(kith_score score) {
    return (unsigned)score < KITH_N_SCORES ? names[score].title : NULL;
}

double kith_score_value(const kith_scores *s, kith_score score) {
    if (!s) return NAN;
    switch (score) {
    case KITH_SCORE_PRECISION_AT_1: return s->precision_at_1;
    case KITH_SCORE_MAP_AT_R: return s->map_at_r;
    case KITH_SCORE_R_PRECISION: return s->r_precision;
    case KITH_SCORE_MAP: return s->map;
    case KITH_SCORE_MRR: return s->mrr;
    default: return NAN;
    }
}

kith_interval kith_score_interval(const kith_intervals *v, kith_score score) {
    if (!v) return (kith_interval){NAN, NAN};
    switch (score) {
    case KITH_SCORE_PRECISION_AT_1: return v->precision_at_1;
    case KITH_SCORE_MAP_AT_R: return v->map_at_r;
    case KITH_SCORE_R_PRECISION: return v->r_precision;
    case KITH_SCORE_MAP: return v->map;
    case KITH_SCORE_MRR: return v->mrr;
    default: return (kith_interval){NAN, NAN};
    }
}

/* ---- values ---- */

void ki_card_put_text(kith_json *json, const char *key, const char *value) {
    if (!value) return;
    kith_json_key(json, key);
    kith_json_string(json, value);
}

void ki_card_put_int(kith_json *json, const char *key, int64_t value) {
    kith_json_key(json, key);
    kith_json_int(json, value);
}

void ki_card_put_real(kith_json *json, const char *key, double value) {
    kith_json_key(json, key);
    kith_json_real(json, value);
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

static void put_recall(kith_json *json, const int64_t *k, int64_t n_k, const double *recall) {
    char buf[24];
    begin(json, names[KITH_SCORE_RECALL].name);
    for (int64_t i = 0; i < n_k; i++) ki_card_put_real(json, k_text(k[i], buf), recall[i]);
    kith_json_object_end(json);
}

static void put_recall_intervals(kith_json *json, const int64_t *k, int64_t n_k, const kith_intervals *v) {
    char buf[24];
    begin(json, names[KITH_SCORE_RECALL].name);
    for (int64_t i = 0; i < n_k; i++) put_interval(json, k_text(k[i], buf), v->recall[i]);
    kith_json_object_end(json);
}

/* Opens the object of intervals. */
static void begin_intervals(kith_json *json, const kith_bootstrap_settings *how) {
    begin(json, "intervals");
    ki_card_put_real(json, "level", how->level);
    ki_card_put_int(json, "draws", how->n_draws);
    ki_card_put_text(json, "unit", how->by_class ? "class" : "query");
}

/* Opens the object that says how k-means was done. */
static void begin_kmeans(kith_json *json, const kith_kmeans_settings *how) {
    begin(json, "kmeans");
    ki_card_put_int(json, "clusters", how->n_clusters);
    ki_card_put_text(json, "start", how->is_random_start ? "random rows" : "k-means++");
    ki_card_put_int(json, "restarts", how->n_restarts);
    ki_card_put_int(json, "iterations", how->n_iterations);
    ki_card_put_int(json, "seed", (int64_t)how->seed);
    kith_json_key(json, "normalized");
    kith_json_bool(json, how->normalize);
}

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
    ki_card_put_text(json, "kith", kith_version());
    ki_card_put_text(json, "commit", *kith_commit() ? kith_commit() : "unknown");
    for (size_t i = 0; i < N_FACTS; i++) {
        const char *const at = (const char *)f + facts_list[i].offset;
        const int64_t count = facts_list[i].is_text ? 0 : *(const int64_t *)(const void *)at;
        if (facts_list[i].is_text)
            ki_card_put_text(json, facts_list[i].name, *(const char *const *)(const void *)at);
        else if (count)
            ki_card_put_int(json, facts_list[i].name, count);
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

/* ---- a judgement ---- */

static void put_scores(kith_json *json, const kith_judgement *j, const kith_card_options *o,
                       const kith_scores *s) {
    if (o->scores[KITH_SCORE_RECALL]) put_recall(json, j->retrieval.k, j->retrieval.n_k, s->recall);
    for (int m = KITH_SCORE_PRECISION_AT_1; m < KITH_SCORE_NMI; m++)
        if (o->scores[m]) ki_card_put_real(json, names[m].name, kith_score_value(s, (kith_score)m));
}

static void put_intervals(kith_json *json, const kith_judgement *j, const kith_card_options *o) {
    begin_intervals(json, &j->bootstrap);
    if (o->scores[KITH_SCORE_RECALL])
        put_recall_intervals(json, j->retrieval.k, j->retrieval.n_k, &j->intervals);
    for (int m = KITH_SCORE_PRECISION_AT_1; m < KITH_SCORE_NMI; m++)
        if (o->scores[m])
            put_interval(json, names[m].name, kith_score_interval(&j->intervals, (kith_score)m));
    kith_json_object_end(json);
}

static void put_classes(kith_json *json, const kith_judgement *j, const kith_card_options *o) {
    kith_json_key(json, "per_class");
    kith_json_array_begin(json);
    for (int64_t c = 0; c < j->retrieval.n_classes; c++) {
        const kith_class_scores *p = j->retrieval.per_class + c;
        kith_json_object_begin(json);
        ki_card_put_int(json, "label", p->label);
        ki_card_put_int(json, "queries", p->n_query);
        ki_card_put_int(json, "lone_queries", p->n_lone);
        ki_card_put_int(json, "gallery", p->n_gallery);
        put_scores(json, j, o, &p->mean);
        kith_json_object_end(json);
    }
    kith_json_array_end(json);
}

static void put_retrieval(kith_json *json, const kith_judgement *j, const kith_card_options *o) {
    const kith_retrieval *v = &j->retrieval;
    put_scores(json, j, o, &v->mean);
    ki_card_put_text(json, "metric", kith_metric_name(j->metric));
    ki_card_put_int(json, "queries", v->n_query);
    ki_card_put_int(json, "gallery", v->n_gallery);
    ki_card_put_int(json, "classes", v->n_classes);
    ki_card_put_int(json, "lone_queries", v->n_lone);
    ki_card_put_int(json, "tied_queries", v->n_tied);
    ki_card_put_int(json, "zero_rows", v->n_zero_rows);
    begin(json, "class_mean");
    put_scores(json, j, o, &v->class_mean);
    kith_json_object_end(json);
    if (j->has_intervals) put_intervals(json, j, o);
    if (o->per_class) put_classes(json, j, o);
}

static kith_status put_queries(kith_json *json, const kith_retrieval *r, kith_error *err) {
    ki_per_query queries = {0};
    KI_TRY(ki_per_query_pack(r, &queries, err));
    ki_per_query_put(json, &queries);
    ki_per_query_release(&queries);
    return KITH_OK;
}

static void put_clustering(kith_json *json, const kith_judgement *j, const kith_card_options *o) {
    const kith_clustering *c = &j->clustering;
    if (o->scores[KITH_SCORE_NMI]) {
        ki_card_put_real(json, "nmi", c->nmi);
        ki_card_put_real(json, "nmi_geometric", c->nmi_geometric);
    }
    if (o->scores[KITH_SCORE_AMI]) ki_card_put_real(json, "ami", c->ami);
    if (o->scores[KITH_SCORE_F1]) ki_card_put_real(json, "f1", c->f1);
    begin_kmeans(json, &j->kmeans);
    ki_card_put_real(json, "objective", j->kmeans_objective);
    kith_json_object_end(json);
}

static void put_verification(kith_json *json, const kith_verification *v) {
    begin(json, "verification");
    ki_card_put_real(json, "auc", v->auc);
    ki_card_put_real(json, "eer", v->eer);
    ki_card_put_real(json, "eer_threshold", v->eer_threshold);
    kith_json_key(json, "tar_at_far");
    kith_json_array_begin(json);
    for (int i = 0; i < KITH_N_FAR; i++) {
        const kith_accept_rate *at = &v->at[i];
        kith_json_object_begin(json);
        ki_card_put_real(json, "far", at->far_wanted);
        ki_card_put_real(json, "tar", at->tar);
        if (v->has_intervals) put_interval(json, "interval", at->interval);
        if (isfinite(at->threshold)) ki_card_put_real(json, "threshold", at->threshold);
        ki_card_put_int(json, "false_accepts", at->n_false);
        kith_json_object_end(json);
    }
    kith_json_array_end(json);
    ki_card_put_text(json, "metric", kith_metric_name(v->metric));
    ki_card_put_int(json, "same_pairs", v->n_same);
    ki_card_put_int(json, "different_pairs", v->n_different);
    ki_card_put_int(json, "classes", v->n_classes);
    if (v->has_intervals) {
        begin_intervals(json, &v->bootstrap);
        put_interval(json, "auc", v->auc_interval);
        put_interval(json, "eer", v->eer_interval);
        kith_json_object_end(json);
    }
    kith_json_object_end(json);
}

static void put_side(kith_json *json, const char *key, const kith_judgement *j, const kith_scores *s) {
    begin(json, key);
    put_recall(json, j->retrieval.k, j->retrieval.n_k, s->recall);
    ki_card_put_real(json, names[KITH_SCORE_PRECISION_AT_1].name, s->precision_at_1);
    ki_card_put_real(json, names[KITH_SCORE_MAP_AT_R].name, s->map_at_r);
    kith_json_object_end(json);
}

static void put_rerank(kith_json *json, const kith_judgement *j) {
    const kith_reranking *r = &j->rerank;
    begin(json, "rerank");
    if (r->method == KITH_RERANK_EXPANSION) {
        ki_card_put_text(json, "method", "qe");
        ki_card_put_int(json, "k", r->k);
        ki_card_put_real(json, "alpha", r->alpha);
    } else {
        ki_card_put_text(json, "method", "kr");
        ki_card_put_int(json, "k1", r->k1);
        ki_card_put_int(json, "k2", r->k2);
        ki_card_put_real(json, "lambda", r->lambda);
        ki_card_put_int(json, "candidates", r->n_candidates);
    }
    put_side(json, "before", j, &r->before);
    put_side(json, "after", j, &r->after);
    ki_card_put_real(json, "seconds", r->seconds);
    kith_json_object_end(json);
}

KI_OPTIONS_INIT(kith_card_facts, 0)
KI_OPTIONS_INIT(kith_card_options, .scores = {true, true, true, true, true, true, true, true, true},
                .per_query = true)
_Static_assert(KITH_N_SCORES == 9, "a score is missing above");

kith_status kith_card_make(const kith_judgement *j, const kith_card_facts *facts,
                           const kith_card_options *options, char **ret_text, kith_error *err) {
    KI_NEED(err, j, ret_text);
    kith_json *json = NULL;
    const char *line = NULL;
    KI_OPTIONS_TAKE(kith_card_facts, f, facts, err);
    KI_OPTIONS_TAKE(kith_card_options, o, options, err);
    KI_TRY(kith_json_new(&json, err));
    kith_json_object_begin(json);
    if (j->has_retrieval) put_retrieval(json, j, &o);
    kith_status status = j->has_retrieval && o.per_query ? put_queries(json, &j->retrieval, err) : KITH_OK;
    if (j->has_clustering) put_clustering(json, j, &o);
    if (j->has_rerank) put_rerank(json, j);
    if (j->has_verification) put_verification(json, &j->verification);
    ki_card_put_real(json, "seconds", j->seconds);
    if (f.embed_seconds > 0) ki_card_put_real(json, "embed_seconds", f.embed_seconds);
    if (j->has_retrieval) ki_card_put_real(json, "rank_seconds", j->rank_seconds);
    if (j->has_clustering) ki_card_put_real(json, "cluster_seconds", j->cluster_seconds);
    if (j->has_verification) ki_card_put_real(json, "verify_seconds", j->verify_seconds);
    begin(json, "card");
    ki_card_put_facts(json, &f);
    kith_json_object_end(json);
    kith_json_object_end(json);
    if (status == KITH_OK) status = kith_json_finish(json, &line, err);
    char *text = status == KITH_OK ? ki_strdup(line) : NULL;
    if (status == KITH_OK && !text) status = ki_fail_memory(err, 1, "a result card");
    if (status == KITH_OK) *ret_text = text;
    kith_json_free(json);
    return status;
}

/* ---- what training kept ---- */

static void put_orders(kith_json *json, const ki_orders *orders) {
    char buf[24];
    begin(json, "order_recall_at_1");
    for (int64_t i = 0; i < orders->alone.n; i++)
        ki_card_put_real(json, k_text(i + 1, buf), orders->alone.at_1[i]);
    kith_json_object_end(json);
    ki_card_put_real(json, "side_by_side_recall_at_1", orders->side_by_side);
}

/* A score of one run, or of several. */
static void put_score(kith_json *json, const char *key, double value, const kith_estimate *mean) {
    if (!mean) {
        ki_card_put_real(json, key, value);
        return;
    }
    begin(json, key);
    ki_card_put_real(json, "mean", mean->mean);
    ki_card_put_real(json, "low", mean->low);
    ki_card_put_real(json, "high", mean->high);
    kith_json_object_end(json);
}

static void put_count(kith_json *json, const char *key, int64_t count) {
    if (count >= 0) ki_card_put_int(json, key, count);
}

static void put_block_clustering(kith_json *json, const ki_clustered *c, const ki_card_means *m) {
    put_score(json, names[KITH_SCORE_NMI].name, c->scores.nmi, m ? &m->nmi : NULL);
    put_score(json, names[KITH_SCORE_AMI].name, c->scores.ami, m ? &m->ami : NULL);
    put_score(json, names[KITH_SCORE_F1].name, c->scores.f1, m ? &m->f1 : NULL);
    begin_kmeans(json, &c->settings);
    kith_json_object_end(json);
}

static void put_variant(kith_json *json, const ki_card_variant *v) {
    ki_card_put_text(json, "name", v->name);
    if (v->dim[0] > 0 && v->dim[1] > 0) {
        kith_json_key(json, "dim");
        kith_json_array_begin(json);
        for (int i = 0; i < 2; i++) kith_json_int(json, v->dim[i]);
        kith_json_array_end(json);
    }
    ki_card_put_text(json, "transform", v->transform);
    ki_card_put_text(json, "fitted_on", v->fitted_on);
}

void ki_card_put_block(kith_json *json, const char *key, const ki_card_block *b) {
    const ki_scores *s = b->scores;
    KITH_OPTIONS(kith_bootstrap_options, bootstrap);
    const ki_card_means *m = b->means;
    char buf[24];
    if (!s->is_there) return;
    if (key) kith_json_key(json, key);
    kith_json_object_begin(json);
    if (b->variant) put_variant(json, b->variant);
    begin(json, names[KITH_SCORE_RECALL].name);
    for (int64_t i = 0; i < b->n_k; i++)
        put_score(json, k_text(b->k[i], buf), s->recall[i], m ? &m->recall[i] : NULL);
    kith_json_object_end(json);
    put_score(json, names[KITH_SCORE_MAP_AT_R].name, s->map_at_r, m ? &m->map_at_r : NULL);
    put_score(json, names[KITH_SCORE_R_PRECISION].name, s->r_precision, m ? &m->r_precision : NULL);
    ki_card_put_text(json, "metric", kith_metric_name(KITH_COSINE));
    put_count(json, "queries", s->n_query);
    put_count(json, "classes", s->n_classes);
    put_count(json, "lone_queries", s->n_lone);
    put_count(json, "step", s->step);
    ki_card_put_text(json, "data_sha256", b->data_sha256);
    if (b->clustered && b->clustered->is_there) put_block_clustering(json, b->clustered, m);
    ki_card_put_text(json, "note", b->note);
    if (b->orders) put_orders(json, b->orders);
    if (b->intervals) {
        begin_intervals(json,
                        &(kith_bootstrap_settings){.n_draws = bootstrap.n_draws, .level = bootstrap.level});
        put_recall_intervals(json, b->k, b->n_k, b->intervals);
        put_interval(json, names[KITH_SCORE_MAP_AT_R].name, b->intervals->map_at_r);
        put_interval(json, names[KITH_SCORE_R_PRECISION].name, b->intervals->r_precision);
        kith_json_object_end(json);
    }
    if (b->per_query && b->per_query->n > 0) ki_per_query_put(json, b->per_query);
    kith_json_object_end(json);
}
