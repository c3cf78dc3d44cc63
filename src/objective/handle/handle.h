/* What is behind a kith_objective; for the files of this folder and its benchmark. */
#ifndef KI_OBJECTIVE_HANDLE_H
#define KI_OBJECTIVE_HANDLE_H

#include "base/arena.h"
#include "kith/objective.h"
#include "objective/handle/placed.h"
#include "objective/objective.h"

struct kith_objective {
    ki_arena arena; /* the recipe's document */
    ki_objective *core;
    int32_t *label;
    size_t label_capacity;
    float *whole; /* the embedding's gradient with the part that stops */
    size_t whole_capacity;
    kith_term *term;
    size_t term_capacity;
    char device[32];   /* empty: the host */
    ki_placed *placed; /* of the last batch on the device */
};

#endif
