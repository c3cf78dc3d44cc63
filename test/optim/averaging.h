/* Averages on a backend. Included by one test program each. */
#ifndef TEST_OPTIM_AVERAGING_H
#define TEST_OPTIM_AVERAGING_H

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "optim/average.h"
#include "support/op_check.h"
#include "support/testing.h"

/* Three parts in one slab: two with padding between them, and one behind a gap that is not averaged. */
enum { N_PARTS = 3, SLAB = (1 << 20) + 2048, STEPS = 12 };
static const int64_t part_at[N_PARTS] = {0, 112, 1024}, part_n[N_PARTS] = {100, 33, (1 << 20) + 7};

static ki_real slab[SLAB], found[SLAB];
static double wanted[SLAB];

static void draw(uint32_t step) {
    ki_rng rng = ki_rng_at(3, KI_RNG_TEST, step, 0);
    for (int64_t i = 0; i < SLAB; i++) slab[i] = 0;
    for (int p = 0; p < N_PARTS; p++) {
        for (int64_t i = 0; i < part_n[p]; i++) slab[part_at[p] + i] = (ki_real)(2 * ki_rng_double(&rng) - 1);
    }
}

typedef struct side {
    ki_backend *backend;
    ki_real *memory;
    ki_average *average;
} side;

static void upload(side *s) {
    kith_error err;
    assert_ok(s->backend->type->memory.upload(s->backend, s->memory, slab, sizeof slab, &err), &err);
    assert_ok(s->backend->type->memory.sync(s->backend, &err), &err);
}

static void download(side *s) {
    kith_error err;
    assert_ok(s->backend->type->memory.download(s->backend, s->memory, found, sizeof found, &err), &err);
    assert_ok(s->backend->type->memory.sync(s->backend, &err), &err);
}

static side side_make(const char *device, double decay) {
    side s = {.backend = op_backend(device, NULL)};
    kith_error err;
    void *memory = NULL;
    ki_average_part part[N_PARTS];
    assert_ok(s.backend->type->memory.alloc(s.backend, sizeof slab, &memory, &err), &err);
    s.memory = memory;
    for (int p = 0; p < N_PARTS; p++) part[p] = (ki_average_part){s.memory + part_at[p], part_n[p]};
    draw(0);
    upload(&s);
    assert_ok(ki_average_new(s.backend, part, N_PARTS, decay, &s.average, &err), &err);
    return s;
}

static void side_release(side *s) {
    ki_average_free(s->average);
    s->backend->type->memory.free(s->backend, s->memory);
    ki_backend_close(s->backend);
}

static void side_step(side *s, int64_t t) {
    kith_error err;
    draw((uint32_t)t);
    upload(s);
    assert_ok(ki_average_tick(s->average, t, &err), &err);
    assert_ok(ki_average_launch(s->average, &err), &err);
}

static void check_parts(const char *how, double tolerance) {
    for (int p = 0; p < N_PARTS; p++) {
        for (int64_t i = part_at[p]; i < part_at[p] + part_n[p]; i++) {
            if (!(fabs((double)found[i] - wanted[i]) <= tolerance))
                fail_msg("%s: %.9g at %lld of part %d; wanted %.9g", how, (double)found[i],
                         (long long)(i - part_at[p]), p, wanted[i]);
        }
    }
}

static void get_parts(side *s) {
    kith_error err;
    for (int p = 0; p < N_PARTS; p++)
        assert_ok(ki_average_get(s->average, p, found + part_at[p], &err), &err);
}

/* By the definition, in double: the decay of update t is at most (1 + t) / (10 + t). */
static void check_values(const char *device, double decay) {
    side s = side_make(device, decay);
    for (int64_t i = 0; i < SLAB; i++) wanted[i] = (double)slab[i];
    for (int64_t t = 1; t <= STEPS; t++) {
        const double most = (1 + (double)t) / (10 + (double)t), d = decay < most ? decay : most;
        side_step(&s, t);
        for (int64_t i = 0; i < SLAB; i++) wanted[i] = d * wanted[i] + (1 - d) * (double)slab[i];
    }
    get_parts(&s);
    check_parts(device, 1e-6);
    download(&s);
    for (int64_t i = 0; i < SLAB; i++) wanted[i] = (double)slab[i];
    check_parts("the values", 0);
    side_release(&s);
}

/* A swap shows the averages where the values were, and another brings both back to the bit. */
static void check_swap(const char *device) {
    kith_error err;
    static ki_real values[SLAB], averages[SLAB];
    side s = side_make(device, 0.9);
    for (int64_t t = 1; t <= 3; t++) side_step(&s, t);
    memcpy(values, slab, sizeof slab);
    get_parts(&s);
    memcpy(averages, found, sizeof found);
    for (int swaps = 1; swaps <= 2; swaps++) {
        const ki_real *here = swaps == 1 ? averages : values, *there = swaps == 1 ? values : averages;
        assert_ok(ki_average_swap(s.average, &err), &err);
        download(&s);
        for (int64_t i = 0; i < SLAB; i++) wanted[i] = (double)here[i];
        check_parts("in place of the values", 0);
        get_parts(&s);
        for (int64_t i = 0; i < SLAB; i++) wanted[i] = (double)there[i];
        check_parts("as averages", 0);
    }
    side_release(&s);
}

/* Averages that were read and set in another go on to the same bits. */
static void check_resumed(const char *device) {
    kith_error err;
    static ki_real through[SLAB];
    side a = side_make(device, 0.9), b = side_make(device, 0.9);
    for (int64_t t = 1; t <= 6; t++) {
        side_step(&a, t);
        if (t == 3) {
            get_parts(&a);
            for (int p = 0; p < N_PARTS; p++)
                assert_ok(ki_average_set(b.average, p, found + part_at[p], &err), &err);
        }
        if (t > 3) side_step(&b, t);
    }
    get_parts(&a);
    memcpy(through, found, sizeof found);
    get_parts(&b);
    if (memcmp(through, found, sizeof found) != 0) fail_msg("%s: other bits", device);
    side_release(&a);
    side_release(&b);
}

#endif
