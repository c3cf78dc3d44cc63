/* Layers and their kernels as a recipe names them, for the host and for kernels on a device (kernels.h: what they
 * are). */
#ifndef KI_OBJECTIVE_LAYERS_H
#define KI_OBJECTIVE_LAYERS_H

#include <stdint.h>

#include "base/error.h"
#include "objective/reg/tap.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KI_MOST_LAYERS = 3 };

typedef enum ki_layer_kind { KI_LAYER_GAUSSIAN, KI_LAYER_LAPLACE, KI_LAYER_POLY, KI_LAYER_MGF } ki_layer_kind;

typedef struct ki_layer_kernel {
    int kind; /* ki_layer_kind */
    int64_t n;
    double bandwidth; /* 0: from the batch; never of poly and mgf */
    int64_t degree;
} ki_layer_kernel;

typedef struct ki_layers {
    int n;
    ki_tap tap[KI_MOST_LAYERS];
    ki_layer_kernel kernel[KI_MOST_LAYERS];
} ki_layers;

/* The settings of a method that reads layers. */
typedef struct ki_layers_options {
    const struct ki_value *layers, *kernels;
} ki_layers_options;

/* From the recipe: `layers: [pooled, embedding]`, `kernels: [{kind: laplace, n: 3}, {kind: gaussian}]`; a
 * single kernel serves all layers. `method` is named in errors. */
kith_status ki_layers_read(const ki_layers_options *options, const char *method, ki_layers *ret_layers,
                           kith_error *err);

#ifdef __cplusplus
}
#endif
#endif
