/* Judging: embeddings of a set of images under the network as it is now, and how good they are.
 *
 * A judge has an inference plan of its own on the network's parameters, so that it may be asked between
 * any two steps of training. */
#ifndef KI_JUDGE_H
#define KI_JUDGE_H

#include "data/dataset/dataset.h"
#include "data/loader/loader.h"
#include "kith/eval.h"
#include "net/net.h"
#include "nn/params.h"

typedef struct ki_judge ki_judge;

/* Pointers are borrowed and must outlive the judge. */
typedef struct ki_judge_settings {
    ki_backend *backend;
    const ki_net *net;
    ki_params *params;
    const kith_dataset *set;
    kith_transform transform; /* not random */
    int64_t batch;
    int64_t n_k;
    const int64_t *k; /* [n_k], copied */
    int n_workers;
    int64_t most_bad;
    bool (*must_stop)(void *user); /* asked between batches; may be NULL */
    void *user;
} ki_judge_settings;

kith_status ki_judge_new(const ki_judge_settings *settings, ki_judge **ret_judge, kith_error *err);
void ki_judge_free(ki_judge *judge); /* NULL is fine */

int64_t ki_judge_batch(const ki_judge *judge); /* images per pass */

/* Values of a tap for the images that could be read, in the order of the items. */
typedef struct ki_embedded {
    int64_t n, dim;
    float *x;       /* [n, dim] */
    int64_t *label; /* of the data set */
    int64_t *item;
} ki_embedded;

/* Room for n rows, none of them there yet. */
kith_status ki_embedded_make(int64_t n, int64_t dim, ki_embedded *ret_embedded, kith_error *err);
void ki_embedded_release(ki_embedded *embedded); /* fine on a zeroed struct */

/* `tap` is "embedding" or "pooled". KITH_ECANCELED when must_stop says so. */
kith_status ki_judge_embed(ki_judge *judge, const int64_t *items, int64_t n, const char *tap,
                           ki_embedded *ret_embedded, kith_error *err);

/* Every image of the list that can be read, batch by batch and in order, in the format of ki_feed_format. */
typedef kith_status (*ki_judge_fn)(void *user, const ki_loader_batch *batch, kith_error *err);
kith_status ki_judge_each(ki_judge *judge, const int64_t *items, int64_t n, ki_judge_fn fn, void *user,
                          kith_error *err);

/* What is kept of an evaluation. */
typedef struct ki_scores {
    bool is_there;
    int64_t step;
    double recall[KITH_MOST_K]; /* at the judge's k */
    double map_at_r, r_precision;
    int64_t n_query, n_classes, n_lone;
    double alike; /* squared length of the mean of the normalised embeddings: 1 when all are alike */
    double seconds;
} ki_scores;

/* Retrieval among the images; roles (query, gallery) of the data set are honoured. ret_intervals: 95 %
 * bootstrap intervals over queries; may be NULL. */
kith_status ki_judge_score(const ki_judge *judge, const ki_embedded *embedded, ki_scores *ret_scores,
                           kith_intervals *ret_intervals, kith_error *err);

/* How well k-means finds the classes: as many clusters as classes, on normalised rows. */
typedef struct ki_clustered {
    bool is_there;
    kith_kmeans_options settings;
    kith_clustering scores;
    double seconds;
} ki_clustered;

kith_status ki_judge_cluster(const ki_embedded *embedded, ki_clustered *ret_clustered, kith_error *err);

/* |mean of x / |x||^2 over the rows. */
double ki_alike(const float *x, int64_t n, int64_t dim);

#endif
