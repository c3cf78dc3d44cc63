/* State dicts of PyTorch: the names that torchvision, timm and Cadene's pretrained models give their tensors. A net's own
 * names are torchvision's or nearly timm's (backbone.h); what differs are prefixes, the classifier's name and counters, and what the table says that the
 * backbone's record names (names/names.h). */
#ifndef KI_TORCH_NAMES_H
#define KI_TORCH_NAMES_H

#include "kith/array.h"
#include "net/net.h"
#include "nn/params.h"

/* Write the net's parameters as a state dict that load_state_dict takes: the embedding layer under the classifier's name,
 * and a counter of batches for each batch norm. KITH_EUNSUPPORTED for nets that PyTorch's models cannot be: an ensemble, a
 * convolution before the map, other pooling than averages, class tokens and attention, both an embedding and a classifier. */
kith_status ki_torch_save(const ki_net *net, const ki_params *params, const char *path, kith_error *err);

/* The same tensors under the names that a backbone has: without the prefix that all names share when a model was wrapped
 * (module., model., backbone.; of a checkpoint only what is below state_dict), with its own name for the classifier (fc, last_linear, head.fc, classifier), without
 * counters of batches. Data stays that of `from`, which must outlive the writer. */
kith_status ki_torch_rename(const kith_tensors *from, const ki_backbone *backbone, kith_tensors_writer *to,
                            kith_error *err);

#endif
