/* Settings of NT-Xent, as a recipe gives them; read by ntxent.c and ntxent.cu. */
#ifndef KI_OBJECTIVE_NTXENT_H
#define KI_OBJECTIVE_NTXENT_H

typedef struct ki_ntxent_settings {
    double temperature;
} ki_ntxent_settings;

#endif
