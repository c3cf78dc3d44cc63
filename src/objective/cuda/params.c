/* What the objective learns and keeps, as device memory: values and gradients in one piece each. */
#include <string.h>

#include "objective/cuda/inside.h"
#include "objective/cuda/rows.h"

enum { ALIGN = 64 }; /* floats: 256 bytes */

static int64_t aligned(int64_t n) { return (n + ALIGN - 1) / ALIGN * ALIGN; }

kith_status ki_engine_params_open(ki_engine *e, kith_error *err) {
    const ki_state_list *list = &e->objective->params;
    int64_t n_values = 0, n_diffs = 0;
    float *values = NULL;
    KI_TRY(ki_zalloc_or(&e->param, list->n + 1, sizeof *e->param, "parameters", err));
    for (size_t i = 0; i < list->n; i++) {
        n_values += aligned(list->item[i]->count);
        if (list->item[i]->diff) n_diffs += aligned(list->item[i]->count);
    }
    KI_TRY(ki_engine_take(e, (size_t)(n_values + 1) * sizeof(float), "parameters", &values, err));
    e->diffs_bytes = (size_t)n_diffs * sizeof(float);
    KI_TRY(ki_engine_take(e, e->diffs_bytes + sizeof(float), "parameter gradients", &e->diffs, err));
    float *diff = e->diffs;
    for (size_t i = 0; i < list->n; i++) {
        const ki_state *state = list->item[i];
        e->param[i] = (ki_cuda_param){.state = state, .value = values, .diff = state->diff ? diff : NULL};
        values += aligned(state->count);
        if (state->diff) diff += aligned(state->count);
    }
    KI_TRY(e->backend->type->memory.zero(e->backend, e->diffs, e->diffs_bytes + sizeof(float), err));
    const ki_memory *memory = &e->objective->memory;
    if (memory->size == 0) return KITH_OK;
    e->ring = (ki_cuda_ring){.size = memory->size,
                             .dim = memory->embedding->shape.dim[1],
                             .heads = e->objective->sizes.heads,
                             .embedding = ki_engine_param_of(e, memory->embedding)->value,
                             .label = ki_engine_param_of(e, memory->label)->value,
                             .state = ki_engine_param_of(e, memory->state)->value};
    return ki_engine_take(e, (size_t)(memory->size * e->ring.heads) * sizeof(float), "norms of the memory",
                          &e->ring.square, err);
}

kith_status ki_engine_params_share(ki_engine *e, const ki_engine *first, kith_error *err) {
    const size_t n = e->objective->params.n;
    KI_TRY(ki_alloc_or(&e->param, n + 1, sizeof *e->param, "parameters", err));
    memcpy(e->param, first->param, n * sizeof *e->param);
    e->diffs = first->diffs;
    e->diffs_bytes = first->diffs_bytes;
    e->ring = first->ring;
    return KITH_OK;
}

const ki_cuda_param *ki_engine_param_of(const ki_engine *e, const ki_state *state) {
    size_t i = 0;
    while (e->param[i].state != state) i++;
    return &e->param[i];
}

bool ki_engine_param_at(ki_engine *e, size_t i, ki_engine_param *ret_param) {
    if (i >= e->objective->params.n) return false;
    const ki_cuda_param *param = &e->param[i];
    *ret_param = (ki_engine_param){.name = param->state->name,
                                   .n = param->state->count,
                                   .value = param->value,
                                   .diff = param->diff,
                                   .lr_multiplier = param->state->lr_multiplier};
    return true;
}

kith_status ki_engine_pull(ki_engine *e, kith_error *err) {
    const ki_backend_type *type = e->backend->type;
    for (size_t i = 0; i < e->objective->params.n; i++) {
        const ki_cuda_param *param = &e->param[i];
        KI_TRY(type->memory.download(e->backend, param->value, e->objective->params.item[i]->value,
                                     (size_t)param->state->count * sizeof(float), err));
    }
    return type->memory.sync(e->backend, err);
}

kith_status ki_engine_push(ki_engine *e, kith_error *err) {
    const ki_backend_type *type = e->backend->type;
    for (size_t i = 0; i < e->objective->params.n; i++) {
        const ki_cuda_param *param = &e->param[i];
        KI_TRY(type->memory.upload(e->backend, param->value, param->state->value,
                                   (size_t)param->state->count * sizeof(float), err));
    }
    if (e->ring.size)
        KI_CUDA(ki_cuda_rows_normalize(e->ring.embedding, e->ring.size * e->ring.heads,
                                       e->ring.dim / e->ring.heads, NULL, NULL, e->ring.square, NULL,
                                       e->stream));
    return type->memory.sync(e->backend, err);
}
