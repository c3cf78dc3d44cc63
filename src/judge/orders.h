/* Rows that are several vectors side by side (HORDE Table 1, dagger: the normalised embedding and every order's): how
 * good each is alone, all of them together, and a PCA of them. */
#ifndef KI_ORDERS_H
#define KI_ORDERS_H

#include "judge/judge.h"

enum { KI_MOST_ORDERS = 16 };

typedef struct ki_orders_options {
    const int64_t *k; /* of R@K */
    int64_t n_k;
    int64_t n, width; /* vectors that end a row, and numbers of each; what is before them is the embedding */
    double recall;    /* of the embedding alone, which is the first */
    int64_t n_components; /* of the PCA, at most: no more than rows and numbers allow */
    bool has_clustering;
} ki_orders_options;

/* R@1 by each vector alone, from the embedding, order 1. */
typedef struct ki_order_recall {
    int64_t n; /* 0: not scored */
    double at_1[1 + KI_MOST_ORDERS];
} ki_order_recall;

/* After a PCA, and after one that divides every component by its standard deviation. */
typedef struct ki_projected {
    ki_scores plain, white;
    kith_intervals intervals; /* of the plain one, as is */
    ki_clustered clustered;
    int64_t dim[2]; /* before and after */
} ki_projected;

typedef struct ki_orders {
    ki_order_recall alone;
    double side_by_side; /* R@1 by all of them without a PCA */
    ki_projected fair;   /* the PCA saw other vectors than those it is judged on */
    /* As `fair`, but every vector is whitened by itself first, on the same others: each component is divided by the root of
     * its variance and a tenth of the mean one. Then the embedding counts as much as all other vectors together. Without
     * clustering, and not whitened again. */
    ki_projected each_white;
    ki_scores first_white; /* of the embedding alone, whitened so */
    /* The PCA was fitted on the very vectors it is judged on. Papers have done so; it is not comparable with the rest,
     * because a query's projection then depends on all other test images. Without clustering. */
    ki_projected transductive;
} ki_orders;

/* Scores by the embedding that begins each row, and R@1 by each of the vectors behind it: one pass of the network serves
 * all. options: k, n, width. */
kith_status ki_judge_each_order(ki_vectors *vectors, const ki_orders_options *options,
                                ki_scores *ret_embedding, ki_order_recall *ret_alone, kith_error *err);

/* All of it; `fitted` are the vectors that the fair PCA is fitted on. The PCAs' products are made by the backend that made
 * the vectors, where it can. */
kith_status ki_judge_orders(ki_vectors *fitted, ki_vectors *test, const ki_orders_options *options,
                            ki_orders *ret_orders, kith_error *err);

#endif
