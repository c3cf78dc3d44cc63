/* Weights: safetensors files into a parameter store and back. */
#ifndef KI_WEIGHTS_H
#define KI_WEIGHTS_H

#include "net/names/names.h"
#include "net/net.h"
#include "nn/params.h"

/* Set every parameter of the net from the tensor of its name: float32, float16, bfloat16 or float64,
 * of the same shape or with additional axes of 1 at the beginning or end; files of other libraries are read under their names for it. These are not errors: a head in the file that
 * the net does not have, a head of the net that the file does not have (it keeps its values), and the
 * counters of batches that PyTorch keeps. What LoRA added has then nothing to add. Anything else that is missing, extra or misshapen is listed in
 * one line, and then nothing has been changed. */
kith_status ki_weights_import(const kith_tensors *tensors, const ki_net *net, ki_params *params,
                              kith_error *err);
/* Do the tensors fit, as above? Sizes that a file claims need no memory before this has been asked: only a file that holds
 * a network's tensors may have one of that size made. */
kith_status ki_weights_check(const ki_named *tensors, const ki_net *net, kith_error *err);
/* ki_weights_import from tensors that have our names already. */
kith_status ki_weights_import_named(const ki_named *tensors, const ki_net *net, ki_params *params,
                                    kith_error *err);

/* Which run and which step a model comes from. */
typedef struct ki_weights_origin {
    char recipe_hash[65];
    int64_t step;
} ki_weights_origin;

/* Write all parameters (with LoRA those of the plain network, net/adapt.h) and the net's metadata, with the origin's and the calibration's (NULL: none) beside them. */
kith_status ki_weights_save(const ki_net *net, const ki_params *params, const ki_weights_origin *origin,
                            const kith_calibration *calibration, const char *path, kith_error *err);
/* The same without an origin, and with the weights of layers (tensors of two axes or more) as float16: half as large. Biases, norms and
 * running statistics stay float32. KITH_ENUMERIC names a tensor with a number that float16 does not reach. */
kith_status ki_weights_save_half(const ki_net *net, const ki_params *params,
                                 const kith_calibration *calibration, const char *path, kith_error *err);
/* false: the file does not say. */
bool ki_weights_read_origin(const kith_tensors *tensors, ki_weights_origin *ret_origin);

#endif
