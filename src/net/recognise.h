/* Which network a file of weights belongs to, where the file does not say: by the names of its tensors. */
#ifndef KI_RECOGNISE_H
#define KI_RECOGNISE_H

#include "kith/array.h"
#include "net/backbone.h"

/* The backbone of images all of whose tensors are in the file, under names that begin with `prefix`. Shapes are not compared: a
 * network of that name with other settings is found, too, and what does not fit is named when the weights are read.
 * KITH_EINVAL: none; the error names the tensors, the hint lists the known networks and the most similar one. */
kith_status ki_backbone_recognise(const kith_tensors *tensors, const char *prefix,
                                  const ki_backbone **ret_backbone, kith_error *err);

#endif
