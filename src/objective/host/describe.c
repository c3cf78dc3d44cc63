/* Descriptors for test time: the normalised embedding and what a regularizer makes of the taps. */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "objective/check.h"
#include "objective/host/host.h"

kith_status ki_objective_fail_describe(kith_error *err) {
    char names[128] = "";
    size_t used = 0;
    for (size_t i = 0; ki_reg_at(i); i++) {
        const ki_reg *reg = ki_reg_at(i);
        if (reg->describe && used < sizeof names)
            used += (size_t)ki_snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                                        reg->method.name);
    }
    return ki_fail(err, KITH_EINVAL, "no term of the objective has descriptors of its own (%s has)", names);
}

static const ki_reg_use *describing_reg(const ki_objective *objective) {
    for (size_t i = 0; i < objective->n_regs; i++) {
        if (objective->reg[i].record->describe) return &objective->reg[i];
    }
    return NULL;
}

int64_t ki_objective_describe_dim(const ki_objective *objective) {
    const ki_reg_use *reg = describing_reg(objective);
    if (!reg) return 0;
    const ki_reg_in in = {.settings = reg->settings};
    const bool reads = (objective->taps & KI_TAP_BIT(KI_TAP_EMBEDDING)) != 0;
    return (reads ? objective->sizes.embedding : 0) + reg->record->describe_dim(&in);
}

int64_t ki_objective_describe_n(const ki_objective *objective, int64_t *ret_width) {
    const ki_reg_use *reg = describing_reg(objective);
    *ret_width = 0;
    if (!reg) return 0;
    const ki_reg_in in = {.settings = reg->settings};
    const int64_t n = reg->record->describe_n(&in);
    *ret_width = reg->record->describe_dim(&in) / n;
    return n;
}

kith_status ki_objective_describe(ki_objective *objective, const ki_batch *batch, ki_real **ret_descriptor,
                                  int64_t *ret_dim, kith_error *err) {
    ki_evaluation e = {.o = objective, .batch = batch, .share = {.n = batch->m}};
    const ki_reg_use *reg = describing_reg(objective);
    const bool has_embedding = (objective->taps & KI_TAP_BIT(KI_TAP_EMBEDDING)) != 0;
    ki_real *part = NULL, *whole = NULL;
    if (!reg) return ki_objective_fail_describe(err);
    KI_TRY(ki_batch_check_taps(objective, batch, err));
    ki_evaluation_forget(objective);
    ki_evaluation_begin(&e);
    e.n_labelled = e.m; /* classes do not matter */
    if (has_embedding) KI_TRY(ki_evaluation_normalize(&e, err));
    const ki_reg_in in = ki_evaluation_reg_in(&e, (size_t)(reg - objective->reg));
    const int64_t own = reg->record->describe_dim(&in), dim = (has_embedding ? e.dim : 0) + own;
    size_t n = 0;
    if (!ki_mul_size((size_t)e.m, (size_t)dim, &n)) return ki_fail_memory(err, SIZE_MAX, "descriptors");
    KI_TRY(ki_work_reals(&objective->work, e.m * own, "descriptors", &part, err));
    KI_TRY(reg->record->describe(&in, part, err));
    KI_TRY(ki_alloc_or(&whole, n, sizeof *whole, "descriptors", err));
    for (int64_t i = 0; i < e.m; i++) {
        if (has_embedding) memcpy(whole + i * dim, e.unit + i * e.dim, (size_t)e.dim * sizeof *whole);
        memcpy(whole + i * dim + dim - own, part + i * own, (size_t)own * sizeof *whole);
    }
    *ret_descriptor = whole;
    *ret_dim = dim;
    return KITH_OK;
}
