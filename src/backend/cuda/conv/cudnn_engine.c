/* Engines: the offers of cuDNN's heuristics for a graph, reading and making their configurations, and plans. */
#include <string.h>

#include "backend/cuda/conv/cudnn_graph.h"

static kith_status offers(cudnnBackendDescriptor_t heuristic, const ki_cudnn_graph *graph,
                          cudnnBackendHeurMode_t mode, int n, cudnnBackendDescriptor_t *ret_configs,
                          int *ret_n, kith_error *err) {
    int64_t count = 0;
    KI_TRY(ki_cudnn_set_part(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph->graph, err));
    KI_CUDNN(cudnnBackendSetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode));
    KI_CUDNN(cudnnBackendFinalize(heuristic));
    KI_CUDNN(cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                      0, &count, NULL));
    if (count > n) count = n;
    while (*ret_n < count) {
        KI_CUDNN(cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &ret_configs[*ret_n]));
        (*ret_n)++;
    }
    if (count == 0) return KITH_OK;
    int64_t got = 0;
    KI_CUDNN(cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                      count, &got, ret_configs));
    while (*ret_n > got) cudnnBackendDestroyDescriptor(ret_configs[--*ret_n]);
    return KITH_OK;
}

kith_status ki_cudnn_offers(const ki_cudnn_graph *graph, cudnnBackendHeurMode_t mode, int n,
                            cudnnBackendDescriptor_t *ret_configs, int *ret_n, kith_error *err) {
    cudnnBackendDescriptor_t heuristic = NULL;
    *ret_n = 0;
    KI_CUDNN(cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heuristic));
    const kith_status status = offers(heuristic, graph, mode, n, ret_configs, ret_n, err);
    cudnnBackendDestroyDescriptor(heuristic);
    while (status != KITH_OK && *ret_n > 0) cudnnBackendDestroyDescriptor(ret_configs[--*ret_n]);
    return status;
}

static kith_status read_notes(cudnnBackendDescriptor_t engine, ki_cudnn_notes *ret_notes, kith_error *err) {
    int64_t n = 0;
    cudnnBackendNumericalNote_t numerical[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    KI_CUDNN(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                      CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &n, numerical));
    for (int64_t i = 0; i < n && i < CUDNN_NUMERICAL_NOTE_TYPE_COUNT; i++)
        ret_notes->numerical |= 1u << numerical[i];
    cudnnBackendBehaviorNote_t behavior[CUDNN_BEHAVIOR_NOTE_TYPE_COUNT];
    KI_CUDNN(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                                      CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, &n, behavior));
    for (int64_t i = 0; i < n && i < CUDNN_BEHAVIOR_NOTE_TYPE_COUNT; i++)
        ret_notes->behavior |= 1u << behavior[i];
    return KITH_OK;
}

static kith_status read_engine(cudnnBackendDescriptor_t config, cudnnBackendDescriptor_t engine,
                               ki_cudnn_setting *ret_setting, ki_cudnn_notes *ret_notes, kith_error *err) {
    int64_t n = 0;
    KI_CUDNN(cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                      &n, &engine));
    KI_CUDNN(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &n,
                                      &ret_setting->engine));
    return read_notes(engine, ret_notes, err);
}

static kith_status read_knobs(cudnnBackendDescriptor_t config, cudnnBackendDescriptor_t *knob, int n_knobs,
                              ki_cudnn_setting *ret_setting, kith_error *err) {
    int64_t got = 0, n = 0;
    KI_CUDNN(cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, n_knobs, &got, knob));
    for (int i = 0; i < n_knobs && i < got; i++) {
        cudnnBackendKnobType_t type = CUDNN_KNOB_TYPE_COUNTS;
        KI_CUDNN(cudnnBackendGetAttribute(knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1,
                                          &n, &type));
        KI_CUDNN(cudnnBackendGetAttribute(knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &n,
                                          &ret_setting->value[i]));
        ret_setting->knob[i] = (int64_t)type;
        ret_setting->n_knobs = i + 1;
    }
    return KITH_OK;
}

/* cuDNN fills in descriptors that the caller made, and does not say how many it needs: so there is one for
 * each kind. */
