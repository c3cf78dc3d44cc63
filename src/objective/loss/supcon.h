/* Settings of the supervised contrastive loss, as a recipe gives them; read by supcon.c and supcon.cu. */
#ifndef KI_OBJECTIVE_SUPCON_H
#define KI_OBJECTIVE_SUPCON_H

typedef struct ki_supcon_settings {
    double temperature;
} ki_supcon_settings;

#endif
