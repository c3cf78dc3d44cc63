/* HEIC and AVIF as a plugin: libheif reads the still image that the file calls its primary one. The record, and the two symbols that
 * libkith-heif.so exports.
 *
 * The file's own properties (irot, imir, clap) rotate, mirror and crop the image, and libheif applies them. An EXIF
 * block may repeat them. By the rules of the format it must then be ignored, so the orientation is always 1 here.
 * libheif is C++ inside: its memory is not counted by base/alloc.h. */
#include <string.h>

#include <libheif/heif.h>

#include "base/alloc.h"
#include "base/plugin.h"
#include "data/image/heif_order.h"
#include "data/image/image.h"

/* If libheif refuses a file, the file is at fault; if one of libheif's limits is exceeded, the image is too
 * big. */
static kith_status fail_heif(struct heif_error found, kith_error *err) {
    const char *why = found.message ? found.message : "no reason is given";
    if (found.subcode == heif_suberror_Unsupported_codec) {
        ki_fail(err, KITH_EUNSUPPORTED, "no decoder for this image is installed (%s)", why);
        return ki_hint(err, KITH_EUNSUPPORTED,
                       "libheif needs libde265 for HEIC, dav1d or aom for AVIF (Debian 13: "
                       "libheif-plugin-libde265, libheif-plugin-dav1d)");
    }
    if (found.subcode == heif_suberror_Security_limit_exceeded) return ki_fail(err, KITH_EINVAL, "%s", why);
    if (found.code == heif_error_Unsupported_filetype || found.code == heif_error_Unsupported_feature)
        return ki_fail(err, KITH_EUNSUPPORTED, "%s", why);
    return ki_fail(err, KITH_EFORMAT, "the image is damaged or cut off (%s)", why);
}

/* A file and its primary image. */
typedef struct opened {
    struct heif_context *context;
    struct heif_image_handle *handle;
    uint8_t *mended; /* the file's bytes, where they had to be put in order */
} opened;

static void opened_release(opened *o) {
    heif_image_handle_release(o->handle);
    heif_context_free(o->context);
    ki_free(o->mended);
}

/* Both sizes in the header: of the whole image, which is decoded, and of the part that is cut out of it. */
static kith_status check_sizes(const struct heif_image_handle *handle, int64_t most_pixels, kith_error *err) {
    const int w = heif_image_handle_get_width(handle), h = heif_image_handle_get_height(handle);
    const int whole_w = heif_image_handle_get_ispe_width(handle),
              whole_h = heif_image_handle_get_ispe_height(handle);
    if (w < 0 || h < 0 || whole_w < 0 || whole_h < 0)
        return ki_fail(err, KITH_EFORMAT, "the image is %d x %d pixels", w, h);
    KI_TRY(ki_image_check_size((uint64_t)whole_w, (uint64_t)whole_h, most_pixels, err));
    return ki_image_check_size((uint64_t)w, (uint64_t)h, most_pixels, err);
}

static kith_status mend(const uint8_t **bytes, size_t n_bytes, opened *o, kith_error *err) {
    if (!ki_heif_turns_first(*bytes, n_bytes, NULL)) return KITH_OK;
    KI_TRY(ki_alloc_or(&o->mended, n_bytes, 1, "a HEIF image", err));
    memcpy(o->mended, *bytes, n_bytes);
    ki_heif_turns_first(*bytes, n_bytes, o->mended);
    *bytes = o->mended;
    return KITH_OK;
}

static kith_status open_primary(const uint8_t *bytes, size_t n_bytes, opened *o, kith_error *err) {
    KI_TRY(mend(&bytes, n_bytes, o, err));
    o->context = heif_context_alloc();
    if (!o->context) return ki_fail_memory(err, n_bytes, "a HEIF image");
    heif_context_set_max_decoding_threads(o->context, 0); /* the loader's threads are enough */
    struct heif_error found = heif_context_read_from_memory_without_copy(o->context, bytes, n_bytes, NULL);
    if (found.code == heif_error_Ok) found = heif_context_get_primary_image_handle(o->context, &o->handle);
    return found.code == heif_error_Ok ? KITH_OK : fail_heif(found, err);
}

