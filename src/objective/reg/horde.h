/* Settings of HORDE, as a recipe gives them; read by horde.c and horde.cu. */
#ifndef KI_OBJECTIVE_HORDE_H
#define KI_OBJECTIVE_HORDE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ki_horde_settings {
    int64_t orders, dimension, embedding;
    bool cascaded, trained;
    double lr_multiplier;
    int init; /* of projections: auto, glorot, signs */
} ki_horde_settings;

#endif
