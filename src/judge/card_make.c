/* The card of a judgement, and the names of its scores. */
#include <math.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "judge/card.h"
#include "judge/per_query.h"

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

KI_OPTIONS_INIT(kith_card_facts, 0)
KI_OPTIONS_INIT(kith_card_options, .scores = {true, true, true, true, true, true, true, true, true},
                .per_query = true)
_Static_assert(KITH_N_SCORES == 9, "a score is missing above");

static ki_card_block block_of(const kith_judgement *j, const kith_card_options *o,
                              const ki_clustered *clustered, const ki_per_query *queries) {
    const kith_retrieval *r = &j->retrieval;
    return (ki_card_block){.is_there = j->has_retrieval,
                           .wanted = o->scores,
                           .scores = r->mean,
                           .k = r->k,
                           .n_k = r->n_k,
                           .metric = j->metric,
                           .n_query = r->n_query,
                           .n_gallery = r->n_gallery,
                           .n_classes = r->n_classes,
                           .n_lone = r->n_lone,
                           .n_tied = r->n_tied,
                           .n_zero = r->n_zero_rows,
                           .step = -1,
                           .intervals = j->has_intervals ? &j->intervals : NULL,
                           .bootstrap = j->bootstrap,
                           .clustered = clustered,
                           .per_query = queries,
                           .judgement = j,
                           .per_class = o->per_class};
}

/* What took how long, and what was judged. */
static void put_rest(kith_json *json, const kith_judgement *j, const kith_card_facts *f) {
    const struct {
        bool is_there;
        ki_card_entry entry;
    } rows[] = {{true, ki_entry_real("seconds", j->seconds)},
                {f->embed_seconds > 0, ki_entry_real("embed_seconds", f->embed_seconds)},
                {j->has_retrieval, ki_entry_real("rank_seconds", j->rank_seconds)},
                {j->has_clustering, ki_entry_real("cluster_seconds", j->cluster_seconds)},
                {j->has_verification, ki_entry_real("verify_seconds", j->verify_seconds)}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].is_there) ki_card_put_entry(json, &rows[i].entry);
    kith_json_key(json, "card");
    kith_json_object_begin(json);
    ki_card_put_facts(json, f);
    kith_json_object_end(json);
}

kith_status kith_card_make(const kith_judgement *j, const kith_card_facts *facts,
                           const kith_card_options *options, char **ret_text, kith_error *err) {
    KI_NEED(err, j, ret_text);
    kith_status status;
    kith_json *json = NULL;
    const char *line = NULL;
    ki_per_query queries = {0};
    const ki_clustered clustered = {
        .is_there = j->has_clustering, .settings = j->kmeans, .scores = j->clustering};
    KI_OPTIONS_TAKE(kith_card_facts, f, facts, err);
    KI_OPTIONS_TAKE(kith_card_options, o, options, err);
    if (j->has_retrieval && o.per_query) KI_TRY(ki_per_query_pack(&j->retrieval, &queries, err));
    const ki_card_block block = block_of(j, &o, &clustered, &queries);
    KI_CHECK(kith_json_new(&json, err));
    kith_json_object_begin(json);
    ki_card_put_block(json, &block);
    if (o.worst) ki_card_put_worst(json, &o);
    put_rest(json, j, &f);
    kith_json_object_end(json);
    KI_CHECK(kith_json_finish(json, &line, err));
    char *text = ki_strdup(line);
    if (!text) KI_CHECK(ki_fail_memory(err, 1, "a result card"));
    *ret_text = text;
done:
    kith_json_free(json);
    ki_per_query_release(&queries);
    return status;
}
