/* Settings of N-pair tuples, as a recipe gives them; read by tuples.c and tuples.cu. */
#ifndef KI_OBJECTIVE_TUPLES_H
#define KI_OBJECTIVE_TUPLES_H

enum { KI_TUPLES_ALL, KI_TUPLES_ONE };

typedef struct ki_tuples_settings {
    int positives;
} ki_tuples_settings;

/* Bits of a lot: a float can hold it exactly, on a device, too. */
enum { KI_TUPLES_BITS = 24 };

#endif
