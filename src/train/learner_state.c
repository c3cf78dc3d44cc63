/* Parameters of the network and of the objective, and the optimizer's state, as tensors of a checkpoint. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/text.h"
#include "train/learner.h"

enum { MOST_NAME = 256 };

static kith_array array_of(const ki_shape *shape, ki_real *data) {
    kith_array array = {.dtype = KITH_F32, .n_dims = shape->n_dims, .data = data};
    memcpy(array.dim, shape->dim, sizeof array.dim);
    return array;
}

static kith_status add(kith_tensors_writer *writer, const char *prefix, const char *name,
                       const ki_shape *shape, ki_real *data, kith_error *err) {
    char full[MOST_NAME];
    ki_snprintf(full, sizeof full, "%s/%s", prefix, name);
    const kith_array array = array_of(shape, data);
    return kith_tensors_writer_add(writer, full, &array, err);
}

/* The tensor's numbers, when it is there with this shape. */
static kith_status get(const kith_tensors *tensors, const char *prefix, const char *name,
                       const ki_shape *shape, const ki_real **ret_data, kith_error *err) {
    char full[MOST_NAME], found_text[96], wanted_text[96];
    ki_snprintf(full, sizeof full, "%s/%s", prefix, name);
    kith_array view;
    KI_TRY(kith_tensors_get(tensors, full, &view, err));
    ki_shape found = {.n_dims = view.n_dims};
    memcpy(found.dim, view.dim, sizeof found.dim);
    if (view.dtype != KITH_F32 || !ki_shape_equal(&found, shape))
        return ki_fail(err, KITH_EFORMAT, "tensor %s is %s %s; wanted float32 %s", full,
                       kith_dtype_name(view.dtype), ki_shape_text(&found, found_text, sizeof found_text),
                       ki_shape_text(shape, wanted_text, sizeof wanted_text));
    *ret_data = view.data;
    return KITH_OK;
}

int64_t ki_learner_model_n(const ki_params *params) {
    int64_t n = 0;
    for (int i = 0; i < ki_params_count(params); i++) n += ki_params_at(params, i)->n;
    return n;
}

static kith_status model_save(const ki_params *params, ki_real *slab, kith_tensors_writer *writer,
                              kith_error *err) {
    for (int i = 0; i < ki_params_count(params); i++) {
        const ki_param *p = ki_params_at(params, i);
        KI_TRY(ki_params_get(params, p, slab, err));
        KI_TRY(add(writer, "model", p->name, &p->shape, slab, err));
        slab += p->n;
    }
    return KITH_OK;
}

static kith_status model_load(ki_params *params, const kith_tensors *tensors, kith_error *err) {
    for (int i = 0; i < ki_params_count(params); i++) {
        const ki_param *p = ki_params_at(params, i);
        const ki_real *data = NULL;
        KI_TRY(get(tensors, "model", p->name, &p->shape, &data, err));
        KI_TRY(ki_params_set(params, p, data, err));
    }
    return KITH_OK;
}

static kith_status objective_save(ki_objective *objective, kith_tensors_writer *writer, kith_error *err) {
    ki_state *param;
    for (size_t i = 0; (param = ki_objective_param(objective, i)); i++)
        KI_TRY(add(writer, "objective", param->name, &param->shape, param->value, err));
    return KITH_OK;
}

static kith_status objective_load(ki_objective *objective, const kith_tensors *tensors, kith_error *err) {
    ki_state *param;
    for (size_t i = 0; (param = ki_objective_param(objective, i)); i++) {
        const ki_real *data = NULL;
        KI_TRY(get(tensors, "objective", param->name, &param->shape, &data, err));
        memcpy(param->value, data, (size_t)param->count * sizeof *data);
    }
    return KITH_OK;
}

static int64_t optim_n(const ki_optim *optim) {
    int64_t n = 0;
    for (int i = 0; i < ki_optim_n_states(optim); i++) n += ki_optim_state_count(optim, i);
    return n;
}

static kith_status optim_save(const ki_optim *optim, ki_real *slab, int64_t *steps,
                              kith_tensors_writer *writer, kith_error *err) {
    for (int i = 0; i < ki_optim_n_states(optim); i++) {
        const ki_shape shape = KI_SHAPE1(ki_optim_state_count(optim, i));
        KI_TRY(ki_optim_state_get(optim, i, slab, err));
        KI_TRY(add(writer, "optim", ki_optim_state_name(optim, i), &shape, slab, err));
        slab += shape.dim[0];
    }
    *steps = ki_optim_steps(optim);
    const kith_array t = {KITH_I64, 1, {1}, steps};
    return kith_tensors_writer_add(writer, "optim/steps", &t, err);
}

static kith_status optim_load(ki_optim *optim, const kith_tensors *tensors, kith_error *err) {
    kith_array steps;
    KI_TRY(kith_tensors_get(tensors, "optim/steps", &steps, err));
    if (steps.dtype != KITH_I64 || kith_array_count(&steps) != 1 || *(const int64_t *)steps.data < 0)
        return ki_fail(err, KITH_EFORMAT, "tensor optim/steps is no count");
    for (int i = 0; i < ki_optim_n_states(optim); i++) {
        const ki_shape shape = KI_SHAPE1(ki_optim_state_count(optim, i));
        const ki_real *data = NULL;
        KI_TRY(get(tensors, "optim", ki_optim_state_name(optim, i), &shape, &data, err));
        KI_TRY(ki_optim_state_set(optim, i, data, err));
    }
    ki_optim_steps_set(optim, *(const int64_t *)steps.data);
    return KITH_OK;
}

void ki_learner_copies_release(ki_learner_copies *copies) {
    ki_free(copies->model);
    ki_free(copies->optim);
}

kith_status ki_learner_state_save(const ki_learner *learner, const ki_optim *optim, ki_learner_copies *copies,
                                  kith_tensors_writer *writer, kith_error *err) {
    const ki_learner_settings *s = &learner->settings;
    if (!copies->model)
        KI_TRY(ki_alloc_or(&copies->model, (size_t)ki_learner_model_n(s->params), sizeof *copies->model,
                           "a copy of the model", err));
    if (!copies->optim)
        KI_TRY(ki_alloc_or(&copies->optim, (size_t)optim_n(optim), sizeof *copies->optim,
                           "a copy of the optimizer's state", err));
    KI_TRY(model_save(s->params, copies->model, writer, err));
    KI_TRY(objective_save(s->objective, writer, err));
    return optim_save(optim, copies->optim, &copies->optim_steps, writer, err);
}

kith_status ki_learner_state_load(ki_learner *learner, ki_optim *optim, const kith_tensors *tensors,
                                  kith_error *err) {
    KI_TRY(model_load(learner->settings.params, tensors, err));
    KI_TRY(objective_load(learner->settings.objective, tensors, err));
    return optim_load(optim, tensors, err);
}

void ki_learner_norms(const double norm[KI_OPTIM_N_GROUPS], double ret_norm[KI_N_GROUPS]) {
    ret_norm[KI_GROUP_BACKBONE] = norm[KI_OPTIM_BACKBONE];
    ret_norm[KI_GROUP_EMBEDDING] = norm[KI_OPTIM_EMBEDDING];
    ret_norm[KI_GROUP_OBJECTIVE] = hypot(norm[KI_OPTIM_PROXIES], norm[KI_OPTIM_REGULARIZERS]);
}
