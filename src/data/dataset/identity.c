/* Which items a data set has: as a hash to compare, and as a list to read. Paths are relative to the root, so that
 * a set may be moved. Pixels do not count. */
#include <string.h>

#include "base/atomic.h"
#include "base/buffer.h"
#include "data/dataset/dataset.h"
#include "data/dataset/table.h"
#include "kith/eval.h"

static const char *below_root(const kith_dataset *set, const ki_item *item) {
    if (set->name) return set->name[item - set->item];
    const size_t n = strlen(set->root);
    return strncmp(item->path, set->root, n) == 0 ? item->path + n : item->path;
}

/* For a single split, the split is the same for all items and not part of the hash. */
void kith_dataset_hash(const kith_dataset *set, int split, char ret_hex[65]) {
    if (!set || !ret_hex) return;
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

const char *ki_dataset_item_name(const kith_dataset *set, size_t i) {
    const char *path = below_root(set, &set->item[i]);
    return path != set->item[i].path && *path == '/' ? path + 1 : path;
}

kith_status ki_dataset_list_write(const kith_dataset *set, const char *path, kith_error *err) {
    ki_buffer text = {.err = err};
    ki_buffer_put(&text, "path,label,split\n");
    for (size_t i = 0; i < set->n_items; i++) {
        ki_table_put(&text, ki_dataset_item_name(set, i));
        ki_buffer_add(&text, ",", 1);
        ki_table_put(&text, set->class_[set->item[i].label].key);
        ki_buffer_put(&text, ",%s\n", kith_split_name((kith_split)set->item[i].split));
    }
    kith_status status = text.status;
    if (status == KITH_OK) status = ki_file_write(path, text.data, text.n, err);
    ki_buffer_release(&text);
    return status;
}
