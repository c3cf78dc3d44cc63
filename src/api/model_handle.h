/* What is behind a kith_model; for the files of this folder. */
#ifndef KI_API_MODEL_HANDLE_H
#define KI_API_MODEL_HANDLE_H

#include "embed/embedder.h"
#include "kith/model.h"

struct kith_model {
    ki_backend *backend;
    ki_net net;
    ki_params *params;
    int64_t most_batch;
    kith_calibration calibration; /* without points: none */

    ki_embedder *embedder; /* NULL, or for the batch, the resizing ("": any) and the workers below */
    int64_t batch;
    char resize[32];
    int64_t n_workers;
};

#endif
