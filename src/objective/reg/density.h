/* Settings and parameters of density adaptivity; read by density.c and density.cu. */
#ifndef KI_OBJECTIVE_DENSITY_H
#define KI_OBJECTIVE_DENSITY_H

#include <stdbool.h>

typedef struct ki_density_settings {
    double eta, alpha, lr_multiplier;
    bool correlation, relative, d0_unit;
    int d0; /* KI_DENSITY_START … */
} ki_density_settings;

/* Where original densities come from: the starting network, or the present batch. */
enum { KI_DENSITY_START, KI_DENSITY_BATCH };

/* The parameters, in order: learned targets, and the densities of the starting network. */
enum { KI_DENSITY_ALPHA, KI_DENSITY_D0 };

#endif
