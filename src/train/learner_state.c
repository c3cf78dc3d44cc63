/* Parameters of the network and of the objective, and the optimizer's state, as tensors of a checkpoint. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checksum.h"
#include "base/real.h"
#include "base/text.h"
#include "train/learner_inside.h"

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

static const ki_param *averaged_at(const ki_learner *l, int i) {
    return ki_params_at(l->settings.params, l->averaged[i]);
}

static int64_t average_n(const ki_learner *l) {
    int64_t n = 0;
    for (int i = 0; i < l->n_averaged; i++) n += averaged_at(l, i)->n;
    return n;
}

static kith_status average_save(const ki_learner *l, ki_real *slab, kith_tensors_writer *writer,
                                kith_error *err) {
    for (int i = 0; i < l->n_averaged; i++) {
        const ki_param *p = averaged_at(l, i);
        KI_TRY(ki_average_get(l->average, i, slab, err));
        KI_TRY(add(writer, "average", p->name, &p->shape, slab, err));
        slab += p->n;
    }
    return KITH_OK;
}

static kith_status average_load(const ki_learner *l, const kith_tensors *tensors, kith_error *err) {
    for (int i = 0; i < l->n_averaged; i++) {
        const ki_param *p = averaged_at(l, i);
        const ki_real *data = NULL;
        KI_TRY(get(tensors, "average", p->name, &p->shape, &data, err));
        KI_TRY(ki_average_set(l->average, i, data, err));
    }
    return KITH_OK;
}

/* *parts: the whole of the next parameter that is shared out; moved on behind it. */
static kith_status objective_save(ki_objective *objective, ki_real **parts, kith_tensors_writer *writer,
                                  kith_error *err) {
    ki_state *param;
    for (size_t i = 0; (param = ki_objective_param(objective, i)); i++) {
        const ki_shape whole = ki_state_whole(param);
        KI_TRY(add(writer, "objective", param->name, &whole, param->n_whole ? *parts : param->value, err));
        if (param->n_whole) *parts += ki_shape_count(&whole);
    }
    return KITH_OK;
}

/* Where a part begins in the whole. */
static int64_t part_at(const ki_state *param) { return param->first * (param->count / param->shape.dim[0]); }

static kith_status objective_load(ki_objective *objective, const kith_tensors *tensors, kith_error *err) {
    ki_state *param;
    for (size_t i = 0; (param = ki_objective_param(objective, i)); i++) {
        const ki_real *data = NULL;
        const ki_shape whole = ki_state_whole(param);
        KI_TRY(get(tensors, "objective", param->name, &whole, &data, err));
        memcpy(param->value, data + part_at(param), (size_t)param->count * sizeof *data);
    }
    return KITH_OK;
}

/* The parameter that a state of the optimizer ("proxies.m") belongs to, if it is shared out; else NULL. */
static const ki_state *part_of(ki_objective *objective, const char *state) {
    const char *dot = strrchr(state, '.');
    const ki_state *param;
    for (size_t i = 0; dot && (param = ki_objective_param(objective, i)); i++) {
        const size_t n = strlen(param->name);
        if (param->n_whole && n == (size_t)(dot - state) && memcmp(param->name, state, n) == 0) return param;
    }
    return NULL;
}

/* The shape of a state in a file. */
static ki_shape state_shape(ki_objective *objective, const ki_optim *optim, int i) {
    const ki_state *part = part_of(objective, ki_optim_state_name(optim, i));
    const ki_shape whole = part ? ki_state_whole(part) : KI_SHAPE1(ki_optim_state_count(optim, i));
    return KI_SHAPE1(ki_shape_count(&whole));
}

static int64_t optim_n(ki_objective *objective, const ki_optim *optim) {
    int64_t n = 0;
    for (int i = 0; i < ki_optim_n_states(optim); i++)
        n += part_of(objective, ki_optim_state_name(optim, i)) ? 0 : ki_optim_state_count(optim, i);
    return n;
}

static kith_status optim_save(ki_objective *objective, const ki_optim *optim, ki_real *slab, ki_real **parts,
                              int64_t *steps, kith_tensors_writer *writer, kith_error *err) {
    for (int i = 0; i < ki_optim_n_states(optim); i++) {
        const char *name = ki_optim_state_name(optim, i);
        const ki_shape shape = state_shape(objective, optim, i);
        const bool is_part = part_of(objective, name) != NULL;
        if (!is_part) KI_TRY(ki_optim_state_get(optim, i, slab, err));
        ki_real **from = is_part ? parts : &slab;
        KI_TRY(add(writer, "optim", name, &shape, *from, err));
        *from += shape.dim[0];
    }
    *steps = ki_optim_steps(optim);
    const kith_array t = {KITH_I64, 1, {1}, steps};
    return kith_tensors_writer_add(writer, "optim/steps", &t, err);
}

