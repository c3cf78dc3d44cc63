/* How good an embedding is: retrieval, verification and clustering metrics.
 *
 * Retrieval metrics are functions of one thing: the rank of every relevant item (same label) of every
 * query. Ranks are exact: the order is that of float64 scores of the given values, ties by lower
 * index, the query itself left out by its index. Queries with no relevant item ("lone") are counted
 * and left out of every average. All values are fractions. */
#ifndef KITH_EVAL_H
#define KITH_EVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/array.h"
#include "kith/calibration.h"
#include "kith/knn.h"
#include "kith/rerank.h"
#include "kith/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- retrieval ---- */

#define KITH_MOST_K 32

typedef struct kith_retrieval_options {
    size_t size; /* of the struct: set by kith_retrieval_options_init */
    kith_metric metric;
    int64_t n_k;
    int64_t k[KITH_MOST_K];    /* R@K for these, each >= 1, rising */
    kith_progress_fn progress; /* may be NULL */
    void *user;
    const char *device; /* "cpu" (default), "cuda" or "cuda:1": the same ranks */
} kith_retrieval_options;

/* Cosine; K = 1, 2, 4, 8. */
KITH_API void kith_retrieval_options_init(kith_retrieval_options *options, size_t size);

/* Who is looked for, and where. Rows are rows of `embedding`, labels [n] go with them. query and
 * gallery are lists of row numbers, each row at most once; NULL means all rows. A query that is also
 * in the gallery does not find itself. */
typedef struct kith_retrieval_input {
    const kith_array *embedding;
    const int64_t *labels;
    int64_t n_labels;
    const int64_t *query;
    int64_t n_query;
    const int64_t *gallery;
    int64_t n_gallery;
} kith_retrieval_input;

/* The values of one query, or an average of them. */
typedef struct kith_scores {
    double recall[KITH_MOST_K]; /* at options.k: 1 when a relevant item is among the K nearest */
    double precision_at_1;
    double r_precision; /* relevant part of the R nearest, R = number of relevant items */
    double map_at_r;    /* mean over the R nearest of precision at each relevant one */
    double map;         /* average precision over the whole ranking */
    double mrr;         /* 1 / rank of the first relevant item */
} kith_scores;

typedef struct kith_class_scores {
    int64_t label;
    int64_t n_query, n_lone, n_gallery;
    kith_scores mean; /* over the class's queries that are not lone; NaN when there are none */
} kith_class_scores;

typedef struct kith_retrieval {
    int64_t n_k;
    int64_t k[KITH_MOST_K];
    int64_t n_query, n_gallery, n_lone;
    int64_t n_tied;         /* queries with a relevant and an irrelevant item at exactly the same score */
    int64_t n_zero_rows;    /* cosine only: rows that are all 0 */
    kith_scores mean;       /* over the queries that are not lone */
    kith_scores class_mean; /* the mean over classes of the mean over each class's queries */
    kith_scores *query;     /* [n_query], NaN for lone ones; in the order of the query list */
    int64_t *query_label;   /* [n_query] */
    int64_t n_classes;
    kith_class_scores *per_class; /* [n_classes] by rising label, every label of query or gallery */
    char queries_sha256[65];      /* of which queries and gallery there are, by their classes and order */
} kith_retrieval;

/* KITH_ESHAPE when labels and rows differ in number, KITH_EINVAL for an empty query or gallery, a row
 * number out of range or given twice, k < 1, or when every query is lone. */
KITH_API kith_status kith_retrieval_run(const kith_retrieval_input *input,
                                        const kith_retrieval_options *options, kith_retrieval *ret_retrieval,
                                        kith_error *err);
KITH_API void kith_retrieval_release(kith_retrieval *retrieval); /* fine on a zeroed struct */

/* ---- intervals ---- */

typedef struct kith_interval {
    double low, high;
} kith_interval;

typedef struct kith_bootstrap_options {
    size_t size;     /* of the struct: set by kith_bootstrap_options_init */
    int64_t n_draws; /* 1000 */
    double level;    /* 0.95 */
    uint64_t seed;
    bool by_class; /* draw whole classes instead of queries: wider, for classes as the sample */
} kith_bootstrap_options;

