/* Every valid pair and every valid triplet counts. */
#include "objective/miner/miner.h"

const ki_miner ki_miner_all = {
    .method = {.name = "all",
               .summary = "every pair and every triplet counts",
               .source = "-",
               .options = ki_no_options},
};
