/* Settings of Smooth-AP, as a recipe gives them; read by smooth_ap.c and smooth_ap.cu. */
#ifndef KI_OBJECTIVE_SMOOTH_AP_H
#define KI_OBJECTIVE_SMOOTH_AP_H

typedef struct ki_smooth_ap_settings {
    double temperature;
} ki_smooth_ap_settings;

#endif
