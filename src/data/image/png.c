/* PNG through libpng: every colour type and depth, interlaced or not; also the writer.
 *
 * Sixteen-bit samples are scaled to eight, palettes and low depths expanded, transparency is blended with the
 * background. Colour-space chunks (gAMA, iCCP) are ignored, as in the tools that made the published models.
 * As in jpeg.c, the jump out of libpng's error function stays in this file. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <png.h>

#include "base/alloc.h"
#include "base/text.h"
#include "data/image/image.h"

typedef struct decoder {
    png_structp png;
    png_infop info;
    const uint8_t *bytes;
    size_t n_left, n_bytes;
    bool is_out_of_memory;
    jmp_buf out;
    char text[160];
} decoder;

/* libpng allocates the size that some chunks (eXIf) claim before it has read them. Only a row and zlib's window may
 * be larger than the file, and both are far below SPARE_BYTES. A larger request comes from a false size and is
 * refused. */
static void *take_memory(png_structp png, png_alloc_size_t n) {
    enum { SPARE_BYTES = 4 << 20 };
    decoder *d = png_get_mem_ptr(png);
    if (n > d->n_bytes + SPARE_BYTES) return NULL;
    void *ptr = ki_alloc(n, 1);
    if (!ptr) d->is_out_of_memory = true;
    return ptr;
}

static void give_memory_back(png_structp png, void *ptr) {
    (void)png;
    ki_free(ptr);
}

static void leave(png_structp png, png_const_charp text) {
    decoder *d = png_get_error_ptr(png);
    ki_snprintf(d->text, sizeof d->text, "%s", text);
    longjmp(d->out, 1);
}

static void be_silent(png_structp png, png_const_charp text) { (void)png, (void)text; }

static void take(png_structp png, png_bytep dst, size_t n) {
    decoder *d = png_get_io_ptr(png);
    if (n > d->n_left) png_error(png, "the file ends before the image does");
    memcpy(dst, d->bytes, n);
    d->bytes += n;
    d->n_left -= n;
}

static bool matches(const uint8_t *bytes, size_t n_bytes) {
    return n_bytes >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0;
}

static kith_status begin(decoder *d, const uint8_t *bytes, size_t n_bytes, kith_error *err) {
    *d = (decoder){.bytes = bytes, .n_left = n_bytes, .n_bytes = n_bytes};
    d->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, d, leave, be_silent, d, take_memory,
                                      give_memory_back);
    if (!d->png) return ki_fail_memory(err, sizeof *d, "a PNG decoder");
    d->info = png_create_info_struct(d->png);
    if (!d->info) return ki_fail_memory(err, sizeof *d, "a PNG decoder");
    return KITH_OK;
}

/* Why libpng jumped out, or continued without a part of the file. */
static kith_status outcome(const decoder *d, bool has_left, kith_error *err) {
    if (d->is_out_of_memory) return ki_fail_memory(err, d->n_bytes, "a PNG decoder");
    return has_left ? ki_fail(err, KITH_EFORMAT, "%s", d->text) : KITH_OK;
}

static int orientation_of(decoder *d) {
    png_bytep block = NULL;
    png_uint_32 n = 0;
    if (png_get_eXIf_1(d->png, d->info, &n, &block) && block) return ki_exif_orientation(block, n);
    return 1;
}

/* Only libpng's functions are between setjmp and this function. */
static void read_header(decoder *d) {
    png_set_read_fn(d->png, d, take);
    png_set_user_limits(d->png, KI_IMAGE_MOST_SIDE, KI_IMAGE_MOST_SIDE);
    png_set_chunk_malloc_max(d->png, 16 << 20);
    png_set_chunk_cache_max(d->png, 128);
    /* Checksums: if the pixels of an image are intact, it is read even if its comments are damaged. */
    png_set_crc_action(d->png, PNG_CRC_ERROR_QUIT, PNG_CRC_WARN_DISCARD);
    png_read_info(d->png, d->info);
}

/* Ask for 8 bits and 1 to 4 channels; returns how many channels there will be. */
static int ask_for_bytes(decoder *d) {
    png_set_scale_16(d->png);
    png_set_packing(d->png);
    png_set_expand(d->png); /* palette to RGB, grey to 8 bits, tRNS to alpha */
    png_set_interlace_handling(d->png);
    png_read_update_info(d->png, d->info);
    return png_get_channels(d->png, d->info);
}

