/* libFuzzer target: any bytes as a .pth file, and as the pickle inside one. */
#include <stdint.h>
#include <stdlib.h>

#include "io/pickle.h"
#include "io/pth.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kith_error err;
    kith_tensors_writer *writer = NULL;
    ki_arena arena = {0};
    ki_pickle pickle = {0};
    if (kith_tensors_writer_new(&writer, &err) != KITH_OK) return 0;
    ki_pth_parse(data, size, "fuzz", writer, &err);
    kith_tensors_writer_free(writer);
    ki_pickle_parse(data, size, "fuzz", &arena, &pickle, &err);
    ki_arena_release(&arena);
    return 0;
}
