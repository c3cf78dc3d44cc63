/* JPEG through libjpeg-turbo: baseline and progressive; grey, YCbCr, RGB, CMYK and YCCK.
 *
 * libjpeg reports errors by a function that must not return. The jump out of it stays in this file: the
 * only code between setjmp and longjmp is libjpeg's and the three functions marked below, and no local
 * that is read after a jump is changed after setjmp. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include "base/alloc.h"
#include "base/text.h"
#include "data/image/image.h"

/* A progressive file may ask for thousands of passes over all pixels, in a few bytes each. Encoders write about ten, and the more
 * patient ones a few dozen: beyond FREE_SCANS, passes and pixels are limited together. */
enum { MOST_SCANS = 200, FREE_SCANS = 20 };
static const int64_t MOST_PASSED_PIXELS = 1000000000;

typedef struct failure {
    struct jpeg_error_mgr base; /* must be first: libjpeg passes this address back */
    jmp_buf out;
    char text[JMSG_LENGTH_MAX];
    bool is_cut_off;
} failure;

typedef struct watch {
    struct jpeg_progress_mgr base; /* first */
} watch;

typedef struct decoder {
    struct jpeg_decompress_struct info;
    failure failure;
    watch watch;
} decoder;

static void leave(j_common_ptr info) {
    failure *f = (failure *)(void *)info->err;
    info->err->format_message(info, f->text);
    longjmp(f->out, 1);
}

/* libjpeg fills in damaged data, as every viewer does. But a file that ends too soon would give a half-grey
 * image: that is an error. */
static void note_warning(j_common_ptr info, int level) {
    failure *f = (failure *)(void *)info->err;
    if (level >= 0) return;
    info->err->num_warnings++;
    info->err->format_message(info, f->text);
    if (strstr(f->text, "Premature end of JPEG file")) f->is_cut_off = true;
}

static void be_silent(j_common_ptr info) { (void)info; }

static void count_scans(j_common_ptr info) {
    if (!info->is_decompressor) return;
    failure *f = (failure *)(void *)info->err;
    j_decompress_ptr d = (j_decompress_ptr)info;
    const int64_t n_pixels = (int64_t)d->image_width * d->image_height,
                  allowed = MOST_PASSED_PIXELS / n_pixels;
    const int most = allowed < FREE_SCANS ? FREE_SCANS : allowed < MOST_SCANS ? (int)allowed : MOST_SCANS;
    if (d->input_scan_number > most) {
        ki_snprintf(f->text, sizeof f->text, "more than %d scans of %u x %u pixels", most, d->image_width,
                    d->image_height);
        longjmp(f->out, 1);
    }
}

static bool matches(const uint8_t *bytes, size_t n_bytes) {
    return n_bytes >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff;
}

static int orientation_of(j_decompress_ptr info) {
    for (jpeg_saved_marker_ptr m = info->marker_list; m; m = m->next) {
        if (m->marker == JPEG_APP0 + 1 && m->data_length > 6 && memcmp(m->data, "Exif\0\0", 6) == 0)
            return ki_exif_orientation(m->data + 6, m->data_length - 6);
    }
    return 1;
}

/* CMYK as printers store it (Adobe marker: inverted) to RGB, in place: 4 bytes in, 3 out. */
static void cmyk_to_rgb(uint8_t *row, int32_t w, bool inverted) {
    for (int32_t x = 0; x < w; x++) {
        const int flip = inverted ? 0 : 255;
        const int k = row[4 * x + 3] ^ flip;
        for (int c = 0; c < 3; c++) {
            const int t = (row[4 * x + c] ^ flip) * k + 128;
            row[3 * x + c] = (uint8_t)((t + (t >> 8)) >> 8);
        }
    }
}

/* The smallest of the fast scales (1/8, 1/4, 1/2) that keeps both sides at least `least` long. */
static unsigned scale_denominator(const struct jpeg_decompress_struct *info, int32_t least) {
    if (least <= 0) return 1;
    const unsigned shorter = info->image_width < info->image_height ? info->image_width : info->image_height;
    unsigned by = 8;
    while (by > 1 && (shorter + by - 1) / by < (unsigned)least) by /= 2;
    return by;
}

static void start(decoder *d, const uint8_t *bytes, size_t n_bytes) {
    jpeg_create_decompress(&d->info);
    jpeg_save_markers(&d->info, JPEG_APP0 + 1, 0xffff);
    jpeg_mem_src(&d->info, bytes, (unsigned long)n_bytes);
    jpeg_read_header(&d->info, TRUE);
}

static void init(decoder *d) {
    memset(d, 0, sizeof *d);
    d->info.err = jpeg_std_error(&d->failure.base);
    d->failure.base.error_exit = leave;
    d->failure.base.emit_message = note_warning;
    d->failure.base.output_message = be_silent;
    d->watch.base.progress_monitor = count_scans;
}

static kith_status read_rows(decoder *d, ki_image *image, uint8_t *wide_row) {
    const int32_t w = image->w;
    const size_t stride = (size_t)w * (size_t)image->channels;
    while (d->info.output_scanline < d->info.output_height) {
        const size_t y = d->info.output_scanline;
        JSAMPROW row = wide_row ? wide_row : image->data + y * stride;
        if (jpeg_read_scanlines(&d->info, &row, 1) != 1) break;
        if (wide_row) {
            cmyk_to_rgb(wide_row, w, d->info.saw_Adobe_marker);
            memcpy(image->data + y * stride, wide_row, stride);
        }
    }
    return KITH_OK;
}

