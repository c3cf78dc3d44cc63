/* Settings of Proxy-NCA, as a recipe gives them; read by proxy_nca.c and proxy_nca.cu. */
#ifndef KI_OBJECTIVE_PROXY_NCA_H
#define KI_OBJECTIVE_PROXY_NCA_H

typedef struct ki_proxy_nca_settings {
    double scale, lr_multiplier;
    double sample; /* the share of the classes that takes part in a step */
    int init;      /* a ki_proxy_init */
} ki_proxy_nca_settings;

#endif
