/* Settings of the generalised lifted structure, as a recipe gives them; read by lifted.c and lifted.cu. */
#ifndef KI_OBJECTIVE_LIFTED_H
#define KI_OBJECTIVE_LIFTED_H

typedef struct ki_lifted_settings {
    double margin;
} ki_lifted_settings;

#endif
