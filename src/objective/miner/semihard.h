/* Settings of semi-hard triplets, as a recipe gives them; read by semihard.c and semihard.cu. */
#ifndef KI_OBJECTIVE_SEMIHARD_H
#define KI_OBJECTIVE_SEMIHARD_H

typedef struct ki_semihard_settings {
    double margin;
} ki_semihard_settings;

#endif
