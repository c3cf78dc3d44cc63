/* Settings of the angular loss, as a recipe gives them; read by angular.c and angular.cu. */
#ifndef KI_OBJECTIVE_ANGULAR_H
#define KI_OBJECTIVE_ANGULAR_H

typedef struct ki_angular_settings {
    double angle;
} ki_angular_settings;

#endif
