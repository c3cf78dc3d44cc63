/* Settings of pair margins, as a recipe gives them; read by pair_margin.c and pair_margin.cu. */
#ifndef KI_OBJECTIVE_PAIR_MARGIN_H
#define KI_OBJECTIVE_PAIR_MARGIN_H

typedef struct ki_pair_margin_settings {
    double pos_margin, neg_margin;
} ki_pair_margin_settings;

#endif
