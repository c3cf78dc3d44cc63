/* Settings of Proxy-Anchor, as a recipe gives them; read by proxy_anchor.c and proxy_anchor.cu. */
#ifndef KI_OBJECTIVE_PROXY_ANCHOR_H
#define KI_OBJECTIVE_PROXY_ANCHOR_H

typedef struct ki_proxy_anchor_settings {
    double alpha, delta, lr_multiplier;
    double sample; /* the share of the classes that takes part in a step */
    int init;      /* a ki_proxy_init */
} ki_proxy_anchor_settings;

#endif