static kith_status decode(const uint8_t *bytes, size_t n_bytes, const ki_decode *how, ki_image *ret_image,
                          int *ret_orientation, kith_error *err) {
    decoder *d = NULL;
    KI_TRY(ki_alloc_or(&d, 1, sizeof *d, "a PNG decoder", err));
    volatile kith_status status = begin(d, bytes, n_bytes, err);
    ki_image wide = {0}; /* channels as in the file; the struct is changed only through its address */
    png_bytep *volatile rows = NULL;
    if (status != KITH_OK) goto done;
    if (setjmp(d->out)) {
        status = outcome(d, true, err);
        goto done;
    }
    read_header(d);
    const uint32_t w = png_get_image_width(d->png, d->info), h = png_get_image_height(d->png, d->info);
    status = ki_image_check_size(w, h, how->most_pixels, err);
    if (status != KITH_OK) goto done;
    const int channels = ask_for_bytes(d);
    const bool has_alpha = channels == 2 || channels == 4;
    ki_image *const target = has_alpha ? &wide : ret_image;
    status = ki_image_shape(target, w, h, channels, err);
    if (status != KITH_OK) goto done;
    rows = ki_alloc(h, sizeof *rows);
    if (!rows) {
        status = ki_fail_memory(err, h * sizeof *rows, "PNG rows");
        goto done;
    }
    for (uint32_t y = 0; y < h; y++) rows[y] = target->data + (size_t)y * w * (size_t)channels;
    png_read_image(d->png, rows);
    png_read_end(d->png, d->info); /* the orientation may come after the pixels */
    *ret_orientation = orientation_of(d);
    status = outcome(d, false, err);
    if (status != KITH_OK) goto done;
    if (has_alpha) {
        const int64_t n = (int64_t)w * h;
        status = ki_image_shape(ret_image, w, h, channels - 1, err);
        if (status != KITH_OK) goto done;
        if (channels == 4)
            ki_blend_rgba(wide.data, n, how->background, ret_image->data);
        else
            ki_blend_ga(wide.data, n, how->background, ret_image->data);
    }
done:
    if (d->png) png_destroy_read_struct(&d->png, &d->info, NULL);
    ki_free(rows);
    ki_image_release(&wide);
    ki_free(d);
    return status;
}

static kith_status probe(const uint8_t *bytes, size_t n_bytes, int32_t *ret_w, int32_t *ret_h,
                         int *ret_orientation, kith_error *err) {
    decoder *d = NULL;
    KI_TRY(ki_alloc_or(&d, 1, sizeof *d, "a PNG decoder", err));
    volatile kith_status status = begin(d, bytes, n_bytes, err);
    if (status != KITH_OK) goto done;
    if (setjmp(d->out)) {
        status = outcome(d, true, err);
        goto done;
    }
    read_header(d);
    *ret_w = (int32_t)png_get_image_width(d->png, d->info);
    *ret_h = (int32_t)png_get_image_height(d->png, d->info);
    *ret_orientation = orientation_of(d);
    status = outcome(d, false, err);
done:
    if (d->png) png_destroy_read_struct(&d->png, &d->info, NULL);
    ki_free(d);
    return status;
}

const ki_image_format ki_image_png = {
    .name = "PNG", .matches = matches, .decode = decode, .probe = probe, .pixel_bytes = 4};

typedef struct encoder {
    ki_bytes *bytes;
    kith_status status;
    kith_error *err;
    jmp_buf out;
    char text[160];
} encoder;

static void leave_writing(png_structp png, png_const_charp text) {
    encoder *e = png_get_error_ptr(png);
    ki_snprintf(e->text, sizeof e->text, "%s", text);
    longjmp(e->out, 1);
}

static void put(png_structp png, png_bytep src, size_t n) {
    encoder *e = png_get_io_ptr(png);
    ki_bytes *to = e->bytes;
    e->status = ki_grow(&to->data, &to->capacity, to->n + n, 1, "a PNG file", e->err);
    if (e->status != KITH_OK) png_error(png, "no memory");
    memcpy(to->data + to->n, src, n);
    to->n += n;
}

static void flush(png_structp png) { (void)png; }

kith_status ki_png_encode(const ki_image *image, ki_bytes *bytes, kith_error *err) {
    encoder e = {.bytes = bytes, .err = err};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &e, leave_writing, be_silent);
    if (!png) return ki_fail_memory(err, sizeof e, "a PNG encoder");
    png_infop info = png_create_info_struct(png);
    bytes->n = 0;
    if (setjmp(e.out) || !info) {
        png_destroy_write_struct(&png, &info);
        if (e.status != KITH_OK) return e.status;
        return ki_fail(err, KITH_EINTERNAL, "PNG: %s", e.text);
    }
    png_set_write_fn(png, &e, put, flush);
    /* Fixed settings: the bytes must not depend on the library's defaults. */
    png_set_compression_level(png, 6);
    png_set_filter(png, 0, PNG_FILTER_SUB);
    png_set_IHDR(png, info, (png_uint_32)image->w, (png_uint_32)image->h, 8,
                 image->channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    const size_t stride = (size_t)image->w * (size_t)image->channels;
    for (int32_t y = 0; y < image->h; y++) png_write_row(png, image->data + (size_t)y * stride);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    return KITH_OK;
}
