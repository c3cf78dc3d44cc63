/* What the parts of `kith eval` share. */
#ifndef CLI_EVAL_H
#define CLI_EVAL_H

#include "kith/labels.h"
#include "kith/model.h"

/* What is judged, from files of embeddings or from a model and a data set. Owned; eval_set_release. */
typedef struct eval_set {
    /* Files. */
    kith_array embedding;
    int64_t *labels;
    int64_t n_labels;
    kith_labels *names;       /* of the labels, where they are text */
    int64_t *query, *gallery; /* NULL: all rows */
    int64_t n_query, n_gallery;
    /* A model's, and the labels and roles of its data set. */
    kith_dataset *dataset;
    kith_model *model;
    kith_vectors *vectors;
    /* What the card says; its strings are the options' and those below. */
    kith_card_facts facts;
    char embedding_hash[65], labels_hash[65], model_hash[65], recipe_hash[65];
} eval_set;

void eval_set_release(eval_set *set);
/* Of files: what is ranked. */
kith_retrieval_input eval_set_input(const eval_set *set);

typedef struct eval_files {
    const char *embedding, *labels;
    const char *query, *gallery; /* row numbers or a mask; or embeddings with labels of their own */
    const char *query_labels, *gallery_labels;
} eval_files;
kith_status eval_set_read(const eval_files *files, eval_set *ret_set, kith_error *err);

typedef struct eval_model {
    const char *named; /* the model as it was given; NULL: general, or a backbone alone */
    const char *model, *backbone, *settings, *device, *precision, *tap, *pool;
    bool tf32;
    bool quiet; /* what general is good for is not said */
    const char *data, *kind, *recipe, *resize;
    const char *labels; /* of features, where data is a .npy; NULL: beside it */
    kith_split split;
    int64_t crop, side, views, batch;
    const char *save_embedding, *save_labels;
} eval_model;
kith_status eval_set_embed(const eval_model *model, eval_set *ret_set, kith_error *err);

/* Percent, for people; which scores as of kith_card_make. */
void eval_print(const kith_judgement *judgement, const kith_card_facts *facts,
                const kith_card_options *shown);

/* --worst: the worst queries and the hardest negatives. Owned; eval_worst_release. */
typedef struct eval_worst {
    kith_worst found;
    const char **path, **class; /* of every row; NULL: not known */
    char *text;                 /* of a list of paths */
} eval_worst;

typedef struct eval_worst_request {
    int64_t most;
    const char *html;   /* NULL: no page */
    const char *images; /* of the rows of a file: a list of paths; NULL: none */
    kith_metric metric;
    const char *device;
    const char *name; /* of what is judged */
} eval_worst_request;

kith_status eval_worst_find(const eval_set *set, const eval_worst_request *request,
                            const kith_judgement *judgement, eval_worst *ret_worst, kith_error *err);
void eval_worst_release(eval_worst *worst); /* fine on a zeroed struct */
void eval_worst_print(const eval_worst *worst);
kith_status eval_worst_write_page(const eval_worst *worst, const eval_worst_request *request,
                                  kith_error *err);

/* --compare: a table of two results, and what speaks against comparing them. */
kith_status eval_compare(const char *path_a, const char *path_b, bool as_json, kith_error *err);

#endif
