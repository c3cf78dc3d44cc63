/* What an objective offers to be scored beside the embedding. */
#include <string.h>

#include "base/text.h"
#include "objective/state.h"

/* The first with descriptors: its rows are those that ki_objective_describe makes. */
static const ki_reg_use *listing_reg(const ki_objective *objective) {
    for (size_t i = 0; i < objective->n_regs; i++) {
        if (objective->reg[i].record->describe)
            return objective->reg[i].record->variants ? &objective->reg[i] : NULL;
    }
    return NULL;
}

bool ki_objective_lists_variants(const ki_objective *objective) {
    return objective->nested.n > 0 || listing_reg(objective) != NULL;
}

size_t ki_objective_variants(const ki_objective *objective, ki_variant *ret, size_t most) {
    const ki_reg_use *reg = listing_reg(objective);
    const ki_nested *nested = &objective->nested;
    size_t n = 1;
    if (reg)
        n = reg->record->variants(reg->settings, ret, most);
    else if (most > 0)
        ret[0] = ki_variant_embedding_white;
    for (int i = 0; i < nested->n; i++) {
        if (nested->width[i] == objective->sizes.embedding) continue;
        if (n < most)
            ret[n] = (ki_variant){.name = nested->name[i],
                                  .about = "the first numbers of the embedding",
                                  .n_parts = 1,
                                  .has = KI_VARIANT_INTERVALS,
                                  .first = nested->width[i]};
        n++;
    }
    return n;
}

void ki_objective_nested_text(const ki_objective *objective, char *ret_text, size_t bytes) {
    size_t at = 0;
    *ret_text = 0;
    for (int i = 0; i < objective->nested.n && at < bytes; i++)
        at += (size_t)ki_snprintf(ret_text + at, bytes - at, "%s%lld", i ? "," : "",
                                  (long long)objective->nested.width[i]);
}

ki_parts ki_objective_parts(const ki_objective *objective) {
    int64_t width = 0;
    const int64_t n = ki_objective_describe_n(objective, &width), dim = ki_objective_describe_dim(objective);
    ki_parts parts = {.n = 1 + (int)n, .width = {n ? dim - n * width : objective->sizes.embedding}};
    for (int p = 1; p < parts.n; p++) parts.width[p] = width;
    return parts;
}