/* 1000 draws of queries, level 0.95, seed 0. */
KITH_API void kith_bootstrap_options_init(kith_bootstrap_options *options, size_t size);

typedef struct kith_intervals {
    kith_interval recall[KITH_MOST_K];
    kith_interval precision_at_1, r_precision, map_at_r, map, mrr;
} kith_intervals;

/* Percentile bootstrap intervals for the means over queries. */
KITH_API kith_status kith_retrieval_bootstrap(const kith_retrieval *retrieval,
                                              const kith_bootstrap_options *options,
                                              kith_intervals *ret_intervals, kith_error *err);

/* How intervals were made. */
typedef struct kith_bootstrap_settings {
    int64_t n_draws;
    double level;
    uint64_t seed;
    bool by_class;
} kith_bootstrap_settings;

/* ---- verification ----
 *
 * "The same or not?": a pair is accepted when its score reaches a threshold. False accepts are pairs of two classes, false
 * rejects pairs of one class that are not accepted. Rates are over all pairs of a query and a row of the gallery, a row
 * never with itself; when every row is both, every two rows count once. */

typedef struct kith_verification_options {
    size_t size; /* of the struct: set by kith_verification_options_init */
    kith_metric metric;
    bool has_intervals;
    const kith_bootstrap_options *bootstrap; /* NULL: the defaults. Always by class: see docs/evaluation.md */
    kith_progress_fn progress;               /* may be NULL; for each pass over the pairs */
    void *user;
} kith_verification_options;

/* Cosine, with intervals. */
KITH_API void kith_verification_options_init(kith_verification_options *options, size_t size);

/* False accept rates 1e-1 … 1e-4. */
#define KITH_N_FAR 4

typedef struct kith_accept_rate {
    double far_wanted;
    double threshold;       /* the lowest score that keeps to it; infinite when none does */
    double far, tar;        /* false and true accept rate with that threshold */
    int64_t n_false;        /* false accepts: with few of them the rate is not known well */
    kith_interval interval; /* of tar */
} kith_accept_rate;

typedef struct kith_verification {
    kith_metric metric;
    int64_t n_classes, n_same, n_different; /* pairs of one class and of two */
    double auc;                             /* area under the ROC curve; a tie counts half */
    double eer, eer_threshold; /* where the ROC curve, linear between its points, has far = 1 - tar */
    kith_accept_rate at[KITH_N_FAR];
    bool has_intervals;
    kith_interval auc_interval, eer_interval;
    kith_bootstrap_settings bootstrap;
    kith_calibration curve; /* the ROC curve at up to 256 thresholds; its source is empty */
} kith_verification;

/* Errors as of kith_retrieval_run; KITH_EINVAL when there are no pairs of one class, or of two. Memory is linear in the
 * number of rows. Thresholds, eer, far and tar are exact: those of float64 scores of the given values. auc is exact for up to
 * 4 million pairs; above, scores that differ by less than a millionth of their range may be taken for equal. */
KITH_API kith_status kith_verification_run(const kith_retrieval_input *input,
                                           const kith_verification_options *options,
                                           kith_verification *ret_verification, kith_error *err);

/* The ROC curve as an SVG file: true accept rate against false accept rate, on a logarithmic scale. */
KITH_API kith_status kith_verification_draw(const kith_verification *verification, const char *path,
                                            kith_error *err);

/* ---- re-ranking ---- */

typedef enum kith_rerank_method {
    KITH_RERANK_NONE,       /* the nearest first */
    KITH_RERANK_EXPANSION,  /* query expansion, and another search */
    KITH_RERANK_RECIPROCAL, /* k-reciprocal re-ranking of the candidates */
} kith_rerank_method;

typedef struct kith_rerank_options {
    size_t size; /* of the struct: set by kith_rerank_options_init */
    kith_rerank_method method;
    const kith_expansion_options *expansion; /* NULL: the defaults (kith/rerank.h) */
    const kith_reciprocal_options *reciprocal;
    int64_t
        n_candidates; /* k-reciprocal: nearest rows that are put into a new order; the others stay behind them */
} kith_rerank_options;

