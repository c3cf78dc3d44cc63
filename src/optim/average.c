/* Averages of values. An average moves to the value as plain gradient descent with the rate 1 - d does along average - value. That is
 * the backends' sgd with value as the gradient, scaled by -1, and a weight decay of 1: no backend needs a kernel more. */
#include "optim/average.h"

#include <string.h>

#include "base/alloc.h"

enum { ALIGN = KI_ALIGN / sizeof(ki_real), MOST_SWAPPED = 1 << 20 };

struct ki_average {
    ki_backend *backend;
    double decay;
    ki_optim_step step;
    ki_optim_run *runs; /* value: the average; diff: what is averaged */
    int64_t *at;        /* of each part in `slab` */
    int64_t *count;
    int64_t n; /* of the slab */
    ki_real *slab, *room;
    ki_optim_clock clock, *device_clock;
};

/* Parts that lie one behind the other, with padding between them, are one run. */
static void make_runs(ki_average *a, const ki_average_part *parts, int n_parts) {
    int n = 0;
    for (int i = 0; i < n_parts; i++) {
        ki_optim_run *last = n > 0 ? &a->runs[n - 1] : NULL;
        const ki_average_part *p = &parts[i];
        const int64_t padded = last ? (last->n + ALIGN - 1) / ALIGN * ALIGN : 0;
        if (last && last->diff + padded == p->value) {
            a->n += padded - last->n;
            last->n = padded;
        } else {
            a->n = (a->n + ALIGN - 1) / ALIGN * ALIGN;
            last = &a->runs[n++];
            *last = (ki_optim_run){.diff = p->value, .lr = 1, .decay = 1};
        }
        a->at[i] = a->n;
        a->count[i] = p->n;
        last->n += p->n;
        a->n += p->n;
    }
    a->step = (ki_optim_step){.kind = KI_OPTIM_SGD, .diff_scale = -1, .n_runs = n, .runs = a->runs};
}

static kith_status alloc(ki_average *a, size_t bytes, void **ret, kith_error *err) {
    return a->backend->type->memory.alloc(a->backend, bytes ? bytes : 1, ret, err);
}

static kith_status copy(ki_average *a, void *dst, const void *src, int64_t n, kith_error *err) {
    return a->backend->type->queues->copy(a->backend, KI_QUEUE_MAIN, dst, src, (size_t)n * sizeof(ki_real),
                                          err);
}

static kith_status make_memory(ki_average *a, kith_error *err) {
    void *memory = NULL;
    KI_TRY(alloc(a, (size_t)a->n * sizeof(ki_real), &memory, err));
    a->slab = memory;
    KI_TRY(alloc(a, (size_t)(a->n < MOST_SWAPPED ? a->n : MOST_SWAPPED) * sizeof(ki_real), &memory, err));
    a->room = memory;
    KI_TRY(alloc(a, sizeof *a->device_clock, &memory, err));
    a->step.clock = a->device_clock = memory;
    ki_real *to = a->slab;
    for (int i = 0; i < a->step.n_runs; i++) {
        ki_optim_run *run = &a->runs[i];
        to = a->slab + ((to - a->slab) + ALIGN - 1) / ALIGN * ALIGN;
        run->value = to;
        to += run->n;
        KI_TRY(copy(a, run->value, run->diff, run->n, err));
    }
    return a->backend->type->memory.sync(a->backend, err);
}

kith_status ki_average_new(ki_backend *backend, const ki_average_part *parts, int n_parts, double decay,
                           ki_average **ret_average, kith_error *err) {
    kith_status status;
    ki_average *a = NULL;
    const size_t n = (size_t)n_parts;
    KI_CHECK(ki_zalloc_or(&a, 1, sizeof *a, "averages", err));
    a->backend = backend;
    a->decay = decay;
    KI_CHECK(ki_zalloc_or(&a->runs, n, sizeof *a->runs, "averages", err));
    KI_CHECK(ki_zalloc_or(&a->at, n, sizeof *a->at, "averages", err));
    KI_CHECK(ki_zalloc_or(&a->count, n, sizeof *a->count, "averages", err));
    make_runs(a, parts, n_parts);
    KI_CHECK(make_memory(a, err));
    *ret_average = a;
    a = NULL;
done:
    ki_average_free(a);
    return status;
}

void ki_average_free(ki_average *a) {
    if (!a) return;
    void *const device[] = {a->slab, a->room, a->device_clock};
    for (size_t i = 0; i < sizeof device / sizeof device[0]; i++) {
        if (device[i]) a->backend->type->memory.free(a->backend, device[i]);
    }
    ki_free(a->runs);
    ki_free(a->at);
    ki_free(a->count);
    ki_free(a);
}

kith_status ki_average_tick(ki_average *a, int64_t t, kith_error *err) {
    const double most = (1 + (double)t) / (10 + (double)t);
    a->clock = (ki_optim_clock){.lr = 1 - (a->decay < most ? a->decay : most), .t = t};
    return a->backend->type->memory.upload(a->backend, a->device_clock, &a->clock, sizeof a->clock, err);
}

kith_status ki_average_launch(ki_average *a, kith_error *err) {
    return a->backend->type->optimizers.update(a->backend, &a->step, err);
}

/* In pieces, through room for one. */
static kith_status swap_run(ki_average *a, const ki_optim_run *run, kith_error *err) {
    ki_real *value = (ki_real *)(uintptr_t)run->diff;
    for (int64_t at = 0; at < run->n; at += MOST_SWAPPED) {
        const int64_t n = run->n - at < MOST_SWAPPED ? run->n - at : MOST_SWAPPED;
        KI_TRY(copy(a, a->room, value + at, n, err));
        KI_TRY(copy(a, value + at, run->value + at, n, err));
        KI_TRY(copy(a, run->value + at, a->room, n, err));
    }
    return KITH_OK;
}

kith_status ki_average_swap(ki_average *a, kith_error *err) {
    for (int i = 0; i < a->step.n_runs; i++) KI_TRY(swap_run(a, &a->runs[i], err));
    return KITH_OK;
}

kith_status ki_average_get(const ki_average *a, int i, ki_real *ret_value, kith_error *err) {
    KI_TRY(a->backend->type->memory.download(a->backend, a->slab + a->at[i], ret_value,
                                             (size_t)a->count[i] * sizeof *ret_value, err));
    return a->backend->type->memory.sync(a->backend, err);
}

kith_status ki_average_set(ki_average *a, int i, const ki_real *value, kith_error *err) {
    KI_TRY(a->backend->type->memory.upload(a->backend, a->slab + a->at[i], value,
                                           (size_t)a->count[i] * sizeof *value, err));
    return a->backend->type->memory.sync(a->backend, err);
}
