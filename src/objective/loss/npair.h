/* Settings of the N-pair loss, as a recipe gives them; read by npair.c and npair.cu. */
#ifndef KI_OBJECTIVE_NPAIR_H
#define KI_OBJECTIVE_NPAIR_H

enum { KI_NPAIR_MEAN, KI_NPAIR_SUM };

typedef struct ki_npair_settings {
    double scale, l2;
    int reduction;
} ki_npair_settings;

#endif
