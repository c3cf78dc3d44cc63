/* Settings of the entropy regularizer, as a recipe gives them; read by entropy.c and entropy.cu. */
#ifndef KI_OBJECTIVE_ENTROPY_H
#define KI_OBJECTIVE_ENTROPY_H

typedef struct ki_entropy_settings {
    double eta;
} ki_entropy_settings;

#endif
