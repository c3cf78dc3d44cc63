/* Taps: what plans are asked for, and where their values are. */
#include "train/taps.h"

const ki_tap ki_net_taps[KI_N_NET_TAPS] = {KI_TAP_MAP, KI_TAP_POOLED, KI_TAP_EMBEDDING};

void ki_taps_list(unsigned taps, const char **ret_names) {
    for (int i = 0; i < KI_N_NET_TAPS; i++) {
        if (taps & KI_TAP_BIT(ki_net_taps[i])) *ret_names++ = ki_tap_name(ki_net_taps[i]);
    }
}

kith_status ki_taps_weight(const ki_params *params, const ki_param **ret_weight, kith_error *err) {
    *ret_weight = ki_params_find(params, "embedding.weight");
    return *ret_weight ? KITH_OK : ki_fail(err, KITH_EINTERNAL, "the network has no embedding.weight");
}

static void place_weight(unsigned set, const ki_param *weight, bool trains, ki_engine_batch *batch) {
    if (!(set & KI_TAP_BIT(KI_TAP_WEIGHT))) return;
    batch->tap[KI_TAP_WEIGHT] = weight->value;
    batch->diff[KI_TAP_WEIGHT] = trains ? weight->diff : weight->value;
    batch->tap_edge[KI_TAP_WEIGHT] =
        (ki_edge){.shape = weight->shape, .layout = KI_PLAIN, .bytes = (size_t)weight->n * sizeof(ki_real)};
}

kith_status ki_taps_engine(ki_plan *plan, const ki_objective *objective, const ki_param *weight, bool trains,
                           ki_engine_batch *batch, kith_error *err) {
    const unsigned set = ki_objective_taps(objective);
    for (int i = 0; i < KI_N_NET_TAPS; i++) {
        const ki_tap tap = ki_net_taps[i];
        const char *name = ki_tap_name(tap);
        void *at = NULL;
        if (!(set & KI_TAP_BIT(tap))) continue;
        KI_TRY(ki_plan_tap_memory(plan, name, &batch->tap_edge[tap], &at, err));
        batch->tap[tap] = batch->diff[tap] = at;
        if (trains) KI_TRY(ki_plan_grad_memory(plan, name, &batch->tap_edge[tap], &batch->diff[tap], err));
    }
    place_weight(set, weight, trains, batch);
    return KITH_OK;
}

kith_status ki_taps_empty(const ki_graph *graph, const ki_objective *objective, const ki_param *weight,
                          ki_engine_batch *batch, kith_error *err) {
    const unsigned set = ki_objective_taps(objective);
    for (int i = 0; i < KI_N_NET_TAPS; i++) {
        const ki_tap tap = ki_net_taps[i];
        int node = 0;
        if (!(set & KI_TAP_BIT(tap))) continue;
        KI_TRY(ki_graph_find_tap(graph, ki_tap_name(tap), &node, err));
        batch->tap_edge[tap] = (ki_edge){.shape = ki_graph_node(graph, node)->shape, .layout = KI_PLAIN};
        batch->tap_edge[tap].shape.dim[0] = 0;
        batch->tap[tap] = weight->value;
    }
    place_weight(set, weight, true, batch);
    return KITH_OK;
}

kith_status ki_taps_stopped(ki_backend *backend, const ki_objective *objective, int64_t batch, int64_t dim,
                            ki_real **ret_stopped, kith_error *err) {
    void *memory = NULL;
    const size_t bytes = (size_t)(batch * dim) * sizeof(ki_real);
    if (!ki_engine_stops(objective)) return KITH_OK;
    KI_TRY(backend->type->memory.alloc(backend, bytes, &memory, err));
    *ret_stopped = memory;
    return backend->type->memory.zero(backend, memory, bytes, err);
}
