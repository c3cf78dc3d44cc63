/* Settings of the triplet loss, as a recipe gives them; read by triplet.c and triplet.cu. */
#ifndef KI_OBJECTIVE_TRIPLET_H
#define KI_OBJECTIVE_TRIPLET_H

#include "objective/loss/choices.h"

typedef struct ki_triplet_settings {
    double margin;
    int distance, reduction;
} ki_triplet_settings;

#endif