kith_status ki_cudnn_config_read(cudnnBackendDescriptor_t config, ki_cudnn_setting *ret_setting,
                                 ki_cudnn_notes *ret_notes, kith_error *err) {
    cudnnBackendDescriptor_t engine = NULL, knob[KI_CUDNN_MAX_KNOBS] = {NULL};
    int n_knobs = 0;
    memset(ret_setting, 0, sizeof *ret_setting); /* compared as bytes */
    *ret_notes = (ki_cudnn_notes){0};
    KI_CUDNN(cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine));
    kith_status status = read_engine(config, engine, ret_setting, ret_notes, err);
    cudnnBackendDestroyDescriptor(engine);
    while (status == KITH_OK && n_knobs < KI_CUDNN_MAX_KNOBS) {
        const cudnnStatus_t made =
            cudnnBackendCreateDescriptor(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, &knob[n_knobs]);
        if (made != CUDNN_STATUS_SUCCESS)
            status = ki_cudnn_fail(err, made, "cudnnBackendCreateDescriptor");
        else
            n_knobs++;
    }
    if (status == KITH_OK) status = read_knobs(config, knob, n_knobs, ret_setting, err);
    while (n_knobs > 0) cudnnBackendDestroyDescriptor(knob[--n_knobs]);
    return status;
}

kith_status ki_cudnn_engine_count(const ki_cudnn_graph *graph, int64_t *ret_n, kith_error *err) {
    int64_t n = 0;
    KI_CUDNN(cudnnBackendGetAttribute(graph->graph, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT,
                                      CUDNN_TYPE_INT64, 1, &n, ret_n));
    return KITH_OK;
}

static kith_status read_tiles(cudnnBackendDescriptor_t engine, cudnnBackendDescriptor_t *knob, int n_knobs,
                              int64_t *ret_n_tiles, kith_error *err) {
    int64_t got = 0, n = 0;
    KI_CUDNN(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_KNOB_INFO, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                      n_knobs, &got, knob));
    for (int64_t i = 0; i < got && i < n_knobs; i++) {
        cudnnBackendKnobType_t type = CUDNN_KNOB_TYPE_COUNTS;
        int64_t most = 0;
        KI_CUDNN(
            cudnnBackendGetAttribute(knob[i], CUDNN_ATTR_KNOB_INFO_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &n, &type));
        KI_CUDNN(cudnnBackendGetAttribute(knob[i], CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE, CUDNN_TYPE_INT64, 1,
                                          &n, &most));
        if (type == CUDNN_KNOB_TYPE_TILE_SIZE) *ret_n_tiles = most + 1;
    }
    return KITH_OK;
}

static kith_status open_engine(const ki_cudnn_graph *graph, int64_t number, cudnnBackendDescriptor_t engine,
                               ki_cudnn_notes *ret_notes, int64_t *ret_n_tiles, kith_error *err) {
    cudnnBackendDescriptor_t knob[KI_CUDNN_MAX_KNOBS];
    int n_knobs = 0;
    kith_status status = KITH_OK;
    KI_TRY(ki_cudnn_set_part(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph->graph, err));
    KI_TRY(ki_cudnn_set_int(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 1, &number, err));
    KI_CUDNN(cudnnBackendFinalize(engine));
    KI_TRY(read_notes(engine, ret_notes, err));
    while (n_knobs < KI_CUDNN_MAX_KNOBS &&
           cudnnBackendCreateDescriptor(CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR, &knob[n_knobs]) ==
               CUDNN_STATUS_SUCCESS)
        n_knobs++;
    status = read_tiles(engine, knob, n_knobs, ret_n_tiles, err);
    while (n_knobs > 0) cudnnBackendDestroyDescriptor(knob[--n_knobs]);
    return status;
}

kith_status ki_cudnn_engine_look(const ki_cudnn_graph *graph, int64_t number, ki_cudnn_notes *ret_notes,
                                 int64_t *ret_n_tiles, kith_error *err) {
    cudnnBackendDescriptor_t engine = NULL;
    *ret_notes = (ki_cudnn_notes){0};
    *ret_n_tiles = 0;
    KI_CUDNN(cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine));
    const kith_status status = open_engine(graph, number, engine, ret_notes, ret_n_tiles, err);
    cudnnBackendDestroyDescriptor(engine);
    return status;
}

