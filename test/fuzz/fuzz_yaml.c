/* libFuzzer target: any bytes as a yaml file. */
#include <stdint.h>
#include <stdlib.h>

#include "io/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kith_error err;
    ki_arena arena = {0};
    ki_value *root = NULL;
    if (ki_yaml_parse((const char *)data, size, "fuzz", &arena, &root, &err) == KITH_OK) {
        char text[80];
        ki_value_describe(root, text, sizeof text);
    }
    ki_arena_release(&arena);
    return 0;
}
