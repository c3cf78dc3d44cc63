/* A small batch with every tap, for tests of regularizers. Included by one test program each. */
#ifndef KITH_TEST_OBJECTIVE_TAPS_H
#define KITH_TEST_OBJECTIVE_TAPS_H

#include "base/rng.h"
#include "objective/cases.h"

enum { TAPS_M = 24, TAPS_D = 8, TAPS_C = 6, TAPS_HW = 9, TAPS_W = 7, TAPS_CLASSES = 9 };

typedef struct taps {
    ki_real x[TAPS_M * TAPS_D], pooled[TAPS_M * TAPS_C], map[TAPS_M * TAPS_C * TAPS_HW],
        weight[TAPS_D * TAPS_C], teacher[2][TAPS_M * TAPS_W];
    int32_t label[TAPS_M];
    ki_batch batch;
} taps;

static const ki_sizes taps_sizes = {.n_classes = TAPS_CLASSES,
                                    .embedding = TAPS_D,
                                    .pooled = TAPS_C,
                                    .map = TAPS_C,
                                    .teacher = {TAPS_W, TAPS_W}};

/* 6 classes of 4; the batch points into t. */
static inline void taps_fill(taps *t, uint32_t seed) {
    ki_rng rng = ki_rng_at(seed, KI_RNG_TEST, 1, 0);
    for (int i = 0; i < TAPS_M; i++) {
        t->label[i] = i / 4;
        for (int k = 0; k < TAPS_D; k++)
            t->x[i * TAPS_D + k] = (ki_real)(ki_rng_normal(&rng) + (k == t->label[i]));
    }
    for (size_t i = 0; i < N_ROWS(t->pooled); i++) t->pooled[i] = (ki_real)fabs(ki_rng_normal(&rng));
    for (size_t i = 0; i < N_ROWS(t->map); i++) t->map[i] = (ki_real)fmax(0, ki_rng_normal(&rng));
    for (size_t i = 0; i < N_ROWS(t->weight); i++) t->weight[i] = (ki_real)ki_rng_normal(&rng);
    for (int k = 0; k < 2 * TAPS_M * TAPS_W; k++) t->teacher[k % 2][k / 2] = (ki_real)ki_rng_normal(&rng);
    t->batch = (ki_batch){.m = TAPS_M, .label = t->label};
    for (int k = 0; k < 2; k++)
        t->batch.tap[ki_tap_of_teacher(k)] =
            (ki_tap_data){.data = t->teacher[k], .rows = TAPS_M, .cols = TAPS_W};
    t->batch.tap[KI_TAP_EMBEDDING] = (ki_tap_data){.data = t->x, .rows = TAPS_M, .cols = TAPS_D};
    t->batch.tap[KI_TAP_POOLED] = (ki_tap_data){.data = t->pooled, .rows = TAPS_M, .cols = TAPS_C};
    t->batch.tap[KI_TAP_MAP] =
        (ki_tap_data){.data = t->map, .rows = TAPS_M, .cols = TAPS_C * TAPS_HW, .c = TAPS_C, .hw = TAPS_HW};
    t->batch.tap[KI_TAP_WEIGHT] = (ki_tap_data){.data = t->weight, .rows = TAPS_D, .cols = TAPS_C};
}

/* A regularizer's recipe with a loss beside it and sizes that fit the batch. */
static inline const char *taps_recipe(const char *loss, const char *reg, char *buf, size_t bytes) {
    snprintf(buf, bytes, "loss: {name: %s}\nregularizers: [{name: %s%s}]", loss, reg,
             strcmp(reg, "horde") == 0 ? ", orders: 3, dimension: 5, embedding: 4" : "");
    return buf;
}

#endif
