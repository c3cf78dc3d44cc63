/* Rows that are several vectors side by side (HORDE Table 1, dagger: the normalised embedding and every order's): how
 * good each is alone, all of them together, and a PCA of them, fitted on other vectors. */
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

typedef struct ki_orders {
    ki_scores scores; /* after the PCA */
    kith_intervals intervals;
    ki_clustered clustered;
    ki_scores white;                   /* after a whitening PCA */
    int64_t dim[2];                    /* before and after the PCA */
    double recall[1 + KI_MOST_ORDERS]; /* R@1 by each alone, from the embedding, order 1 */
    int64_t n;
    double side_by_side; /* R@1 by all of them without the PCA */
} ki_orders;

/* The PCA's products are made by the backend that made the vectors, where it can. */
kith_status ki_judge_orders(ki_vectors *fitted, ki_vectors *test, const ki_orders_options *options,
                            ki_orders *ret_orders, kith_error *err);

#endif