static kith_status config_at(ki_cudnn_graph *g, const ki_cudnn_setting *setting,
                             cudnnBackendDescriptor_t *ret_config, kith_error *err) {
    cudnnBackendDescriptor_t offer[KI_CUDNN_MAX_OFFERS];
    int n = 0;
    if (setting->place < 0 || setting->place >= KI_CUDNN_MAX_OFFERS || g->n_parts == KI_CUDNN_MAX_PARTS)
        return ki_fail(err, KITH_EUNSUPPORTED, "cuDNN engine at place %d", setting->place);
    KI_TRY(ki_cudnn_offers(g, (cudnnBackendHeurMode_t)setting->mode, setting->place + 1, offer, &n, err));
    const bool is_there = n == setting->place + 1;
    if (is_there) *ret_config = g->part[g->n_parts++] = offer[--n];
    while (n > 0) cudnnBackendDestroyDescriptor(offer[--n]);
    return is_there ? KITH_OK
                    : ki_fail(err, KITH_EUNSUPPORTED, "cuDNN offers fewer engines than %d", setting->place);
}

kith_status ki_cudnn_config_new(ki_cudnn_graph *g, const ki_cudnn_setting *setting,
                                cudnnBackendDescriptor_t *ret_config, kith_error *err) {
    if (setting->by_place) return config_at(g, setting, ret_config, err);
    cudnnBackendDescriptor_t engine = NULL, knob[KI_CUDNN_MAX_KNOBS], config = NULL;
    KI_TRY(ki_cudnn_part_new(g, CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine, err));
    KI_TRY(ki_cudnn_set_part(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, g->graph, err));
    KI_TRY(ki_cudnn_set_int(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 1, &setting->engine, err));
    KI_CUDNN(cudnnBackendFinalize(engine));
    for (int i = 0; i < setting->n_knobs; i++) {
        const cudnnBackendKnobType_t type = (cudnnBackendKnobType_t)setting->knob[i];
        KI_TRY(ki_cudnn_part_new(g, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, &knob[i], err));
        KI_CUDNN(cudnnBackendSetAttribute(knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1,
                                          &type));
        KI_TRY(ki_cudnn_set_int(knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, 1, &setting->value[i], err));
        KI_CUDNN(cudnnBackendFinalize(knob[i]));
    }
    KI_TRY(ki_cudnn_part_new(g, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &config, err));
    KI_TRY(ki_cudnn_set_part(config, CUDNN_ATTR_ENGINECFG_ENGINE, engine, err));
    if (setting->n_knobs > 0)
        KI_CUDNN(cudnnBackendSetAttribute(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, setting->n_knobs, knob));
    KI_CUDNN(cudnnBackendFinalize(config));
    *ret_config = config;
    return KITH_OK;
}

static kith_status make_plan(cudnnHandle_t handle, cudnnBackendDescriptor_t config,
                             cudnnBackendDescriptor_t plan, size_t *ret_workspace_bytes, kith_error *err) {
    int64_t bytes = 0, n = 0;
    KI_CUDNN(cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle));
    KI_TRY(ki_cudnn_set_part(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config, err));
    KI_CUDNN(cudnnBackendFinalize(plan));
    KI_CUDNN(cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n,
                                      &bytes));
    *ret_workspace_bytes = bytes > 0 ? (size_t)bytes : 0;
    return KITH_OK;
}

kith_status ki_cudnn_plan_new(cudnnHandle_t handle, cudnnBackendDescriptor_t config,
                              cudnnBackendDescriptor_t *ret_plan, size_t *ret_workspace_bytes,
                              kith_error *err) {
    cudnnBackendDescriptor_t plan = NULL;
    KI_CUDNN(cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan));
    const kith_status status = make_plan(handle, config, plan, ret_workspace_bytes, err);
    if (status == KITH_OK)
        *ret_plan = plan;
    else
        cudnnBackendDestroyDescriptor(plan);
    return status;
}
