/* Model files: make a net with its weights from the given options and the metadata of a safetensors
 * file. docs/model-files.md lists the metadata. */
#ifndef KI_MODEL_FILE_H
#define KI_MODEL_FILE_H

#include "kith/calibration.h"
#include "net/net.h"
#include "nn/params.h"

/* kith_model_find, which takes hub:NAME and the name `general`, too. */
kith_status ki_model_file_find(const char *name, char *ret_file, size_t bytes, kith_error *err);

/* Is it a name that stands for a file somewhere else: hub:NAME, or `general` where no file has that name? */
bool ki_model_file_is_name(const char *name);

/* What scores of a file's embeddings mean. */
typedef struct ki_file_curve {
    kith_calibration calibration; /* without points: none */
    int64_t side; /* of the images it was measured on, if the net's have another; otherwise 0 */
} ki_file_curve;

/* Build the net that the options and the weights file (if one is named) describe, make its parameters on the
 * backend, and read the weights. Free *ret_params with ki_params_free first, then *ret_net with
 * ki_net_release. ret_curve (may be NULL) receives the file's calibration. It has no points if the file has none, or if
 * the options ask for another network or input than the file describes; another side of the input is said. */
kith_status ki_model_file_open(const kith_model_options *options, ki_backend *backend, ki_net *ret_net,
                               ki_params **ret_params, ki_file_curve *ret_curve, kith_error *err);

/* The same with the tensors of a file that is open; options->weights (may be NULL) says only what the file was, beside which a
 * config.json may lie. */
kith_status ki_model_file_of_tensors(const kith_model_options *options, const kith_tensors *tensors,
                                     ki_backend *backend, ki_net *ret_net, ki_params **ret_params,
                                     kith_error *err);

/* The same from a file that is open and holds more than a model (a checkpoint), with the model's metadata and its
 * tensors under names that begin with `prefix`. The parameters are made, not read. */
kith_status ki_model_file_describe(const kith_model_options *options, const kith_tensors *tensors,
                                   const char *prefix, ki_backend *backend, ki_net *ret_net,
                                   ki_params **ret_params, kith_error *err);

kith_status ki_model_metadata_write(const ki_net *net, kith_tensors_writer *writer, kith_error *err);
/* Without the network's name, which says that the tensors have kith's own names: what else decides an embedding. */
kith_status ki_model_metadata_write_settings(const ki_net *net, kith_tensors_writer *writer, kith_error *err);

#endif
