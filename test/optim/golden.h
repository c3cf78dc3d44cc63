/* Every case of test/golden/optim/optim.safetensors on one backend; built in float and in double. */
#ifndef KITH_TEST_OPTIM_GOLDEN_H
#define KITH_TEST_OPTIM_GOLDEN_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "io/yaml.h"
#include "kith/array.h"
#include "optim/optim.h"
#include "support/testing.h"

enum { GOLDEN_STEPS = 20, GOLDEN_N = 61, GOLDEN_PARAMS = 4 };

static const struct {
    const char *name;
    int64_t n;
    ki_optim_group group;
} golden_params[GOLDEN_PARAMS] = {{"conv1.weight", 37, KI_OPTIM_BACKBONE},
                                  {"conv1.bias", 5, KI_OPTIM_BACKBONE},
                                  {"embedding.weight", 11, KI_OPTIM_EMBEDDING},
                                  {"proxies", 8, KI_OPTIM_PROXIES}};

/* Four parameters one behind the other in backend memory. */
typedef struct golden_run {
    ki_backend *backend;
    ki_real *value, *diff;
    ki_optim_param param[GOLDEN_PARAMS];
} golden_run;

static inline void golden_init(golden_run *run, const char *device) {
    kith_error err = {0};
    void *ptr = NULL;
    *run = (golden_run){0};
    assert_ok(ki_backend_open(device, NULL, &run->backend, &err), &err);
    assert_ok(run->backend->type->memory.alloc(run->backend, GOLDEN_N * sizeof(ki_real), &ptr, &err), &err);
    run->value = ptr;
    assert_ok(run->backend->type->memory.alloc(run->backend, GOLDEN_N * sizeof(ki_real), &ptr, &err), &err);
    run->diff = ptr;
    int64_t at = 0;
    for (int i = 0; i < GOLDEN_PARAMS; i++) {
        run->param[i] = (ki_optim_param){.name = golden_params[i].name,
                                         .n = golden_params[i].n,
                                         .value = run->value + at,
                                         .diff = run->diff + at,
                                         .is_objective = golden_params[i].group == KI_OPTIM_PROXIES};
        at += golden_params[i].n;
    }
}

static inline void golden_release(golden_run *run) {
    run->backend->type->memory.free(run->backend, run->value);
    run->backend->type->memory.free(run->backend, run->diff);
    ki_backend_close(run->backend);
}

static inline void golden_upload(golden_run *run, ki_real *dst, const float *from) {
    ki_real host[GOLDEN_N];
    kith_error err = {0};
    for (int i = 0; i < GOLDEN_N; i++) host[i] = (ki_real)from[i];
    assert_ok(run->backend->type->memory.upload(run->backend, dst, host, sizeof host, &err), &err);
    assert_ok(run->backend->type->memory.sync(run->backend, &err), &err);
}

/* "NAME/KEY" or NULL. */
static inline const double *golden_reals(const kith_tensors *file, const char *name, const char *key) {
    char full[100];
    kith_array view;
    snprintf(full, sizeof full, "%s/%s", name, key);
    return kith_tensors_get(file, full, &view, NULL) == KITH_OK ? view.data : NULL;
}

static inline const float *golden_floats(const kith_tensors *file, const char *name) {
    kith_array view;
    kith_error err = {0};
    assert_ok(kith_tensors_get(file, name, &view, &err), &err);
    return view.data;
}

static inline void golden_settings(const char *text, ki_arena *arena, ki_optim_settings *ret) {
    kith_error err = {0};
    ki_value *root = NULL;
    assert_ok(ki_yaml_parse(text, strlen(text), "recipe", arena, &root, &err), &err);
    assert_ok(ki_optim_parse(root, ret, &err), &err);
}

static inline void golden_check_close(const char *device, const char *name, const char *what, double found,
                                      double wanted, double tolerance) {
    if (!(fabs(found - wanted) <= tolerance * (1 + fabs(wanted))))
        fail_msg("%s on %s: %s is %.12g, wanted %.12g", name, device, what, found, wanted);
}

