/* Golden cases (test/golden/objective) as batches and objectives, for tests in float and in double.
 * Included by one test program each; everything is static. */
#ifndef KITH_TEST_OBJECTIVE_CASES_H
#define KITH_TEST_OBJECTIVE_CASES_H

#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "io/yaml.h"
#include "kith/array.h"
#include "objective/objective.h"
#include "support/testing.h"

enum { CASES_N_CLASSES = 70 }; /* as golden.py has it */

/* One objective with what its section lives in. */
typedef struct made {
    ki_arena arena;
    ki_objective *objective;
} made;

static inline kith_status made_try(const char *text, const ki_sizes *sizes, made *ret, kith_error *err) {
    ki_value *root = NULL;
    memset(ret, 0, sizeof *ret);
    kith_status status = ki_yaml_parse(text, strlen(text), "recipe", &ret->arena, &root, err);
    if (status == KITH_OK) status = ki_objective_new(root, sizes, 7, &ret->objective, err);
    if (status != KITH_OK) ki_arena_release(&ret->arena);
    return status;
}

static inline made made_of(const char *text, const ki_sizes *sizes) {
    kith_error err = {0};
    made m;
    const kith_status status = made_try(text, sizes, &m, &err);
    if (status != KITH_OK) fail_msg("%s\n%s (%s)", text, err.message, err.hint);
    return m;
}

static inline void made_free(made *m) {
    ki_objective_free(m->objective);
    ki_arena_release(&m->arena);
}

/* An array of the file as ki_real; NULL when it is not there. Give back with ki_free. */
static inline ki_real *golden_reals(const kith_tensors *file, const char *name, kith_array *ret_view) {
    kith_array view, wide;
    int64_t i_name = 0;
    while (i_name < kith_tensors_count(file) && strcmp(kith_tensors_name(file, i_name), name) != 0) i_name++;
    if (i_name == kith_tensors_count(file)) return NULL;
    assert_int_equal(kith_tensors_get(file, name, &view, NULL), KITH_OK);
    assert_int_equal(kith_array_convert(&view, KITH_F64, &wide, NULL), KITH_OK);
    const int64_t n = kith_array_count(&wide);
    ki_real *out = ki_alloc((size_t)n + 1, sizeof *out);
    for (int64_t i = 0; i < n; i++) out[i] = (ki_real)((double *)wide.data)[i];
    kith_array_release(&wide);
    if (ret_view) *ret_view = view;
    return out;
}

/* One case on one batch, ready to be evaluated. */
typedef struct golden_case {
    const kith_tensors *file;
    char name[96], shape[32], key[160]; /* key: "NAME@SHAPE/" */
    const char *recipe;
    ki_batch batch;
    ki_sizes sizes;
    int32_t *label;
    ki_real *tap[KI_N_TAPS];
    made made;
} golden_case;

static inline void case_tap(golden_case *c, ki_tap tap, const char *name) {
    char full[256];
    kith_array view;
    snprintf(full, sizeof full, "%s/%s", c->shape, name);
    c->tap[tap] = golden_reals(c->file, full, &view);
    if (!c->tap[tap]) return;
    ki_tap_data data = {.data = c->tap[tap], .rows = view.dim[0], .cols = 1};
    for (int i = 1; i < view.n_dims; i++) data.cols *= view.dim[i];
    if (view.n_dims == 4) data.c = view.dim[1], data.hw = view.dim[2] * view.dim[3];
    c->batch.tap[tap] = data;
}

