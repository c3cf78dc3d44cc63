/* One result, as JSON or as a table. Fractions in JSON, percent in the table. */
#include <math.h>
#include <stdio.h>

#include "cli/eval.h"
#include "kith/json.h"
#include "kith/version.h"

const char *const eval_metric_names[EVAL_N + 1] = {
    "recall", "precision_at_1", "map_at_r", "r_precision", "map", "mrr", "nmi", "ami", "f1", NULL};

static double plain_score(const kith_scores *s, int metric) {
    switch (metric) {
    case EVAL_P1: return s->precision_at_1;
    case EVAL_MAP_AT_R: return s->map_at_r;
    case EVAL_R_PRECISION: return s->r_precision;
    case EVAL_MAP: return s->map;
    case EVAL_MRR: return s->mrr;
    default: return NAN;
    }
}

static kith_interval plain_interval(const kith_intervals *v, int metric) {
    switch (metric) {
    case EVAL_P1: return v->precision_at_1;
    case EVAL_MAP_AT_R: return v->map_at_r;
    case EVAL_R_PRECISION: return v->r_precision;
    case EVAL_MAP: return v->map;
    default: return v->mrr;
    }
}

static void real(kith_json *json, const char *key, double value) {
    kith_json_key(json, key);
    kith_json_real(json, value);
}
static void integer(kith_json *json, const char *key, int64_t value) {
    kith_json_key(json, key);
    kith_json_int(json, value);
}
static void text(kith_json *json, const char *key, const char *value) {
    if (!value[0]) return;
    kith_json_key(json, key);
    kith_json_string(json, value);
}

static const char *k_text(int64_t k, char buf[24]) {
    snprintf(buf, 24, "%lld", (long long)k);
    return buf;
}

static void json_scores(kith_json *json, const eval_result *r, const kith_scores *s) {
    char buf[24];
    if (r->wants[EVAL_RECALL]) {
        kith_json_key(json, "recall");
        kith_json_object_begin(json);
        for (int i = 0; i < r->retrieval.n_k; i++) real(json, k_text(r->retrieval.k[i], buf), s->recall[i]);
        kith_json_object_end(json);
    }
    for (int m = EVAL_P1; m <= EVAL_MRR; m++)
        if (r->wants[m]) real(json, eval_metric_names[m], plain_score(s, m));
}

static void json_interval(kith_json *json, const char *key, kith_interval v) {
    kith_json_key(json, key);
    kith_json_array_begin(json);
    kith_json_real(json, v.low);
    kith_json_real(json, v.high);
    kith_json_array_end(json);
}

static void json_intervals(kith_json *json, const eval_result *r) {
    char buf[24];
    kith_json_key(json, "intervals");
    kith_json_object_begin(json);
    real(json, "level", r->bootstrap.level);
    integer(json, "draws", r->bootstrap.n_draws);
    text(json, "unit", r->bootstrap.by_class ? "class" : "query");
    if (r->wants[EVAL_RECALL]) {
        kith_json_key(json, "recall");
        kith_json_object_begin(json);
        for (int i = 0; i < r->retrieval.n_k; i++)
            json_interval(json, k_text(r->retrieval.k[i], buf), r->intervals.recall[i]);
        kith_json_object_end(json);
    }
    for (int m = EVAL_P1; m <= EVAL_MRR; m++)
        if (r->wants[m]) json_interval(json, eval_metric_names[m], plain_interval(&r->intervals, m));
    kith_json_object_end(json);
}

static void json_retrieval(kith_json *json, const eval_result *r) {
    const kith_retrieval *v = &r->retrieval;
    json_scores(json, r, &v->mean);
    text(json, "metric", kith_metric_name(r->metric));
    integer(json, "queries", v->n_query);
    integer(json, "gallery", v->n_gallery);
    integer(json, "classes", v->n_classes);
    integer(json, "lone_queries", v->n_lone);
    integer(json, "tied_queries", v->n_tied);
    integer(json, "zero_rows", v->n_zero_rows);
    kith_json_key(json, "class_mean");
    kith_json_object_begin(json);
    json_scores(json, r, &v->class_mean);
    kith_json_object_end(json);
    if (r->has_intervals) json_intervals(json, r);
    if (!r->shows_classes) return;
    kith_json_key(json, "per_class");
    kith_json_array_begin(json);
    for (int64_t c = 0; c < v->n_classes; c++) {
        const kith_class_scores *p = v->per_class + c;
        kith_json_object_begin(json);
        integer(json, "label", p->label);
        integer(json, "queries", p->n_query);
        integer(json, "lone_queries", p->n_lone);
        integer(json, "gallery", p->n_gallery);
        json_scores(json, r, &p->mean);
        kith_json_object_end(json);
    }
    kith_json_array_end(json);
}

static void json_clustering(kith_json *json, const eval_result *r) {
    const kith_clustering *c = &r->clustering;
    if (r->wants[EVAL_NMI]) {
        real(json, "nmi", c->nmi);
        real(json, "nmi_geometric", c->nmi_geometric);
    }
    if (r->wants[EVAL_AMI]) real(json, "ami", c->ami);
    if (r->wants[EVAL_F1]) real(json, "f1", c->f1);
    kith_json_key(json, "kmeans");
    kith_json_object_begin(json);
    integer(json, "clusters", r->kmeans.n_clusters);
    text(json, "start", "k-means++");
    integer(json, "restarts", r->kmeans.n_restarts);
    integer(json, "iterations", r->kmeans.n_iterations);
    integer(json, "seed", (int64_t)r->kmeans.seed);
    kith_json_key(json, "normalized");
    kith_json_bool(json, r->kmeans.normalize);
    real(json, "objective", r->kmeans_objective);
    kith_json_object_end(json);
}

