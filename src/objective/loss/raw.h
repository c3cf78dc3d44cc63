/* Settings of RAW, as a recipe gives them; read by raw.c and raw.cu. */
#ifndef KI_OBJECTIVE_RAW_H
#define KI_OBJECTIVE_RAW_H

typedef struct ki_raw_settings {
    double alpha, beta, gamma;
} ki_raw_settings;

#endif
