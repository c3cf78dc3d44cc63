/* Which items a data set has, as a hash to compare. Paths count from the root on, so that a
 * set may be moved; pixels do not count. */
#include <string.h>

#include "data/dataset/dataset.h"
#include "kith/eval.h"

static const char *below_root(const kith_dataset *set, const ki_item *item) {
    const size_t n = strlen(set->root);
    return strncmp(item->path, set->root, n) == 0 ? item->path + n : item->path;
}

/* With one split alone the split is the same for all, and not part of the hash. */
void kith_dataset_hash(const kith_dataset *set, int split, char ret_hex[65]) {
    kith_hash hash = {0};
    for (size_t i = 0; i < set->n_items; i++) {
        const ki_item *item = &set->item[i];
        if (split >= 0 && item->split != split) continue;
        const char *path = below_root(set, item);
        const uint32_t label = (uint32_t)item->label;
        const unsigned char tail[5] = {(unsigned char)label, (unsigned char)(label >> 8),
                                       (unsigned char)(label >> 16), (unsigned char)(label >> 24),
                                       (unsigned char)item->split};
        kith_hash_add(&hash, path, strlen(path) + 1);
        kith_hash_add(&hash, tail, split >= 0 ? 4 : 5);
    }
    kith_hash_finish(&hash, ret_hex);
}