static void json_card(kith_json *json, const eval_card *c) {
    kith_json_key(json, "card");
    kith_json_object_begin(json);
    text(json, "kith", kith_version());
    text(json, "commit", kith_commit());
    text(json, "model", c->model);
    text(json, "weights_sha256", c->weights_hash);
    text(json, "backbone", c->backbone);
    text(json, "pool", c->pool);
    text(json, "tap", c->tap);
    text(json, "preprocessing", c->preprocessing);
    text(json, "resize", c->resize);
    if (c->crop) integer(json, "crop", c->crop);
    text(json, "data", c->data);
    text(json, "data_sha256", c->data_hash);
    text(json, "split", c->split);
    text(json, "recipe", c->recipe);
    text(json, "recipe_sha256", c->recipe_hash);
    text(json, "embedding", c->embedding);
    text(json, "embedding_sha256", c->embedding_hash);
    text(json, "labels_sha256", c->labels_hash);
    integer(json, "embedding_size", c->dim);
    kith_json_object_end(json);
}

kith_status eval_print_json(const eval_result *r, const eval_card *card, kith_error *err) {
    kith_json *json = NULL;
    kith_status status = kith_json_new(&json, err);
    if (status != KITH_OK) return status;
    kith_json_object_begin(json);
    if (r->has_retrieval) json_retrieval(json, r);
    if (r->has_clustering) json_clustering(json, r);
    real(json, "seconds", r->seconds);
    json_card(json, card);
    kith_json_object_end(json);
    const char *line = NULL;
    status = kith_json_finish(json, &line, err);
    if (status == KITH_OK) puts(line);
    kith_json_free(json);
    return status;
}

static void row(const eval_result *r, const char *name, double value, const kith_interval *interval,
                double class_mean) {
    printf("  %-14s %7.2f", name, 100 * value);
    if (r->has_intervals && interval) printf("   %6.2f to %6.2f", 100 * interval->low, 100 * interval->high);
    if (!isnan(class_mean)) printf("   %7.2f", 100 * class_mean);
    putchar('\n');
}

static void text_retrieval(const eval_result *r) {
    const kith_retrieval *v = &r->retrieval;
    printf("%lld queries, %lld in the gallery, %lld classes, %s\n", (long long)v->n_query,
           (long long)v->n_gallery, (long long)v->n_classes, kith_metric_name(r->metric));
    if (v->n_lone)
        printf("%lld queries have no other item of their class and are left out\n", (long long)v->n_lone);
    if (v->n_tied)
        printf("%lld queries have ties between items of their class and others (broken by lower index)\n",
               (long long)v->n_tied);
    if (v->n_zero_rows) printf("%lld rows are all 0\n", (long long)v->n_zero_rows);
    printf("  %-14s %7s%s   %s\n", "percent", "mean", r->has_intervals ? "      95 % interval" : "",
           "over classes");
    char name[32];
    for (int i = 0; r->wants[EVAL_RECALL] && i < v->n_k; i++) {
        snprintf(name, sizeof name, "R@%lld", (long long)v->k[i]);
        row(r, name, v->mean.recall[i], &r->intervals.recall[i], v->class_mean.recall[i]);
    }
    static const char *const shown[EVAL_N] = {"", "P@1", "MAP@R", "R-precision", "MAP", "MRR"};
    for (int m = EVAL_P1; m <= EVAL_MRR; m++) {
        const kith_interval interval = plain_interval(&r->intervals, m);
        if (r->wants[m])
            row(r, shown[m], plain_score(&v->mean, m), &interval, plain_score(&v->class_mean, m));
    }
}

static void text_classes(const eval_result *r) {
    const kith_retrieval *v = &r->retrieval;
    printf("\n  %10s %8s %8s %8s %8s %8s\n", "label", "queries", "gallery", "P@1", "MAP@R", "MAP");
    for (int64_t c = 0; c < v->n_classes; c++) {
        const kith_class_scores *p = v->per_class + c;
        printf("  %10lld %8lld %8lld %8.2f %8.2f %8.2f\n", (long long)p->label, (long long)p->n_query,
               (long long)p->n_gallery, 100 * p->mean.precision_at_1, 100 * p->mean.map_at_r,
               100 * p->mean.map);
    }
}

void eval_print_text(const eval_result *r, const eval_card *card) {
    if (card->backbone[0])
        printf("%s, %s of %lld values, %s, crop %lld, on %s (%s)\n", card->backbone, card->tap,
               (long long)card->dim, card->resize, (long long)card->crop, card->data, card->split);
    if (r->has_retrieval) text_retrieval(r);
    if (r->has_clustering) {
        printf(
            "k-means into %lld clusters (k-means++, %lld restarts of at most %lld iterations, seed %llu)\n",
            (long long)r->kmeans.n_clusters, (long long)r->kmeans.n_restarts,
            (long long)r->kmeans.n_iterations, (unsigned long long)r->kmeans.seed);
        if (r->wants[EVAL_NMI]) row(r, "NMI", r->clustering.nmi, NULL, NAN);
        if (r->wants[EVAL_AMI]) row(r, "AMI", r->clustering.ami, NULL, NAN);
        if (r->wants[EVAL_F1]) row(r, "F1", r->clustering.f1, NULL, NAN);
    }
    if (r->has_retrieval && r->shows_classes) text_classes(r);
}
