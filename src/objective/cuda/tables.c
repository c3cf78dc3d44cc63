/* The methods that the device has, by name: the rows of the host's tables that are marked BOTH. */
#include <string.h>

#include "objective/cuda/loss.h"
#include "objective/cuda/miner.h"
#include "objective/cuda/reg.h"

typedef struct row {
    const char *name;
    const void *record;
} row;

#define ROW_HOST(kind, name)
#define ROW_BOTH(kind, name) {#name, &ki_cuda_##kind##_##name},

#define X(name, device) ROW_##device(loss, name)
static const row losses[] = {
#include "objective/loss/table.def"
#include "objective/proxy/table.def"
    {NULL, NULL}};
#undef X
#define X(name, device) ROW_##device(miner, name)
static const row miners[] = {
#include "objective/miner/table.def"
    {NULL, NULL}};
#undef X
#define X(name, device) ROW_##device(reg, name)
static const row regs[] = {
#include "objective/reg/table.def"
    {NULL, NULL}};
#undef X

static const void *find(const row *rows, const char *name) {
    while (rows->name && strcmp(rows->name, name) != 0) rows++;
    return rows->record;
}

const ki_cuda_loss *ki_cuda_loss_find(const char *name) { return find(losses, name); }
const ki_cuda_miner *ki_cuda_miner_find(const char *name) { return find(miners, name); }
const ki_cuda_reg *ki_cuda_reg_find(const char *name) { return find(regs, name); }
