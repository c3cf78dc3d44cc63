/* Settings of ArcFace, as a recipe gives them; read by arcface.c and arcface.cu. */
#ifndef KI_OBJECTIVE_ARCFACE_H
#define KI_OBJECTIVE_ARCFACE_H

typedef struct ki_arcface_settings {
    double scale, margin, lr_multiplier;
    double sample; /* the share of the classes that takes part in a step */
    int init;      /* a ki_proxy_init */
} ki_arcface_settings;

#endif