static kith_status optim_load(ki_objective *objective, ki_optim *optim, const kith_tensors *tensors,
                              kith_error *err) {
    kith_array steps;
    KI_TRY(kith_tensors_get(tensors, "optim/steps", &steps, err));
    if (steps.dtype != KITH_I64 || kith_array_count(&steps) != 1 || *(const int64_t *)steps.data < 0)
        return ki_fail(err, KITH_EFORMAT, "tensor optim/steps is no count");
    for (int i = 0; i < ki_optim_n_states(optim); i++) {
        const char *name = ki_optim_state_name(optim, i);
        const ki_shape shape = state_shape(objective, optim, i);
        const ki_state *part = part_of(objective, name);
        const ki_real *data = NULL;
        KI_TRY(get(tensors, "optim", name, &shape, &data, err));
        KI_TRY(ki_optim_state_set(optim, i, data + (part ? part_at(part) : 0), err));
    }
    ki_optim_steps_set(optim, *(const int64_t *)steps.data);
    return KITH_OK;
}

/* ---- what is shared out over ranks ---- */

bool ki_learner_has_parts(const ki_learner *learner) {
    const ki_state *param;
    for (size_t i = 0; (param = ki_objective_param(learner->settings.objective, i)); i++) {
        if (param->n_whole) return true;
    }
    return false;
}

/* All ranks' rows of a parameter or of one of its moments. */
static kith_status gather_part(ki_comm *comm, const ki_state *param, const ki_real *own, ki_real **to,
                               kith_error *err) {
    int64_t counts[KI_MOST_RANKS];
    const ki_shape whole = ki_state_whole(param);
    KI_TRY(ki_comm_gather_counts(comm, param->count, counts, err));
    KI_TRY(ki_comm_gather_first(comm, own, counts, sizeof *own, *to, err));
    if (*to) *to += ki_shape_count(&whole);
    return KITH_OK;
}

/* Room for the wholes on the first rank, and on every rank for its part of one moment. */
static kith_status make_room(const ki_learner *learner, const ki_optim *optim, ki_real **ret_parts,
                             ki_real **ret_own, kith_error *err) {
    ki_objective *objective = learner->settings.objective;
    const ki_state *param;
    int64_t n = 0, most = 0;
    for (size_t i = 0; (param = ki_objective_param(objective, i)); i++) {
        const ki_shape whole = ki_state_whole(param);
        n += param->n_whole ? ki_shape_count(&whole) : 0;
    }
    for (int i = 0; i < ki_optim_n_states(optim); i++) {
        if (!part_of(objective, ki_optim_state_name(optim, i))) continue;
        n += state_shape(objective, optim, i).dim[0];
        if (ki_optim_state_count(optim, i) > most) most = ki_optim_state_count(optim, i);
    }
    KI_TRY(ki_alloc_or(ret_own, (size_t)most + 1, sizeof **ret_own, "a part of the optimizer's state", err));
    if (learner->settings.comm->rank > 0) return KITH_OK;
    return ki_alloc_or(ret_parts, (size_t)n, sizeof **ret_parts, "what the ranks hold parts of", err);
}

void ki_learner_save_end(ki_learner *learner) {
    ki_free(learner->copies.parts);
    learner->copies.parts = NULL;
}

kith_status ki_learner_save_begin(ki_learner *learner, kith_error *err) {
    const ki_optim *optim = learner->optim;
    ki_learner_copies *copies = &learner->copies;
    kith_status status;
    ki_comm *comm = learner->settings.comm;
    ki_objective *objective = learner->settings.objective;
    const ki_state *param;
    ki_real *own = NULL;
    if (!ki_learner_has_parts(learner)) return KITH_OK;
    KI_CHECK(ki_comm_agree(comm, make_room(learner, optim, &copies->parts, &own, err), err));
    ki_real *to = copies->parts;
    for (size_t i = 0; (param = ki_objective_param(objective, i)); i++) {
        if (param->n_whole) KI_CHECK(gather_part(comm, param, param->value, &to, err));
    }
    for (int i = 0; i < ki_optim_n_states(optim); i++) {
        param = part_of(objective, ki_optim_state_name(optim, i));
        if (!param) continue;
        KI_CHECK(ki_optim_state_get(optim, i, own, err));
        KI_CHECK(gather_part(comm, param, own, &to, err));
    }
done:
    ki_free(own);
    if (status != KITH_OK) ki_learner_save_end(learner);
    return status;
}

void ki_learner_copies_release(ki_learner_copies *copies) {
    ki_free(copies->model);
    ki_free(copies->average);
    ki_free(copies->optim);
    ki_free(copies->parts);
}

