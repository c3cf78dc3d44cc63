/* One result as a table, in percent. */
#include <math.h>
#include <stdio.h>

#include "cli/eval.h"

/* A row's first columns; the caller ends the line. */
static void begin_row(const char *name, double value, const kith_interval *interval) {
    printf("  %-14s %7.2f", name, 100 * value);
    if (interval) printf("   %6.2f to %6.2f", 100 * interval->low, 100 * interval->high);
}

static void row(const char *name, double value, const kith_interval *interval, double class_mean) {
    begin_row(name, value, interval);
    if (!isnan(class_mean)) printf("   %7.2f", 100 * class_mean);
    putchar('\n');
}

static void print_counts(const kith_judgement *j) {
    const kith_retrieval *v = &j->retrieval;
    printf("%lld queries, %lld in the gallery, %lld classes, %s\n", (long long)v->n_query,
           (long long)v->n_gallery, (long long)v->n_classes, kith_metric_name(j->metric));
    if (v->n_lone)
        printf("%lld queries have no other item of their class and are left out\n", (long long)v->n_lone);
    if (v->n_tied)
        printf("%lld queries have ties between items of their class and others (broken by lower index)\n",
               (long long)v->n_tied);
    if (v->n_zero_rows) printf("%lld rows are all 0\n", (long long)v->n_zero_rows);
}

static void print_retrieval(const kith_judgement *j, const kith_card_options *shown) {
    const kith_retrieval *v = &j->retrieval;
    print_counts(j);
    printf("  %-14s %7s%s   %s\n", "percent", "mean", j->has_intervals ? "      95 % interval" : "",
           "over classes");
    for (int i = 0; shown->scores[KITH_SCORE_RECALL] && i < v->n_k; i++) {
        char name[32];
        snprintf(name, sizeof name, "R@%lld", (long long)v->k[i]);
        row(name, v->mean.recall[i], j->has_intervals ? &j->intervals.recall[i] : NULL,
            v->class_mean.recall[i]);
    }
    for (kith_score m = KITH_SCORE_PRECISION_AT_1; m < KITH_SCORE_NMI; m++) {
        const kith_interval interval = kith_score_interval(&j->intervals, m);
        if (shown->scores[m])
            row(kith_score_title(m), kith_score_value(&v->mean, m), j->has_intervals ? &interval : NULL,
                kith_score_value(&v->class_mean, m));
    }
}

static void print_clustering(const kith_judgement *j, const kith_card_options *shown) {
    const double values[KITH_N_SCORES] = {[KITH_SCORE_NMI] = j->clustering.nmi,
                                          [KITH_SCORE_AMI] = j->clustering.ami,
                                          [KITH_SCORE_F1] = j->clustering.f1};
    printf("k-means into %lld clusters (k-means++, %lld restarts of at most %lld iterations, seed %llu)\n",
           (long long)j->kmeans.n_clusters, (long long)j->kmeans.n_restarts,
           (long long)j->kmeans.n_iterations, (unsigned long long)j->kmeans.seed);
    for (kith_score m = KITH_SCORE_NMI; m < KITH_N_SCORES; m++)
        if (shown->scores[m]) row(kith_score_title(m), values[m], NULL, NAN);
}

static void print_gain(const char *name, double before, double after) {
    printf("  %-14s %7.2f   %7.2f   %+7.2f\n", name, 100 * before, 100 * after, 100 * (after - before));
}

static void print_rerank(const kith_reranking *r) {
    if (r->method == KITH_RERANK_EXPANSION)
        printf("query expansion by %lld neighbours (alpha %g)\n", (long long)r->k, r->alpha);
    else
        printf("k-reciprocal re-ranking of the %lld nearest (k1 %lld, k2 %lld, lambda %g)\n",
               (long long)r->n_candidates, (long long)r->k1, (long long)r->k2, r->lambda);
    printf("  %-14s %7s   %7s   %7s\n", "percent", "before", "after", "gain");
    print_gain("R@1", r->before.precision_at_1, r->after.precision_at_1); /* whatever --k says */
    print_gain("MAP@R", r->before.map_at_r, r->after.map_at_r);
}

/* A row with a threshold, which may be none at all. */
static void begin_threshold_row(const char *name, double value, const kith_interval *interval,
                                double threshold) {
    begin_row(name, value, interval);
    if (isfinite(threshold))
        printf("   %10.6g", threshold);
    else
        printf("   %10s", "none");
}

static void print_verification(const kith_verification *v) {
    printf("same or different: %lld pairs of one class, %lld of two, %lld classes, %s\n",
           (long long)v->n_same, (long long)v->n_different, (long long)v->n_classes,
           kith_metric_name(v->metric));
    printf("  %-14s %7s%s   %10s   %s\n", "percent", "", v->has_intervals ? "      95 % interval" : "",
           "threshold", "false accepts");
    row("AUC", v->auc, v->has_intervals ? &v->auc_interval : NULL, NAN);
    begin_threshold_row("EER", v->eer, v->has_intervals ? &v->eer_interval : NULL, v->eer_threshold);
    putchar('\n');
    for (int i = 0; i < KITH_N_FAR; i++) {
        const kith_accept_rate *at = &v->at[i];
        char name[32];
        snprintf(name, sizeof name, "TAR@FAR %g", at->far_wanted);
        begin_threshold_row(name, at->tar, v->has_intervals ? &at->interval : NULL, at->threshold);
        printf("   %lld\n", (long long)at->n_false);
    }
}

static void print_classes(const kith_retrieval *v) {
    printf("\n  %10s %8s %8s %8s %8s %8s\n", "label", "queries", "gallery", "P@1", "MAP@R", "MAP");
    for (int64_t c = 0; c < v->n_classes; c++) {
        const kith_class_scores *p = v->per_class + c;
        printf("  %10lld %8lld %8lld %8.2f %8.2f %8.2f\n", (long long)p->label, (long long)p->n_query,
               (long long)p->n_gallery, 100 * p->mean.precision_at_1, 100 * p->mean.map_at_r,
               100 * p->mean.map);
    }
}

void eval_print(const kith_judgement *j, const kith_card_facts *f, const kith_card_options *shown) {
    if (f->backbone && f->crop == 0) /* features */
        printf("%s, %s of %lld values, on %s %s (%s)\n", f->backbone, f->tap, (long long)f->embedding_size,
               f->dataset, f->data, f->split);
    else if (f->backbone)
        printf("%s, %s of %lld values, %s, crop %lld, on %s %s (%s)\n", f->backbone, f->tap,
               (long long)f->embedding_size, f->resize, (long long)f->crop, f->dataset, f->data, f->split);
    if (j->has_retrieval) print_retrieval(j, shown);
    if (j->has_rerank) print_rerank(&j->rerank);
    if (j->has_clustering) print_clustering(j, shown);
    if (j->has_verification) print_verification(&j->verification);
    if (j->has_retrieval && shown->per_class) print_classes(&j->retrieval);
}
