/* libFuzzer target: any bytes as a manifest, a segment, changes or a filter of an index (test/search/index_bytes.h). */
#include "../search/index_bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kith_error err;
    index_bytes(data, size, &err);
    return 0;
}
