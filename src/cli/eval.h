/* What the parts of `kith eval` share. */
#ifndef CLI_EVAL_H
#define CLI_EVAL_H

#include "kith/eval.h"

/* Where a result comes from: everything two results must share to be compared. Texts may be empty. */
typedef struct eval_card {
    char embedding[512], model[512], data[512], recipe[512];
    char embedding_hash[65], labels_hash[65], weights_hash[65], data_hash[65], recipe_hash[65];
    char backbone[64], pool[16], tap[32], preprocessing[160], resize[32], split[16];
    int64_t crop;
    int64_t dim;
} eval_card;

/* What is judged. Owned; eval_set_release. */
typedef struct eval_set {
    kith_array embedding;
    int64_t *labels;
    int64_t n_labels;
    int64_t *query, *gallery; /* NULL: all rows */
    int64_t n_query, n_gallery;
    eval_card card;
} eval_set;

void eval_set_release(eval_set *set);

/* The two ways to an eval_set: files of embeddings, or a model and a data set. */
typedef struct eval_files {
    const char *embedding, *labels;
    const char *query, *gallery; /* row numbers or a mask; or embeddings with labels of their own */
    const char *query_labels, *gallery_labels;
} eval_files;
kith_status eval_set_read(const eval_files *files, eval_set *ret_set, kith_error *err);

typedef struct eval_model {
    const char *model, *backbone, *settings, *device, *precision, *tap, *pool;
    bool tf32;
    const char *data, *kind, *recipe, *resize;
    int split; /* a kith_split */
    int64_t crop, batch;
    const char *save_embedding, *save_labels;
} eval_model;
kith_status eval_set_embed(const eval_model *model, eval_set *ret_set, kith_error *err);

/* Which metrics are wanted, by place in eval_metric_names. */
enum {
    EVAL_RECALL,
    EVAL_P1,
    EVAL_MAP_AT_R,
    EVAL_R_PRECISION,
    EVAL_MAP,
    EVAL_MRR,
    EVAL_NMI,
    EVAL_AMI,
    EVAL_F1,
    EVAL_N
};
extern const char *const eval_metric_names[EVAL_N + 1];

typedef struct eval_result {
    bool wants[EVAL_N];
    bool has_retrieval, has_intervals, has_clustering, shows_classes;
    kith_metric metric;
    kith_retrieval retrieval;
    kith_bootstrap_options bootstrap;
    kith_intervals intervals;
    kith_clustering clustering;
    kith_kmeans_options kmeans;
    double kmeans_objective;
    double seconds;
} eval_result;

kith_status eval_print_json(const eval_result *result, const eval_card *card, kith_error *err);
void eval_print_text(const eval_result *result, const eval_card *card);

/* --compare: a table of two results, and what speaks against comparing them. */
kith_status eval_compare(const char *path_a, const char *path_b, kith_error *err);

#endif
