/* Settings of distance-weighted sampling, as a recipe gives them; read by distance_weighted.c and .cu. */
#ifndef KI_OBJECTIVE_DISTANCE_WEIGHTED_H
#define KI_OBJECTIVE_DISTANCE_WEIGHTED_H

typedef struct ki_distance_weighted_settings {
    double cutoff, nonzero_loss_cutoff;
} ki_distance_weighted_settings;

#endif
