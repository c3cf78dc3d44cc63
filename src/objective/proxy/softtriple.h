/* Settings of SoftTriple, as a recipe gives them; read by softtriple.c and softtriple.cu. */
#ifndef KI_OBJECTIVE_SOFTTRIPLE_H
#define KI_OBJECTIVE_SOFTTRIPLE_H

#include <stdint.h>

/* Added under the root of a distance between two centers, as in the authors' code. */
#define KI_SOFTTRIPLE_EPS 1e-5

typedef struct ki_softtriple_settings {
    double la, gamma, tau, margin, lr_multiplier;
    double sample; /* the share of the classes that takes part in a step */
    int init;      /* a ki_proxy_init */
    int64_t centers;
} ki_softtriple_settings;

#endif
