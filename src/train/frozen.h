/* model.frozen: the network does not learn, so what it says of every training image is computed once, for each of a number of views,
 * and kept. The run then trains the embedding layer alone on these features, as a run on features made elsewhere does: `run->net` is
 * the layer, `run->whole` the network that it belongs to. Only what is written (best.safetensors, model.safetensors) and what the card
 * says is of the whole. Without the key the same recipe trains the whole network, from the same start. */
#ifndef KI_TRAIN_FROZEN_H
#define KI_TRAIN_FROZEN_H

#include "net/weights.h"
#include "train/run.h"

/* Opens run->whole and the layer run->net, which has the values of the whole network's. `model` describes the whole. */
kith_status ki_frozen_open(ki_train_state *run, const kith_model_options *model, kith_error *err);
void ki_frozen_release(ki_train_state *run);

/* Makes the features that are not there yet, and makes them the items of run->set. KITH_ECANCELED: what is made stays. */
kith_status ki_frozen_features(ki_train_state *run, kith_error *err);

/* What decides the features beside the images: the network's file, by its SHA-256 (without one its seed), and the recipe's input. The
 * caller frees it. */
kith_status ki_frozen_identity(const ki_recipe *recipe, const char *weights_hash, char **ret,
                               kith_error *err);

/* The network whose model file and card this run writes. */
const ki_net *ki_train_model(const ki_train_state *run);

/* Write the model as it is now, for the size of test images, and read one back: of the run's network, or of the whole. */
kith_status ki_train_model_save(ki_train_state *run, const ki_weights_origin *origin,
                                const kith_calibration *calibration, const char *path, kith_error *err);
kith_status ki_train_model_load(ki_train_state *run, const kith_tensors *tensors, kith_error *err);

#endif
