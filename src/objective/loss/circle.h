/* Settings of the circle loss, as a recipe gives them; read by circle.c and circle.cu. */
#ifndef KI_OBJECTIVE_CIRCLE_H
#define KI_OBJECTIVE_CIRCLE_H

#include <stdbool.h>

typedef struct ki_circle_settings {
    double margin, gamma;
    bool detach;
} ki_circle_settings;

#endif
