/* Judging: how good vectors are. One machine for training, kith eval and the public API: retrieval with its intervals,
 * and clustering, of rows wherever they lie. */
#ifndef KI_JUDGE_H
#define KI_JUDGE_H

#include "comm/comm.h"
#include "device/vectors.h"
#include "kith/eval.h"
#include "knn/device.h"

/* What is judged; everything is borrowed. */
typedef struct ki_judge_input {
    ki_rows rows; /* with `there`, the device below has them too */
    const int64_t *labels;
    int64_t n_labels;
    const int64_t *query, *gallery; /* row numbers; NULL: all rows */
    int64_t n_query, n_gallery;
    const ki_knn_device *device; /* NULL: the one that the options name */
    /* Re-ranking, or NULL: what queries look for instead of their own rows, and their first neighbours [queries, list_size]
     * in another order, -1 at the end. */
    const ki_rows *moved_queries;
    const kith_neighbor *lists;
    int64_t list_size;
    /* Every rank has the same input. Each ranks its part of the queries, and all get the whole result. NULL: one process. */
    ki_comm *comm;
} ki_judge_input;

/* kith_judge_options, resolved. */
typedef struct ki_judge_options {
    bool has_retrieval, has_intervals, has_clustering;
    kith_retrieval_options retrieval;
    kith_bootstrap_options bootstrap;
    kith_kmeans_options kmeans;
    bool has_verification;
    kith_verification_options verification; /* its bootstrap is the caller's */
    bool has_rerank;
    kith_rerank_options rerank; /* its parts are the caller's */
} ki_judge_options;

/* From what a caller gives; NULL: everything, with the defaults of each part. */
kith_status ki_judge_options_take(const kith_judge_options *given, ki_judge_options *ret_options,
                                  kith_error *err);

/* Finds what the options want. A device without the memory for it leaves the work to the host, with the same result.
 * kith_judgement_release gives the judgement back. */
kith_status ki_judge_run(const ki_judge_input *input, const ki_judge_options *options,
                         kith_judgement *ret_judgement, kith_error *err);

/* The same for vectors, where they lie, with labels and roles of their own. comm as in ki_judge_input. */
kith_status ki_judge_vectors(ki_vectors *vectors, const ki_judge_options *options, ki_comm *comm,
                             kith_judgement *ret_judgement, kith_error *err);

/* ---- what training keeps of a judgement ---- */

typedef struct ki_scores {
    bool is_there;
    int64_t step;
    double recall[KITH_MOST_K]; /* at the k that were asked for */
    double map_at_r, r_precision;
    int64_t n_query, n_classes, n_lone;
    double alike; /* squared length of the mean of the normalised embeddings: 1 when all are alike */
    double seconds;
} ki_scores;

/* Retrieval by cosine among the vectors. ret_intervals: 95 % bootstrap intervals over queries; may be NULL. comm as in
 * ki_judge_input: the scores are the same bits on any number of ranks. */
kith_status ki_judge_scores(ki_vectors *vectors, const int64_t *k, int64_t n_k, ki_comm *comm,
                            ki_scores *ret_scores, kith_intervals *ret_intervals, kith_error *err);
/* The same, and what every query came to (judge/per_query.h; may be NULL). */
struct ki_per_query;
kith_status ki_judge_by_query(ki_vectors *vectors, const int64_t *k, int64_t n_k, ki_comm *comm,
                              ki_scores *ret_scores, kith_intervals *ret_intervals,
                              struct ki_per_query *ret_queries, kith_error *err);

/* How well k-means finds the classes: as many clusters as classes, on normalised rows. */
typedef struct ki_clustered {
    bool is_there;
    kith_kmeans_settings settings;
    kith_clustering scores;
    double seconds;
} ki_clustered;

kith_status ki_judge_cluster(ki_vectors *vectors, ki_clustered *ret_clustered, kith_error *err);

/* The curve of verification by cosine, for the model that made the vectors; without points when they are all of one class, or
 * no two of the same. */
kith_status ki_judge_calibrate(ki_vectors *vectors, const char *source, kith_calibration *ret_calibration,
                               kith_error *err);

/* The same of rows of several sets, part [n] from 0 to n_parts - 1, of which only rows of one set are compared with each other. */
kith_status ki_judge_calibrate_parts(ki_vectors *vectors, const int32_t *part, int32_t n_parts,
                                     const char *source, kith_calibration *ret_calibration, kith_error *err);

/* |mean of x / |x||^2 over the rows. */
double ki_alike(const float *x, int64_t n, int64_t dim);

/* ---- between the files of this folder ---- */

/* The rows of vectors, checked: on the host, and where the device (beside the one that made them) has them. */
kith_status ki_judge_rows(ki_vectors *vectors, const ki_knn_device *device, ki_rows *ret_rows,
                          kith_error *err);
/* What a caller of the public functions gave, its rows checked. */
kith_status ki_judge_input_of(const kith_retrieval_input *given, ki_judge_input *ret_input, kith_error *err);
/* retrieval.c: kith_retrieval_run on rows wherever they lie. device as above. */
kith_status ki_retrieval_run(const ki_judge_input *input, const kith_retrieval_options *options,
                             kith_retrieval *ret_retrieval, kith_error *err);
/* bootstrap.c: the values' percentile interval, which sorts them. */
kith_interval ki_bootstrap_interval(double *values, int64_t n, double level);
kith_status ki_bootstrap_check(const kith_bootstrap_options *options, kith_error *err);

#endif
