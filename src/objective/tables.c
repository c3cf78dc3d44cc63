/* The tables of methods, made from the table.def of each folder. */
#include <string.h>

#include "objective/loss/loss.h"
#include "objective/miner/miner.h"
#include "objective/reg/reg.h"

/* Every record begins with its ki_method. */
typedef struct row {
    const ki_method *method;
    bool has_device;
} row;

#define ON_BOTH true
#define ON_HOST false

#define X(name, device) {&ki_loss_##name.method, ON_##device},
static const row losses[] = {
#include "objective/loss/table.def"
#include "objective/proxy/table.def"
};
#undef X
#define X(name, device) {&ki_miner_##name.method, ON_##device},
static const row miners[] = {
#include "objective/miner/table.def"
};
#undef X
#define X(name, device) {&ki_reg_##name.method, ON_##device},
static const row regs[] = {
#include "objective/reg/table.def"
};
#undef X

static const struct table {
    const char *what; /* in errors */
    const row *rows;
    size_t n;
} tables[] = {
    {"loss", losses, sizeof losses / sizeof losses[0]},
    {"miner", miners, sizeof miners / sizeof miners[0]},
    {"regularizer", regs, sizeof regs / sizeof regs[0]},
};
enum { LOSSES, MINERS, REGS, N_TABLES };
enum { MOST_ROWS = 128 };
_Static_assert(sizeof losses / sizeof losses[0] <= MOST_ROWS, "room for the names of an error");
_Static_assert(sizeof miners / sizeof miners[0] <= MOST_ROWS, "room for the names of an error");
_Static_assert(sizeof regs / sizeof regs[0] <= MOST_ROWS, "room for the names of an error");

static const void *at(int table, size_t i) {
    return i < tables[table].n ? tables[table].rows[i].method : NULL;
}

static kith_status find(int table, const char *name, const void **ret_record, kith_error *err) {
    const struct table *t = &tables[table];
    const char *names[MOST_ROWS];
    for (size_t i = 0; i < t->n; i++) {
        names[i] = t->rows[i].method->name;
        if (strcmp(names[i], name) == 0) return *ret_record = t->rows[i].method, KITH_OK;
    }
    return ki_fail_unknown(err, t->what, name, names, t->n);
}

const ki_loss *ki_loss_at(size_t i) { return at(LOSSES, i); }
const ki_miner *ki_miner_at(size_t i) { return at(MINERS, i); }
const ki_reg *ki_reg_at(size_t i) { return at(REGS, i); }

kith_status ki_loss_find(const char *name, const ki_loss **ret_loss, kith_error *err) {
    const void *found = NULL;
    KI_TRY(find(LOSSES, name, &found, err));
    *ret_loss = found;
    return KITH_OK;
}

kith_status ki_miner_find(const char *name, const ki_miner **ret_miner, kith_error *err) {
    const void *found = NULL;
    KI_TRY(find(MINERS, name, &found, err));
    *ret_miner = found;
    return KITH_OK;
}

kith_status ki_reg_find(const char *name, const ki_reg **ret_reg, kith_error *err) {
    const void *found = NULL;
    KI_TRY(find(REGS, name, &found, err));
    *ret_reg = found;
    return KITH_OK;
}

bool ki_method_has_device(const char *what, const char *name) {
    for (int t = 0; t < N_TABLES; t++) {
        if (strcmp(tables[t].what, what) != 0) continue;
        for (size_t i = 0; i < tables[t].n; i++) {
            if (strcmp(tables[t].rows[i].method->name, name) == 0) return tables[t].rows[i].has_device;
        }
    }
    return false;
}