kith_status ki_learner_save(ki_learner *learner, kith_tensors_writer *writer, kith_error *err) {
    const ki_learner_settings *s = &learner->settings;
    const ki_optim *optim = learner->optim;
    ki_learner_copies *copies = &learner->copies;
    KI_TRY(s->backend->type->memory.sync(s->backend, err));
    KI_TRY(ki_learner_pull(learner, err));
    if (!copies->model)
        KI_TRY(ki_alloc_or(&copies->model, (size_t)ki_learner_model_n(s->params), sizeof *copies->model,
                           "a copy of the model", err));
    if (!copies->optim)
        KI_TRY(ki_alloc_or(&copies->optim, (size_t)optim_n(s->objective, optim) + 1, sizeof *copies->optim,
                           "a copy of the optimizer's state", err));
    if (learner->is_swapped) return ki_fail(err, KITH_EINTERNAL, "a checkpoint of the average");
    if (learner->average && !copies->average)
        KI_TRY(ki_alloc_or(&copies->average, (size_t)average_n(learner) + 1, sizeof *copies->average,
                           "a copy of the averages", err));
    KI_TRY(model_save(s->params, copies->model, writer, err));
    KI_TRY(average_save(learner, copies->average, writer, err));
    ki_real *parts = copies->parts;
    KI_TRY(objective_save(s->objective, &parts, writer, err));
    return optim_save(s->objective, optim, copies->optim, &parts, &copies->optim_steps, writer, err);
}

kith_status ki_learner_load(ki_learner *learner, const kith_tensors *tensors, kith_error *err) {
    const ki_learner_settings *s = &learner->settings;
    learner->is_swapped = false;
    KI_TRY(model_load(s->params, tensors, err));
    KI_TRY(average_load(learner, tensors, err));
    KI_TRY(objective_load(s->objective, tensors, err));
    KI_TRY(optim_load(s->objective, learner->optim, tensors, err));
    KI_TRY(ki_learner_push(learner, err));
    /* A step that failed may have left gradients. */
    learner->n_added = 0;
    KI_TRY(ki_params_zero_diffs(s->params, err));
    KI_TRY(learner->engine_type->clear_diffs(ki_learner_engine(learner), err));
    return s->backend->type->memory.sync(s->backend, err);
}

/* ---- over ranks ---- */

static kith_status checksum(ki_learner *learner, uint64_t *ret_sum, kith_error *err) {
    const ki_learner_settings *s = &learner->settings;
    kith_status status = KITH_OK;
    const ki_state *state = NULL;
    ki_real *copy = NULL;
    uint64_t sum = 0;
    KI_CHECK(ki_learner_pull(learner, err));
    KI_CHECK(
        ki_alloc_or(&copy, (size_t)ki_learner_model_n(s->params), sizeof *copy, "a copy of the model", err));
    for (int i = 0; i < ki_params_count(s->params); i++) {
        const ki_param *param = ki_params_at(s->params, i);
        KI_CHECK(ki_params_get(s->params, param, copy, err));
        sum = ki_checksum(copy, (size_t)param->n * sizeof *copy, sum);
    }
    for (int i = 0; i < learner->n_averaged; i++) {
        KI_CHECK(ki_average_get(learner->average, i, copy, err));
        sum = ki_checksum(copy, (size_t)averaged_at(learner, i)->n * sizeof *copy, sum);
    }
    for (size_t i = 0; (state = ki_objective_param(s->objective, i)); i++) {
        if (!state->n_whole)
            sum = ki_checksum(state->value, (size_t)state->count * sizeof *state->value, sum);
    }
    *ret_sum = sum;
done:
    ki_free(copy);
    return status;
}

kith_status ki_learner_check_ranks(ki_learner *learner, kith_error *err) {
    ki_comm *comm = learner->settings.comm;
    int64_t all[KI_MOST_RANKS];
    uint64_t sum = 0;
    if (ki_comm_is_alone(comm)) return KITH_OK;
    KI_TRY(ki_comm_agree(comm, checksum(learner, &sum, err), err));
    KI_TRY(ki_comm_gather_counts(comm, (int64_t)sum, all, err));
    int other = 1;
    while (other < comm->size && all[other] == all[0]) other++;
    if (other == comm->size) return KITH_OK;
    ki_fail(err, KITH_EINTERNAL, "rank %d has other parameters than rank 0; wanted the same bits", other);
    ki_hint(err, KITH_EINTERNAL,
            "the last checkpoint is good; use processors and devices of one kind, or KITH_COMM=host, and "
            "report this");
    return ki_comm_agree(comm, KITH_EINTERNAL, err);
}

void ki_learner_norms(const double norm[KI_OPTIM_N_GROUPS], double ret_norm[KI_N_GROUPS]) {
    ret_norm[KI_GROUP_BACKBONE] = norm[KI_OPTIM_BACKBONE];
    ret_norm[KI_GROUP_EMBEDDING] = norm[KI_OPTIM_EMBEDDING];
    ret_norm[KI_GROUP_OBJECTIVE] = ki_length(norm[KI_OPTIM_PROXIES], norm[KI_OPTIM_REGULARIZERS]);
}
