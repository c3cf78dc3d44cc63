/* libFuzzer target: any bytes as a gzipped idx file of images (first byte even) or labels. */
#include <stdint.h>
#include <stdlib.h>

#include "data/dataset/dataset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    kith_error err;
    ki_bytes bytes = {0};
    const int n_dims = data[0] % 2 ? 1 : 3;
    if (ki_idx_unpack(data + 1, size - 1, "fuzz", "images", n_dims, &bytes, &err) == KITH_OK) {
        volatile uint8_t sum = 0; /* touch every byte that is handed out */
        for (size_t i = 0; i < bytes.n; i++) sum = (uint8_t)(sum + bytes.data[i]);
    }
    ki_bytes_release(&bytes);
    return 0;
}
