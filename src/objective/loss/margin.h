/* Settings of the margin loss, as a recipe gives them; read by margin.c and margin.cu. */
#ifndef KI_OBJECTIVE_MARGIN_H
#define KI_OBJECTIVE_MARGIN_H

#include <stdbool.h>

#include "objective/loss/choices.h"

typedef struct ki_margin_settings {
    double alpha, beta, nu, lr_multiplier;
    bool per_class;
    int reduction;
} ki_margin_settings;

#endif
