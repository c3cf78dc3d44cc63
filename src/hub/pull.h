/* Fetching weights by name: what kith_pull_run does before anybody looks into the file. */
#ifndef KI_HUB_PULL_H
#define KI_HUB_PULL_H

#include "base/path.h"
#include "hub/name.h"
#include "kith/pull.h"

typedef struct ki_hub_pulled {
    ki_path file; /* the weights in their snapshot */
    char commit[KI_HUB_COMMIT];
    int64_t bytes;     /* of the weights */
    int64_t n_fetched; /* bytes that came over the network now */
    bool is_unverified;
} ki_hub_pulled;

/* The weights and config.json, and of transformers preprocessor_config.json, into the cache. Offline (HF_HUB_OFFLINE) only what is there. */
kith_status ki_hub_pull(const ki_hub_name *name, const kith_pull_options *options, ki_hub_pulled *ret_pulled,
                        kith_error *err);

#endif