/* k-reciprocal, of 200 candidates. */
KITH_API void kith_rerank_options_init(kith_rerank_options *options, size_t size);

/* What re-ranking does to the scores of retrieval, and how it was made. */
typedef struct kith_reranking {
    kith_rerank_method method;
    int64_t k; /* of expansion */
    double alpha;
    int64_t k1, k2; /* of k-reciprocal */
    double lambda;
    int64_t n_candidates;
    kith_scores before, after; /* means over the queries that are not lone */
    double seconds;
} kith_reranking;

/* ---- clustering ---- */

typedef struct kith_clustering {
    double nmi;                             /* mutual information over the arithmetic mean of the entropies */
    double nmi_geometric;                   /* over the geometric mean */
    double ami;                             /* adjusted for chance, arithmetic mean */
    double f1, pair_precision, pair_recall; /* over pairs of items put together */
    int64_t n_clusters, n_classes;
} kith_clustering;

/* Compare two labellings of n >= 1 items. */
KITH_API kith_status kith_clustering_compare(const int64_t *cluster, const int64_t *labels, int64_t n,
                                             kith_clustering *ret_clustering, kith_error *err);

/* ---- all together ---- */

typedef struct kith_judge_options {
    size_t size;                                       /* of the struct: set by kith_judge_options_init */
    bool has_retrieval, has_intervals, has_clustering; /* what is wanted; intervals are of retrieval */
    /* How; NULL: the defaults of each. */
    const kith_retrieval_options *retrieval;
    const kith_bootstrap_options *bootstrap;
    const kith_kmeans_options *kmeans; /* n_clusters 0: as many as there are classes */
    bool has_verification;
    const kith_verification_options *verification; /* NULL: the defaults */
    bool has_rerank;                               /* by cosine, with retrieval */
    const kith_rerank_options *rerank;             /* NULL: the defaults */
} kith_judge_options;

/* Retrieval with intervals and clustering, with the defaults of each part. */
KITH_API void kith_judge_options_init(kith_judge_options *options, size_t size);

/* How clusters were made. */
typedef struct kith_kmeans_settings {
    int64_t n_clusters, n_iterations, n_restarts;
    uint64_t seed;
    double tolerance;
    bool normalize, is_random_start;
} kith_kmeans_settings;

/* What was found; a part is there when its flag says so. */
typedef struct kith_judgement {
    bool has_retrieval, has_intervals, has_clustering;
    kith_metric metric;
    kith_retrieval retrieval;
    kith_bootstrap_settings bootstrap;
    kith_intervals intervals;
    kith_kmeans_settings kmeans;
    double kmeans_objective;
    kith_clustering clustering;
    double seconds;                       /* all of it, */
    double rank_seconds, cluster_seconds; /* and of that the ranking and k-means, */
    double verify_seconds;                /* and verification */
    bool has_verification;
    kith_verification verification;
    bool has_rerank;
    kith_reranking rerank;
} kith_judgement;

/* Retrieval, its intervals, clustering, verification and re-ranking of one embedding. Clustering is of the rows that are query or gallery, each
 * once. Errors as of kith_retrieval_run and kith_kmeans. */
KITH_API kith_status kith_judge_run(const kith_retrieval_input *input, const kith_judge_options *options,
                                    kith_judgement *ret_judgement, kith_error *err);
KITH_API void kith_judgement_release(kith_judgement *judgement); /* fine on a zeroed struct */

/* ---- hashes ---- */

/* SHA-256 of a file's bytes in lower-case hex, as sha256sum prints it. */
KITH_API kith_status kith_file_hash(const char *path, char ret_hex[65], kith_error *err);

/* A running hash, for things that are no file (a list of items). Zero-initialise. */
typedef struct kith_hash {
    uint32_t state[8];
    uint64_t n_bytes;
    uint8_t block[64];
} kith_hash;
/* Add n bytes; end, and write 64 hex digits and a 0. The hash is then as new. */
KITH_API void kith_hash_add(kith_hash *hash, const void *bytes, size_t n);
KITH_API void kith_hash_finish(kith_hash *hash, char ret_hex[65]);

#ifdef __cplusplus
}
#endif
#endif
