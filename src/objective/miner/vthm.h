/* Settings of valid-triplet hard mining, as a recipe gives them; read by vthm.c and vthm.cu. */
#ifndef KI_OBJECTIVE_VTHM_H
#define KI_OBJECTIVE_VTHM_H

typedef struct ki_vthm_settings {
    double margin;
} ki_vthm_settings;

#endif
