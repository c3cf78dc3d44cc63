/* Settings of the divergence of heads, as a recipe gives them; read by head_divergence.c and head_divergence.cu. */
#ifndef KI_OBJECTIVE_HEAD_DIVERGENCE_H
#define KI_OBJECTIVE_HEAD_DIVERGENCE_H

enum { KI_HEAD_PAIRS_ALL, KI_HEAD_PAIRS_SELF };

typedef struct ki_head_divergence_settings {
    double margin;
    int pairs;
} ki_head_divergence_settings;

#endif
