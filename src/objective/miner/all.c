/* Every valid pair and every valid triplet counts. */
#include "objective/miner/miner.h"

typedef struct settings {
    char none;
} settings;

static const ki_option options[] = {KI_OPTION_END};

const ki_miner ki_miner_all = {
    .method = {.name = "all",
               .summary = "every pair and every triplet counts",
               .source = "-",
               .options = options,
               .settings_bytes = sizeof(settings)},
};
