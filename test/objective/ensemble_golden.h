/* The small ensemble on one backend against PyTorch (test/golden/ensemble): value, taps and the gradient of every parameter
 * and of the input, to 1e-5 relative L2. Included by one test program each. */
#ifndef KITH_TEST_ENSEMBLE_GOLDEN_H
#define KITH_TEST_ENSEMBLE_GOLDEN_H

#include "objective/ensemble.h"

static kith_tensors *ensemble_file;

static inline void ensemble_near(const char *backend, const char *prefix, const char *name,
                                 const ki_real *found, int64_t n) {
    char full[96];
    kith_array view;
    double off = 0, size = 0;
    snprintf(full, sizeof full, "%s%s", prefix, name);
    ki_real *wanted = golden_reals(ensemble_file, full, &view);
    if (!wanted) fail_msg("no %s in the golden file", full);
    assert_int_equal(kith_array_count(&view), n);
    for (int64_t i = 0; i < n; i++) {
        off += pow((double)found[i] - (double)wanted[i], 2);
        size += pow((double)wanted[i], 2);
    }
    if (!(sqrt(off) <= 1e-5 * sqrt(size)))
        fail_msg("%s: %s is off by %.3g relative L2", backend, full, sqrt(off / size));
    ki_free(wanted);
}

static inline void ensemble_take(const char *name, ki_real *to, int64_t n) {
    kith_array view;
    ki_real *from = golden_reals(ensemble_file, name, &view);
    if (!from) fail_msg("no %s in the golden file", name);
    assert_int_equal(kith_array_count(&view), n);
    memcpy(to, from, (size_t)n * sizeof *to);
    ki_free(from);
}

static inline void ensemble_check(const char *name, ki_backend *backend) {
    kith_error err = {0};
    ensemble e;
    ki_result result;
    kith_array value;
    assert_ok(
        kith_tensors_open(KITH_SOURCE_DIR "/test/golden/ensemble/ensemble.safetensors", &ensemble_file, &err),
        &err);
    ensemble_init(&e, backend);
    ki_real *buffer = ki_alloc(ENSEMBLE_INPUT, sizeof *buffer);
    ensemble_take("input", e.input, ENSEMBLE_INPUT);
    for (int i = 0; i < ki_params_count(e.params); i++) {
        const ki_param *p = ki_params_at(e.params, i);
        if (!p->trained) continue;
        ensemble_take(p->name, buffer, p->n);
        assert_ok(ki_params_set(e.params, p, buffer, &err), &err);
        assert_ok(backend->type->memory.sync(backend, &err), &err);
    }
    for (size_t i = 0; ki_objective_param(e.made.objective, i); i++) {
        ki_state *p = ki_objective_param(e.made.objective, i);
        ensemble_take(p->name, p->value, p->count);
    }
    const double total = ensemble_forward(&e, &result);
    assert_ok(kith_tensors_get(ensemble_file, "value", &value, &err), &err);
    if (!(fabs(total - *(double *)value.data) <= 1e-5 * fabs(total)))
        fail_msg("%s: value %.9g, wanted %.9g", name, total, *(double *)value.data);
    for (int i = 0; i < ENSEMBLE_TAPS; i++)
        ensemble_near(name, "tap.", ensemble_taps[i], e.tap[i], ki_shape_count(&e.shape[i]));
    ensemble_backward(&e, &result, buffer);
    ensemble_near(name, "grad.", "input", buffer, ENSEMBLE_INPUT);
    for (int i = 0; i < ki_params_count(e.params); i++) {
        const ki_param *p = ki_params_at(e.params, i);
        if (!p->trained) continue;
        assert_ok(ki_params_get_diff(e.params, p, buffer, &err), &err);
        ensemble_near(name, "grad.", p->name, buffer, p->n);
    }
    for (size_t i = 0; ki_objective_param(e.made.objective, i); i++) {
        const ki_state *p = ki_objective_param(e.made.objective, i);
        ensemble_near(name, "grad.", p->name, p->diff, p->count);
    }
    ki_free(buffer);
    ensemble_release(&e);
    kith_tensors_free(ensemble_file);
}

#endif
