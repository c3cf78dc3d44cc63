/* libFuzzer target: any bytes as a safetensors file. */
#include <stdint.h>
#include <stdlib.h>

#include "io/tensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kith_error err;
    kith_tensors *tensors = NULL;
    if (ki_tensors_parse(data, size, "fuzz", &tensors, &err) == KITH_OK) {
        for (int64_t i = 0; i < kith_tensors_count(tensors); i++) {
            kith_array view = {0}, copy = {0};
            if (kith_tensors_get(tensors, kith_tensors_name(tensors, i), &view, &err) != KITH_OK) abort();
            if (kith_array_convert(&view, KITH_F64, &copy, &err) != KITH_OK) abort();
            kith_array_release(&copy);
        }
        kith_tensors_metadata(tensors, "format");
        kith_tensors_free(tensors);
    }
    return 0;
}
