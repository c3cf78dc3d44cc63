/* Settings and parameters of density adaptivity; read by density.c and density.cu. */
#ifndef KI_OBJECTIVE_DENSITY_H
#define KI_OBJECTIVE_DENSITY_H

#include <stdbool.h>

typedef struct ki_density_settings {
    double eta, alpha, lr_multiplier;
    bool correlation, relative;
} ki_density_settings;

/* The parameters, in order: learned targets, and the densities of the starting network. */
enum { KI_DENSITY_ALPHA, KI_DENSITY_D0 };

#endif
