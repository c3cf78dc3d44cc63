/* libFuzzer target: any bytes as an image, decoded whole, at a smaller scale and by header alone. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/plugin.h"
#include "data/image/image.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__lsan_default_suppressions(void);
const char *__asan_default_options(void);

/* With a damaged AVIF, libheif 1.15 loses an image it made itself, and its AV1 decoder some memory (docs/adr/0015). We never call
 * heif_image_create, so what we lose is still seen. Whole stacks are needed to tell: C++ libraries have no frame pointers. */
const char *__lsan_default_suppressions(void) { return "leak:libdav1d\nleak:heif_image_create\n"; }
const char *__asan_default_options(void) { return "fast_unwind_on_malloc=0"; }

#ifdef KITH_HEIF
extern ki_plugin_fn kith_plugin; /* of plugin/heif.c */
#endif

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
#ifdef KITH_HEIF
    ki_heif_adopt(kith_plugin(ki_process_now()));
#endif
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kith_error err;
    ki_image image = {0};
    /* small enough that a hostile header costs no time */
    const ki_decode whole = {.most_pixels = 1 << 18}, scaled = {.most_pixels = 1 << 18, .least_side = 5};
    int32_t w = 0, h = 0;
    ki_image_probe(data, size, &w, &h, &err);
    if (ki_image_decode(data, size, &whole, &image, &err) == KITH_OK) {
        /* every byte must be there */
        volatile unsigned sum = 0;
        for (size_t i = 0; i < (size_t)image.w * (size_t)image.h * (size_t)image.channels; i++)
            sum = sum + image.data[i];
    }
    ki_image_decode(data, size, &scaled, &image, &err);
    ki_image_release(&image);
    return 0;
}
