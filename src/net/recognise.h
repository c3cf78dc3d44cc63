/* Which network a file of weights belongs to, where the file does not say: by the names of its tensors. */
#ifndef KI_RECOGNISE_H
#define KI_RECOGNISE_H

#include "net/backbone.h"

/* The backbone of images that these tensors are of, and its settings: what its record's function says, or all of whose default network's
 * names are there. In the second case shapes are not compared: what does not fit is named when the weights are read. `config`: what lies beside the
 * file; may be NULL. KITH_EINVAL: none; the error names the tensors, the hint has the most similar network. */
kith_status ki_backbone_recognise(const ki_named *tensors, const ki_contract *config,
                                  const ki_backbone **ret_backbone, ki_recognised *ret_recognised,
                                  kith_error *err);

#endif
