/* libFuzzer target: any bytes as a tar file; what is handed out must lie within it. */
#include <stdint.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "io/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ki_tar_walk *walk = ki_zalloc(1, sizeof *walk);
    ki_tar_entry entry;
    bool more = true;
    kith_error err;
    if (!walk) return 0;
    walk->source = (ki_tar_source){
        .fd = -1, .bytes = data ? data : (const uint8_t *)"", .n_bytes = (int64_t)size, .name = "fuzz"};
    while (more && ki_tar_next(walk, &entry, &more, &err) == KITH_OK && more) {
        volatile uint8_t sum = 0; /* touch every byte that is handed out */
        for (int64_t i = 0; i < entry.bytes; i++) sum = (uint8_t)(sum + data[entry.at + i]);
        for (const char *at = entry.name; *at; at++) sum = (uint8_t)(sum + (uint8_t)*at);
    }
    ki_free(walk);
    return 0;
}
