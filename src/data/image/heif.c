/* HEIC and AVIF: recognised here, read by the plugin libkith-heif.so (plugin/heif.c), so that libkith does not link libheif and what
 * comes with it (docs/adr/0015). The plugin is loaded when the first such file is met, or by ki_heif_open. */
#include <pthread.h>
#include <string.h>

#include "base/plugin.h"
#include "data/image/image.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_settled; /* reader or failure is there */
static const ki_image_format *reader;
static kith_error failure;

static void settle(void) {
    static const ki_plugin_ask ask = {
        .name = "heif",
        .what = "a HEIC or AVIF image needs libheif 1.15 or newer (Debian, Ubuntu: libheif1)",
        .makes = "libheif is (libheif-dev)",
        .needs = "libheif 1.15 or newer",
        .instead = "convert the images to JPEG"};
    const void *record = NULL;
    if (ki_plugin_open(&ask, &record, &failure) == KITH_OK) reader = record;
    is_settled = true;
}

kith_status ki_heif_open(kith_error *err) {
    pthread_mutex_lock(&lock);
    if (!is_settled) settle();
    pthread_mutex_unlock(&lock);
    if (reader) return KITH_OK;
    if (err) *err = failure;
    return KITH_EUNSUPPORTED;
}

void ki_heif_adopt(const void *record) {
    reader = record;
    is_settled = true;
}

static uint32_t be32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
}

static bool is_ours(const uint8_t *brand) {
    static const char brands[][5] = {"heic", "heix", "heim", "heis", "mif1", "avif"};
    for (size_t i = 0; i < sizeof brands / sizeof brands[0]; i++) {
        if (memcmp(brand, brands[i], 4) == 0) return true;
    }
    return false;
}

/* The first box: length, "ftyp", the main brand, a version, more brands. Videos have such a box too. */
static bool matches(const uint8_t *bytes, size_t n_bytes) {
    if (n_bytes < 16 || memcmp(bytes + 4, "ftyp", 4) != 0) return false;
    const size_t length = be32(bytes), end = length < n_bytes ? length : n_bytes;
    if (is_ours(bytes + 8)) return true;
    for (size_t at = 16; at + 4 <= end; at += 4) {
        if (is_ours(bytes + at)) return true;
    }
    return false;
}

static kith_status decode(const uint8_t *bytes, size_t n_bytes, const ki_decode *how, ki_image *ret_image,
                          int *ret_orientation, kith_error *err) {
    KI_TRY(ki_heif_open(err));
    return reader->decode(bytes, n_bytes, how, ret_image, ret_orientation, err);
}

static kith_status probe(const uint8_t *bytes, size_t n_bytes, int32_t *ret_w, int32_t *ret_h,
                         int *ret_orientation, kith_error *err) {
    KI_TRY(ki_heif_open(err));
    return reader->probe(bytes, n_bytes, ret_w, ret_h, ret_orientation, err);
}

static kith_status decode_bytes(const uint8_t *bytes, size_t n_bytes, const ki_decode *how,
                                int64_t *ret_pixels, int64_t *ret_bytes, kith_error *err) {
    int32_t w = 0, h = 0;
    int orientation = 1;
    (void)how;
    KI_TRY(probe(bytes, n_bytes, &w, &h, &orientation, err));
    *ret_pixels = 4 * (int64_t)w * h;
    *ret_bytes = reader->pixel_bytes * (int64_t)w * h;
    return KITH_OK;
}

const ki_image_format ki_image_heif = {
    .name = "HEIF", .matches = matches, .decode = decode, .probe = probe, .decode_bytes = decode_bytes};
