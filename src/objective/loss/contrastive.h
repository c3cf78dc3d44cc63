/* Settings of the contrastive loss, as a recipe gives them; read by contrastive.c and contrastive.cu. */
#ifndef KI_OBJECTIVE_CONTRASTIVE_H
#define KI_OBJECTIVE_CONTRASTIVE_H

#include "objective/loss/choices.h"

enum { KI_CONTRASTIVE_MARGIN, KI_CONTRASTIVE_HORDE };

typedef struct ki_contrastive_settings {
    double pos_margin, neg_margin;
    int distance, reduction, form;
} ki_contrastive_settings;

#endif
