/* Miners on the device: one row each, with the options in the order in which mine.cu reads them. */
#include <string.h>

#include "objective/cuda/inside.h"

static const struct row {
    const char *name;
    ki_cuda_miner_kind kind;
    const char *options[2];
} rows[] = {
    {"all", KI_CUDA_MINE_ALL, {0}},
    {"vthm", KI_CUDA_MINE_VTHM, {"margin"}},
    {"semihard", KI_CUDA_MINE_SEMIHARD, {"margin"}},
    {"hard", KI_CUDA_MINE_HARD, {0}},
    {"distance_weighted", KI_CUDA_MINE_DISTANCE_WEIGHTED, {"cutoff", "nonzero_loss_cutoff"}},
    {"pair_margin", KI_CUDA_MINE_PAIR_MARGIN, {"pos_margin", "neg_margin"}},
};

kith_status ki_cuda_miner_of(const ki_objective *o, ki_cuda_miner *ret_miner, kith_error *err) {
    const ki_method *method = &o->miner->method;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        if (strcmp(row->name, method->name) != 0) continue;
        *ret_miner = (ki_cuda_miner){.kind = row->kind};
        for (int k = 0; k < 2 && row->options[k]; k++)
            ret_miner->option[k] = ki_method_number(method, o->miner_settings, row->options[k]);
        return KITH_OK;
    }
    return ki_cuda_fail_method(err, "miner", method->name);
}
