/* Settings of binomial deviance, as a recipe gives them; read by binomial.c and binomial.cu. */
#ifndef KI_OBJECTIVE_BINOMIAL_H
#define KI_OBJECTIVE_BINOMIAL_H

enum {
    KI_BINOMIAL_ANCHOR,
    KI_BINOMIAL_SUM,
    KI_BINOMIAL_MEAN,
    KI_BINOMIAL_ANCHOR_ALL,
    KI_BINOMIAL_ANCHOR_SUM
};

typedef struct ki_binomial_settings {
    double alpha, beta, gamma;
    int reduction;
} ki_binomial_settings;

#endif
