/* Names of what variants are made by, and the variant that every network has. */
#include "base/variant.h"

const char *ki_change_name(ki_change change) {
    static const char *const names[] = {"none", "pca", "pca_white", "each_white_pca", "white"};
    return names[change];
}

const char *ki_fitted_name(ki_fitted fitted) {
    static const char *const names[] = {"nothing", "training", "test"};
    return names[fitted];
}

int64_t ki_parts_before(const ki_parts *parts, int p) {
    int64_t sum = 0;
    for (int i = 0; i < p && i < parts->n; i++) sum += parts->width[i];
    return sum;
}

bool ki_variant_is_of_embedding(const ki_variant *variant) {
    return variant->first_part == 0 && variant->n_parts == 1;
}

const ki_variant ki_variant_embedding_white = {.name = "embedding_white",
                                               .about = "the embedding alone",
                                               .n_parts = 1,
                                               .change = KI_CHANGE_WHITE,
                                               .fitted_on = KI_FITTED_TRAINING};
