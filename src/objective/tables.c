/* The tables of methods, made from the table.def of each folder. */
#include <string.h>

#include "objective/loss/loss.h"
#include "objective/miner/miner.h"
#include "objective/reg/reg.h"

#define X(name) &ki_loss_##name,
static const ki_loss *const losses[] = {
#include "objective/loss/table.def"
#include "objective/proxy/table.def"
};
#undef X
#define X(name) &ki_miner_##name,
static const ki_miner *const miners[] = {
#include "objective/miner/table.def"
};
#undef X
#define X(name) &ki_reg_##name,
static const ki_reg *const regs[] = {
#include "objective/reg/table.def"
};
#undef X

#define N_ROWS(table) (sizeof(table) / sizeof((table)[0]))

const ki_loss *ki_loss_at(size_t i) { return i < N_ROWS(losses) ? losses[i] : NULL; }
const ki_miner *ki_miner_at(size_t i) { return i < N_ROWS(miners) ? miners[i] : NULL; }
const ki_reg *ki_reg_at(size_t i) { return i < N_ROWS(regs) ? regs[i] : NULL; }

#define FIND(what, table, name, ret)                                                \
    do {                                                                            \
        const char *names[N_ROWS(table)];                                           \
        for (size_t i = 0; i < N_ROWS(table); i++) {                                \
            names[i] = (table)[i]->method.name;                                     \
            if (strcmp(names[i], (name)) == 0) return *(ret) = (table)[i], KITH_OK; \
        }                                                                           \
        return ki_fail_unknown(err, what, name, names, N_ROWS(table));              \
    } while (0)

kith_status ki_loss_find(const char *name, const ki_loss **ret_loss, kith_error *err) {
    FIND("loss", losses, name, ret_loss);
}

kith_status ki_miner_find(const char *name, const ki_miner **ret_miner, kith_error *err) {
    FIND("miner", miners, name, ret_miner);
}

kith_status ki_reg_find(const char *name, const ki_reg **ret_reg, kith_error *err) {
    FIND("regularizer", regs, name, ret_reg);
}