static inline void golden_check_norms(golden_run *run, ki_optim *optim, const double *by_param,
                                      const char *device, const char *name, double tolerance) {
    kith_error err = {0};
    double found[KI_OPTIM_N_GROUPS], wanted[KI_OPTIM_N_GROUPS] = {0};
    (void)run;
    for (int i = 0; i < GOLDEN_PARAMS; i++) wanted[golden_params[i].group] += by_param[i] * by_param[i];
    assert_ok(ki_optim_norms(optim, found, &err), &err);
    for (int g = 0; g < KI_OPTIM_N_GROUPS; g++)
        golden_check_close(device, name, ki_optim_group_name((ki_optim_group)g), found[g], sqrt(wanted[g]),
                           tolerance);
}

/* Sums of all "….m" or all "….v". */
static inline void golden_check_states(ki_optim *optim, const double *wanted, char kind, const char *device,
                                       const char *name, double tolerance) {
    kith_error err = {0};
    double sum = 0;
    int n = 0;
    for (int i = 0; i < ki_optim_n_states(optim); i++) {
        const char *state = ki_optim_state_name(optim, i);
        ki_real value[GOLDEN_N];
        if (state[strlen(state) - 1] != kind) continue;
        assert_ok(ki_optim_state_get(optim, i, value, &err), &err);
        for (int64_t k = 0; k < ki_optim_state_count(optim, i); k++) sum += (double)value[k];
        n++;
    }
    if ((n > 0) != (wanted != NULL)) fail_msg("%s on %s: %d arrays .%c", name, device, n, kind);
    if (wanted)
        golden_check_close(device, name, kind == 'm' ? "sum of m" : "sum of v", sum, *wanted, tolerance);
}

static inline void golden_case(const kith_tensors *file, const char *device, const char *name,
                               double tolerance) {
    kith_error err = {0};
    ki_arena arena = {0};
    ki_optim_settings settings;
    golden_run run;
    ki_optim *optim = NULL;
    golden_init(&run, device);
    golden_settings(kith_tensors_metadata(file, name), &arena, &settings);
    assert_ok(ki_optim_new(run.backend, run.param, GOLDEN_PARAMS, &settings, &optim, &err), &err);
    golden_upload(&run, run.value, golden_floats(file, "value"));
    const float *diffs = golden_floats(file, "diffs");
    const double *rates = golden_reals(file, name, "lr"), *wanted = golden_reals(file, name, "value");
    for (int64_t t = 0; t < GOLDEN_STEPS; t++) {
        const double lr = ki_schedule_at(&settings.schedule, t, GOLDEN_STEPS).lr;
        golden_check_close(device, name, "lr", lr, rates[t], 1e-14);
        golden_upload(&run, run.diff, diffs + t * GOLDEN_N);
        assert_ok(ki_optim_update(optim, lr, &err), &err);
    }
    ki_real found[GOLDEN_N];
    assert_ok(run.backend->type->memory.download(run.backend, run.value, found, sizeof found, &err), &err);
    assert_ok(run.backend->type->memory.sync(run.backend, &err), &err);
    for (int i = 0; i < GOLDEN_N; i++)
        golden_check_close(device, name, "a value", (double)found[i], wanted[i], tolerance);
    golden_check_norms(&run, optim, golden_reals(file, name, "norm"), device, name, tolerance);
    golden_check_states(optim, golden_reals(file, name, "m"), 'm', device, name, tolerance);
    golden_check_states(optim, golden_reals(file, name, "v"), 'v', device, name, tolerance);
    ki_optim_free(optim);
    golden_release(&run);
    ki_arena_release(&arena);
}

static inline kith_tensors *golden_open(void) {
    kith_error err = {0};
    kith_tensors *file = NULL;
    assert_ok(kith_tensors_open(KITH_SOURCE_DIR "/test/golden/optim/optim.safetensors", &file, &err), &err);
    return file;
}

/* All cases: those whose learning rates are there. */
static inline void golden_all(const char *device, double tolerance) {
    kith_tensors *file = golden_open();
    int n = 0;
    for (int64_t i = 0; i < kith_tensors_count(file); i++) {
        char name[100];
        snprintf(name, sizeof name, "%s", kith_tensors_name(file, i));
        char *slash = strchr(name, '/');
        if (!slash || strcmp(slash, "/lr") != 0) continue;
        *slash = '\0';
        golden_case(file, device, name, tolerance);
        n++;
    }
    print_message("%s: %d cases\n", device, n);
    assert_true(n >= 21);
    kith_tensors_free(file);
}

#endif
