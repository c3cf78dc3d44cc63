/* One pass of a convolution as a cuDNN operation graph, and the engines that can run it.
 *
 * Descriptors are made through cuDNN's C interface. "Not supported" is an expected answer here: it is
 * returned as KITH_EUNSUPPORTED with cuDNN's message, and the caller tries the next engine. */
#ifndef KI_CUDA_CUDNN_GRAPH_H
#define KI_CUDA_CUDNN_GRAPH_H

#include <cudnn.h>

#include "backend/cuda/conv/way.h"

#define KI_CUDNN(call)                                                                      \
    do {                                                                                    \
        const cudnnStatus_t ki_cudnn_ = (call);                                             \
        if (ki_cudnn_ != CUDNN_STATUS_SUCCESS) return ki_cudnn_fail(err, ki_cudnn_, #call); \
    } while (0)

kith_status ki_cudnn_fail(kith_error *err, cudnnStatus_t status, const char *call);

/* What the graph contains besides the convolution. */
typedef enum ki_cudnn_form {
    KI_CUDNN_BARE,
    KI_CUDNN_FUSED, /* forward: bias, in the type of activations, and ReLU */
    KI_N_CUDNN_FORMS
} ki_cudnn_form;

enum {
    KI_CUDNN_MAX_PARTS = 80,
    KI_CUDNN_MAX_KNOBS = CUDNN_KNOB_TYPE_COUNTS,
    KI_CUDNN_MAX_TENSORS = 4,
    KI_CUDNN_MAX_OFFERS = 64
};

typedef struct ki_cudnn_graph {
    cudnnBackendDescriptor_t part[KI_CUDNN_MAX_PARTS]; /* all that was made, in order */
    int n_parts;
    cudnnBackendDescriptor_t graph;
} ki_cudnn_graph;

kith_status ki_cudnn_graph_init(cudnnHandle_t handle, const ki_conv_problem *problem, ki_cudnn_form form,
                                ki_cudnn_graph *ret_graph, kith_error *err);
void ki_cudnn_graph_release(ki_cudnn_graph *graph); /* fine on a zeroed one */

/* A new descriptor that lives as long as the graph, and setting its attributes. */
kith_status ki_cudnn_part_new(ki_cudnn_graph *graph, cudnnBackendDescriptorType_t type,
                              cudnnBackendDescriptor_t *ret_part, kith_error *err);
kith_status ki_cudnn_set_int(cudnnBackendDescriptor_t part, cudnnBackendAttributeName_t name, int64_t n,
                             const int64_t *values, kith_error *err);
kith_status ki_cudnn_set_part(cudnnBackendDescriptor_t part, cudnnBackendAttributeName_t name,
                              cudnnBackendDescriptor_t value, kith_error *err);

/* An engine and its settings as numbers, which can be stored; or, if cuDNN does not accept the numbers, its
 * place in the list of a heuristic mode. */
typedef struct ki_cudnn_setting {
    bool by_place;
    int mode, place;
    int64_t engine;
    int n_knobs;
    int64_t knob[KI_CUDNN_MAX_KNOBS], value[KI_CUDNN_MAX_KNOBS];
} ki_cudnn_setting;

typedef struct ki_cudnn_notes {
    unsigned numerical, behavior; /* bit = CUDNN_NUMERICAL_NOTE_…, CUDNN_BEHAVIOR_NOTE_… */
} ki_cudnn_notes;

/* Up to n <= KI_CUDNN_MAX_OFFERS engine configurations of a heuristic mode, best first; the caller
 * destroys them. */
kith_status ki_cudnn_offers(const ki_cudnn_graph *graph, cudnnBackendHeurMode_t mode, int n,
                            cudnnBackendDescriptor_t *ret_configs, int *ret_n, kith_error *err);
kith_status ki_cudnn_config_read(cudnnBackendDescriptor_t config, ki_cudnn_setting *ret_setting,
                                 ki_cudnn_notes *ret_notes, kith_error *err);
/* All engines that exist, by number: most refuse a given graph (KITH_EUNSUPPORTED). n_tiles: how many values
 * its setting CUDNN_KNOB_TYPE_TILE_SIZE takes, 0 when it has none. */
kith_status ki_cudnn_engine_count(const ki_cudnn_graph *graph, int64_t *ret_n, kith_error *err);
kith_status ki_cudnn_engine_look(const ki_cudnn_graph *graph, int64_t number, ki_cudnn_notes *ret_notes,
                                 int64_t *ret_n_tiles, kith_error *err);
/* Make a setting into a configuration, which belongs to the graph. Call it once per graph. */
kith_status ki_cudnn_config_new(ki_cudnn_graph *graph, const ki_cudnn_setting *setting,
                                cudnnBackendDescriptor_t *ret_config, kith_error *err);

/* An execution plan. Making it may compile kernels. */
kith_status ki_cudnn_plan_new(cudnnHandle_t handle, cudnnBackendDescriptor_t config,
                              cudnnBackendDescriptor_t *ret_plan, size_t *ret_workspace_bytes,
                              kith_error *err);
/* The pointers of a plan, in a descriptor ready to run. */
kith_status ki_cudnn_pointers_new(const ki_conv_problem *problem, ki_cudnn_form form, const ki_conv_io *io,
                                  cudnnBackendDescriptor_t *ret_pointers, kith_error *err);

#endif
