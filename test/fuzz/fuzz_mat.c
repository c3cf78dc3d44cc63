/* libFuzzer target: any bytes as a list of Cars196, with annotations and class names. */
#include <stdint.h>
#include <stdlib.h>

#include "data/dataset/dataset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const path_fields[] = {"fname", "relative_im_path"};
    for (int i = 0; i < 2; i++) {
        kith_error err;
        kith_dataset *set = NULL;
        if (ki_dataset_new(&ki_dataset_cars, "fuzz", &set, &err) != KITH_OK) return 0;
        ki_cars_parse(set, "root", "fuzz", data, size, path_fields[i], &err);
        kith_split_summary summary;
        kith_dataset_summary(set, KITH_SPLIT_TRAIN, &summary, &err);
        kith_dataset_free(set);
    }
    return 0;
}
