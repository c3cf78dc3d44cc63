/* libFuzzer target: any bytes as a npy file, of numbers and of labels. */
#include <stdint.h>
#include <stdlib.h>

#include "data/labels.h"
#include "io/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kith_error err;
    kith_array array = {0};
    /* touch every byte that is handed out */
    if (ki_npy_parse(data, size, "fuzz", &array, &err) == KITH_OK) {
        kith_array bytes = {.dtype = KITH_U8, .n_dims = 1, .data = array.data};
        bytes.dim[0] = kith_array_count(&array) * (int64_t)kith_dtype_bytes(array.dtype);
        kith_array copy = {0};
        if (kith_array_convert(&bytes, KITH_I64, &copy, &err) == KITH_OK) kith_array_release(&copy);
        if (kith_array_convert(&array, KITH_F32, &copy, &err) == KITH_OK) kith_array_release(&copy);
        if (kith_array_convert(&array, KITH_F16, &copy, &err) == KITH_OK) kith_array_release(&copy);
        if (kith_array_convert(&array, KITH_I32, &copy, &err) == KITH_OK) kith_array_release(&copy);
    }
    kith_array_release(&array);
    kith_labels *labels = NULL;
    if (kith_labels_new(&labels, &err) != KITH_OK) return 0;
    if (ki_labels_parse(labels, (const char *)data, size, "fuzz.npy", &array, &err) == KITH_OK)
        kith_array_release(&array);
    kith_labels_free(labels);
    return 0;
}