/* Copy libheif's rows into our rows, which have no padding. */
static kith_status take_rows(const struct heif_image *from, int channels, const ki_decode *how,
                             ki_image *ret_image, kith_error *err) {
    int stride = 0;
    const uint8_t *row = heif_image_get_plane_readonly(from, heif_channel_interleaved, &stride);
    const int w = heif_image_get_width(from, heif_channel_interleaved);
    const int h = heif_image_get_height(from, heif_channel_interleaved);
    if (!row || w <= 0 || h <= 0 || stride < w * channels)
        return ki_fail(err, KITH_EFORMAT, "the image has no pixels");
    /* The coded image may be larger than the header said. */
    KI_TRY(ki_image_check_size((uint64_t)w, (uint64_t)h, how->most_pixels, err));
    KI_TRY(ki_image_shape(ret_image, w, h, 3, err));
    for (int y = 0; y < h; y++, row += stride) {
        uint8_t *dst = ret_image->data + (size_t)y * (size_t)w * 3;
        if (channels == 4)
            ki_blend_rgba(row, w, how->background, dst);
        else
            memcpy(dst, row, (size_t)w * 3);
    }
    return KITH_OK;
}

static kith_status decode(const uint8_t *bytes, size_t n_bytes, const ki_decode *how, ki_image *ret_image,
                          int *ret_orientation, kith_error *err) {
    kith_status status = KITH_OK;
    opened o = {0};
    struct heif_image *image = NULL;
    struct heif_decoding_options *options = NULL;
    KI_CHECK(open_primary(bytes, n_bytes, &o, err));
    KI_CHECK(check_sizes(o.handle, how->most_pixels, err));
    options = heif_decoding_options_alloc();
    if (!options) {
        status = ki_fail_memory(err, sizeof *options, "a HEIF image");
        goto done;
    }
    options->convert_hdr_to_8bit = 1;
    options->strict_decoding = 1;
    const bool has_alpha = heif_image_handle_has_alpha_channel(o.handle) != 0;
    const struct heif_error found =
        heif_decode_image(o.handle, &image, heif_colorspace_RGB,
                          has_alpha ? heif_chroma_interleaved_RGBA : heif_chroma_interleaved_RGB, options);
    if (found.code != heif_error_Ok) {
        status = fail_heif(found, err);
        goto done;
    }
    KI_CHECK(take_rows(image, has_alpha ? 4 : 3, how, ret_image, err));
    *ret_orientation = 1;
done:
    heif_image_release(image);
    heif_decoding_options_free(options);
    opened_release(&o);
    return status;
}

static kith_status probe(const uint8_t *bytes, size_t n_bytes, int32_t *ret_w, int32_t *ret_h,
                         int *ret_orientation, kith_error *err) {
    opened o = {0};
    kith_status status = open_primary(bytes, n_bytes, &o, err);
    if (status == KITH_OK) status = check_sizes(o.handle, KI_IMAGE_MOST_PIXELS, err);
    if (status == KITH_OK) {
        *ret_w = heif_image_handle_get_width(o.handle);
        *ret_h = heif_image_handle_get_height(o.handle);
        *ret_orientation = 1;
    }
    opened_release(&o);
    return status;
}

/* Planes of the codec and of libheif, or libheif's RGB and ours. */
static const ki_image_format reader = {.name = "HEIF", .decode = decode, .probe = probe, .pixel_bytes = 8};

KITH_API extern const char kith_plugin_interface[];
const char kith_plugin_interface[] = KI_PLUGIN_INTERFACE;

/* From 1.16 on, libheif's decoders may be files of their own. heif_init loads them all now: a process that locks itself in later cannot
 * open files. If none is found, decoding says so. */
KITH_API ki_plugin_fn kith_plugin;
const void *kith_plugin(ki_process *process) {
    ki_process_adopt(process);
    heif_init(NULL);
    return &reader;
}