static kith_status decode(const uint8_t *bytes, size_t n_bytes, const ki_decode *how, ki_image *ret_image,
                          int *ret_orientation, kith_error *err) {
    decoder *d = NULL;
    KI_TRY(ki_alloc_or(&d, 1, sizeof *d, "a JPEG decoder", err));
    init(d);
    uint8_t *volatile wide_row = NULL; /* set after setjmp, read after a jump */
    volatile kith_status status = KITH_OK;
    if (setjmp(d->failure.out)) {
        status = ki_fail(err, KITH_EFORMAT, "%s", d->failure.text);
        goto done;
    }
    start(d, bytes, n_bytes);
    status = ki_image_check_size(d->info.image_width, d->info.image_height, how->most_pixels, err);
    if (status != KITH_OK) goto done;
    const bool is_cmyk = d->info.jpeg_color_space == JCS_CMYK || d->info.jpeg_color_space == JCS_YCCK;
    const bool is_grey = d->info.jpeg_color_space == JCS_GRAYSCALE;
    d->info.out_color_space = is_cmyk ? JCS_CMYK : is_grey ? JCS_GRAYSCALE : JCS_RGB;
    d->info.scale_num = 1;
    d->info.scale_denom = scale_denominator(&d->info, how->least_side);
    d->info.progress = &d->watch.base;
    jpeg_start_decompress(&d->info);
    status = ki_image_shape(ret_image, d->info.output_width, d->info.output_height, is_grey ? 1 : 3, err);
    if (status != KITH_OK) goto done;
    ret_image->full_w = (int32_t)d->info.image_width;
    ret_image->full_h = (int32_t)d->info.image_height;
    if (is_cmyk) {
        wide_row = ki_alloc((size_t)ret_image->w, 4);
        if (!wide_row) {
            status = ki_fail_memory(err, (size_t)ret_image->w * 4, "a CMYK row");
            goto done;
        }
    }
    read_rows(d, ret_image, wide_row);
    if (d->failure.is_cut_off) {
        status = ki_fail(err, KITH_EFORMAT, "the file ends before the image does");
        goto done;
    }
    *ret_orientation = orientation_of(&d->info);
    jpeg_finish_decompress(&d->info);
done:
    jpeg_destroy_decompress(&d->info);
    ki_free(wide_row);
    ki_free(d);
    return status;
}

static kith_status probe(const uint8_t *bytes, size_t n_bytes, int32_t *ret_w, int32_t *ret_h,
                         int *ret_orientation, kith_error *err) {
    decoder *d = NULL;
    KI_TRY(ki_alloc_or(&d, 1, sizeof *d, "a JPEG decoder", err));
    init(d);
    volatile kith_status status = KITH_OK;
    if (setjmp(d->failure.out)) {
        status = ki_fail(err, KITH_EFORMAT, "%s", d->failure.text);
        goto done;
    }
    start(d, bytes, n_bytes);
    status = ki_image_check_size(d->info.image_width, d->info.image_height, INT64_MAX, err);
    if (status != KITH_OK) goto done;
    *ret_w = (int32_t)d->info.image_width;
    *ret_h = (int32_t)d->info.image_height;
    *ret_orientation = orientation_of(&d->info);
done:
    jpeg_destroy_decompress(&d->info);
    ki_free(d);
    return status;
}

/* A file of several scans is kept as coefficients, two bytes each, until the last one has come. */
static int64_t coefficient_bytes(j_decompress_ptr info) {
    int64_t n = 0;
    if (!jpeg_has_multiple_scans(info)) return 0;
    for (int i = 0; i < info->num_components; i++)
        n += (int64_t)info->comp_info[i].width_in_blocks * info->comp_info[i].height_in_blocks;
    return n * DCTSIZE2 * (int64_t)sizeof(JCOEF);
}

static kith_status decode_bytes(const uint8_t *bytes, size_t n_bytes, const ki_decode *how,
                                int64_t *ret_pixels, int64_t *ret_bytes, kith_error *err) {
    decoder *d = NULL;
    KI_TRY(ki_alloc_or(&d, 1, sizeof *d, "a JPEG decoder", err));
    init(d);
    volatile kith_status status = KITH_OK;
    if (setjmp(d->failure.out)) {
        status = ki_fail(err, KITH_EFORMAT, "%s", d->failure.text);
        goto done;
    }
    start(d, bytes, n_bytes);
    d->info.scale_num = 1;
    d->info.scale_denom = scale_denominator(&d->info, how->least_side);
    jpeg_calc_output_dimensions(&d->info);
    *ret_pixels = 3 * (int64_t)d->info.output_width * d->info.output_height;
    *ret_bytes = *ret_pixels + coefficient_bytes(&d->info);
done:
    jpeg_destroy_decompress(&d->info);
    ki_free(d);
    return status;
}

const ki_image_format ki_image_jpeg = {
    .name = "JPEG", .matches = matches, .decode = decode, .probe = probe, .decode_bytes = decode_bytes};
