/* The transform that turns images into the input that a model asks for. */
#ifndef KI_PREPROCESS_H
#define KI_PREPROCESS_H

#include "data/dataset/dataset.h"
#include "net/net.h"

/* Can the network take the items of the set (NULL: images)? Images or features, and as many numbers as it takes. */
kith_status ki_preprocess_check(const ki_net *net, const kith_dataset *set, kith_error *err);

/* Channel order, scale, mean and std as the network wants them; the rest of the transform stays. A network that takes
 * features wants nothing. */
void ki_preprocess_take(const ki_net *net, kith_transform *transform);

/* The reverse, for the part of the test images' transform that a model file keeps: resizing, filter, background. */
void ki_preprocess_tell(const kith_transform *transform, ki_net *net);

/* How images are resized before the centre crop: as `given` ("squash256") says; if that is NULL, as the model
 * says; otherwise squash256. */
const char *ki_preprocess_resize(const ki_net *net, const char *given);

/* The whole transform for the network's input, resized as ki_preprocess_resize says. KITH_EUNSUPPORTED for networks
 * that do not take square images of 1 or 3 channels. */
kith_status ki_preprocess_transform(const ki_net *net, const char *resize, kith_transform *ret_transform,
                                    kith_error *err);

/* "rgb, (pixel * 0.00392157 - (0.5, 0.5, 0.5)) / (0.5, 0.5, 0.5)", and filter and background where they
 * are not the usual ones: for result cards. Into buf, which is returned. */
const char *ki_preprocess_text(const ki_net *net, char *buf, size_t buf_bytes);

/* The tap to use when none is named: the embedding, or `pooled` for a network without one. */
const char *ki_preprocess_tap(const ki_net *net, const char *given);

#endif
