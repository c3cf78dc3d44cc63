/* Settings of additive-margin softmax, as a recipe gives them; read by amsoftmax.c and amsoftmax.cu. */
#ifndef KI_OBJECTIVE_AMSOFTMAX_H
#define KI_OBJECTIVE_AMSOFTMAX_H

typedef struct ki_amsoftmax_settings {
    double scale, margin, lr_multiplier;
    double sample; /* the share of the classes that takes part in a step */
    int init;      /* a ki_proxy_init */
} ki_amsoftmax_settings;

#endif
