/* Settings of normalised softmax, as a recipe gives them; read by normsoftmax.c and normsoftmax.cu. */
#ifndef KI_OBJECTIVE_NORMSOFTMAX_H
#define KI_OBJECTIVE_NORMSOFTMAX_H

typedef struct ki_normsoftmax_settings {
    double temperature, lr_multiplier;
    double sample; /* the share of the classes that takes part in a step */
    int init;      /* a ki_proxy_init */
} ki_normsoftmax_settings;

#endif
