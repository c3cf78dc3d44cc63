/* libFuzzer target: any bytes as a photo's file, asked for its facts. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "data/image/facts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ki_photo_facts f;
    ki_photo_facts_read(data, size, &f);
    const bool is_sound = strlen(f.taken) < sizeof f.taken && ki_is_utf8(f.camera) && ki_is_utf8(f.lens) &&
                          isnan(f.latitude) == isnan(f.longitude) &&
                          (isnan(f.latitude) || (fabs(f.latitude) <= 90 && fabs(f.longitude) <= 180));
    if (!is_sound) __builtin_trap();
    return 0;
}
