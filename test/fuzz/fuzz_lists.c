/* libFuzzer target: the first byte chooses a list parser, the rest is its file (or files, cut at 0x1e). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "data/dataset/dataset.h"
#include "data/labels.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_PARTS = 4 };

typedef struct part {
    const char *s;
    size_t n;
} part;

static void cut(const char *s, size_t n, part parts[MOST_PARTS]) {
    for (int i = 0; i < MOST_PARTS; i++) {
        const char *stop = i + 1 < MOST_PARTS && n ? memchr(s, 0x1e, n) : NULL;
        const size_t m = stop ? (size_t)(stop - s) : n;
        parts[i] = (part){s, m};
        s += stop ? m + 1 : m;
        n -= stop ? m + 1 : m;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    kith_error err;
    kith_dataset *set = NULL;
    if (ki_dataset_new(&ki_dataset_csv, "fuzz", &set, &err) != KITH_OK) return 0;
    const char *text = (const char *)data + 1;
    const size_t n = size - 1;
    part p[MOST_PARTS];
    cut(text, n, p);
    switch (data[0]) {
    case 'c':
        ki_cub_parse(set, "root", p[0].s, p[0].n, p[1].s, p[1].n, p[2].s, p[2].n, p[3].s, p[3].n, &err);
        break;
    case 's': ki_sop_parse(set, "root", text, n, KITH_SPLIT_TRAIN, &err); break;
    case 'i': ki_inshop_parse(set, "root", text, n, &err); break;
    case 'm': ki_csv_parse(set, "root", text, n, &err); break;
    case 'x': /* idx files hold any byte: the first word says where the labels begin */
        if (n >= 2) {
            const size_t at = (size_t)(data[1] | data[2] << 8), left = n - 2;
            const size_t images = at < left ? at : left;
            ki_idx_parse(set, "idx", data + 3, images, data + 3 + images, left - images, KITH_SPLIT_TRAIN,
                         &err);
        }
        break;
    case 'l':
    case 't': {
        kith_labels *labels = NULL;
        kith_array ids = {0};
        if (kith_labels_new(&labels, &err) != KITH_OK) break;
        if (ki_labels_parse(labels, text, n, data[0] == 'l' ? "y.csv" : "y.txt", &ids, &err) == KITH_OK)
            kith_array_release(&ids);
        kith_labels_free(labels);
        break;
    }
    default: break;
    }
    kith_split_summary summary;
    kith_dataset_summary(set, KITH_SPLIT_TRAIN, &summary, &err);
    kith_dataset_free(set);
    return 0;
}
