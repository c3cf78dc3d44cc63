/* Settings of energy confusion, as a recipe gives them; read by energy_confusion.c and energy_confusion.cu. */
#ifndef KI_OBJECTIVE_ENERGY_CONFUSION_H
#define KI_OBJECTIVE_ENERGY_CONFUSION_H

#include <stdint.h>

enum { KI_ENERGY_LINEAR, KI_ENERGY_LOG1P, KI_ENERGY_LOG };
enum { KI_ENERGY_SUM, KI_ENERGY_MEAN };

/* The ln of a smaller number is replaced by the ln of this one, without a gradient: all points coincide. */
#define KI_LEAST_ENERGY 1e-30

typedef struct ki_energy_confusion_settings {
    int form, reduction;
    int64_t pairs;
} ki_energy_confusion_settings;

#endif
