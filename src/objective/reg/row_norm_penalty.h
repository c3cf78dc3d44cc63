/* Settings of the row norm penalty, as a recipe gives them; read by row_norm_penalty.c and row_norm_penalty.cu. */
#ifndef KI_OBJECTIVE_ROW_NORM_PENALTY_H
#define KI_OBJECTIVE_ROW_NORM_PENALTY_H

typedef struct ki_row_norm_penalty_settings {
    double lam;
} ki_row_norm_penalty_settings;

#endif