/* Fill in `c` for a tensor named "NAME@SHAPE/value"; false for other tensors. */
static inline bool case_open(const kith_tensors *file, const char *tensor, golden_case *c) {
    const char *at = strchr(tensor, '@'), *slash = at ? strchr(at, '/') : NULL;
    if (!slash || strcmp(slash, "/value") != 0) return false;
    memset(c, 0, sizeof *c);
    c->file = file;
    snprintf(c->name, sizeof c->name, "%.*s", (int)(at - tensor), tensor);
    snprintf(c->shape, sizeof c->shape, "%.*s", (int)(slash - at - 1), at + 1);
    snprintf(c->key, sizeof c->key, "%.*s/", (int)(slash - tensor), tensor);
    c->recipe = kith_tensors_metadata(file, c->name);
    if (!c->recipe) fail_msg("case %s has no recipe", c->name);
    char full[256];
    kith_array view;
    snprintf(full, sizeof full, "%s/y", c->shape);
    ki_real *y = golden_reals(file, full, &view);
    c->batch.m = view.dim[0];
    c->label = ki_alloc((size_t)c->batch.m, sizeof *c->label);
    for (int64_t i = 0; i < c->batch.m; i++) c->label[i] = (int32_t)y[i];
    ki_free(y);
    c->batch.label = c->label;
    case_tap(c, KI_TAP_EMBEDDING, "x");
    case_tap(c, KI_TAP_POOLED, "pooled");
    case_tap(c, KI_TAP_MAP, "map");
    case_tap(c, KI_TAP_TEACHER, "teacher");
    c->sizes = (ki_sizes){.n_classes = CASES_N_CLASSES,
                          .embedding = c->batch.tap[KI_TAP_EMBEDDING].cols,
                          .pooled = c->batch.tap[KI_TAP_POOLED].cols,
                          .map = c->batch.tap[KI_TAP_MAP].c,
                          .teacher = {c->batch.tap[KI_TAP_TEACHER].cols}};
    const char *heads = strstr(c->recipe, "# heads ");
    if (heads) c->sizes.heads = atoi(heads + strlen("# heads "));
    /* The embedding layer's weight matrix is an input like the taps, but is stored with the state. */
    snprintf(full, sizeof full, "%sstate/embedding.weight", c->key);
    c->tap[KI_TAP_WEIGHT] = golden_reals(file, full, &view);
    if (c->tap[KI_TAP_WEIGHT])
        c->batch.tap[KI_TAP_WEIGHT] =
            (ki_tap_data){.data = c->tap[KI_TAP_WEIGHT], .rows = view.dim[0], .cols = view.dim[1]};
    c->made = made_of(c->recipe, &c->sizes);
    for (size_t i = 0;; i++) {
        ki_state *param = ki_objective_param(c->made.objective, i);
        if (!param) break;
        char state[256];
        snprintf(state, sizeof state, "%sstate/%s", c->key, param->name);
        ki_real *values = golden_reals(file, state, &view);
        if (!values) continue;
        if (kith_array_count(&view) != param->count)
            fail_msg("%s has another size than the parameter", state);
        memcpy(param->value, values, (size_t)param->count * sizeof *values);
        ki_free(values);
    }
    return true;
}

static inline void case_close(golden_case *c) {
    made_free(&c->made);
    ki_free(c->label);
    for (int tap = 0; tap < KI_N_TAPS; tap++) ki_free(c->tap[tap]);
}

/* What rounding alone may leave of a gradient: where all points coincide the pair weights cancel to 0 exactly, in
 * float32 to their own rounding, and in the float64 reference not quite. */
static inline double case_rounding(golden_case *c) {
    kith_error err = {0};
    ki_real *weight = NULL;
    int64_t n = 0;
    double sum = 0;
    if (ki_objective_weights(c->made.objective, &c->batch, &weight, NULL, &n, &err) == KITH_OK) {
        for (int64_t i = 0; i < c->batch.m * n; i++) sum += fabs((double)weight[i]);
    }
    ki_free(weight);
    return 4e-7 * (1 + sum);
}

/* Call fn for every case of every golden file; returns how many there were. */
static inline int cases_walk(void (*fn)(golden_case *c)) {
    glob_t found;
    int n = 0;
    assert_int_equal(glob(KITH_SOURCE_DIR "/test/golden/objective/*.safetensors", 0, NULL, &found), 0);
    for (size_t f = 0; f < found.gl_pathc; f++) {
        kith_tensors *file = NULL;
        kith_error err = {0};
        assert_ok(kith_tensors_open(found.gl_pathv[f], &file, &err), &err);
        for (int64_t i = 0; i < kith_tensors_count(file); i++) {
            golden_case c;
            if (!case_open(file, kith_tensors_name(file, i), &c)) continue;
            fn(&c);
            case_close(&c);
            n++;
        }
        kith_tensors_free(file);
    }
    globfree(&found);
    return n;
}

#endif
