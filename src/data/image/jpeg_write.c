/* JPEG files in memory: for pictures in reports, where a PNG of a photo would be five times as big.
 * As in jpeg.c, the jump out of libjpeg's error function stays in this file. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "base/alloc.h"
#include "data/image/image.h"

typedef struct encoder {
    struct jpeg_compress_struct info;
    struct jpeg_error_mgr errors;
    struct jpeg_destination_mgr to;
    ki_bytes *bytes;
    kith_error *err;
    kith_status status; /* when there was no memory for the output */
    jmp_buf out;
    char text[JMSG_LENGTH_MAX];
} encoder;

static void leave(j_common_ptr info) {
    encoder *e = info->client_data;
    info->err->format_message(info, e->text);
    longjmp(e->out, 1);
}

static void be_silent(j_common_ptr info) { (void)info; }

/* libjpeg writes straight into the growing bytes. */
static boolean make_room(j_compress_ptr info) {
    encoder *e = info->client_data;
    const size_t had = e->bytes->n;
    e->bytes->n = e->bytes->capacity; /* what libjpeg filled */
    e->status = ki_grow(&e->bytes->data, &e->bytes->capacity, e->bytes->n + 4096, 1, "JPEG bytes", e->err);
    if (e->status != KITH_OK) {
        e->bytes->n = had;
        longjmp(e->out, 1);
    }
    e->to.next_output_byte = e->bytes->data + e->bytes->n;
    e->to.free_in_buffer = e->bytes->capacity - e->bytes->n;
    return TRUE;
}

static void begin(j_compress_ptr info) {
    encoder *e = info->client_data;
    e->bytes->n = e->bytes->capacity = 0;
    ki_free(e->bytes->data);
    e->bytes->data = NULL;
    make_room(info);
}

static void finish(j_compress_ptr info) {
    encoder *e = info->client_data;
    e->bytes->n = e->bytes->capacity - e->to.free_in_buffer;
}

kith_status ki_jpeg_encode(const ki_image *image, int quality, ki_bytes *bytes, kith_error *err) {
    encoder *e = NULL;
    KI_TRY(ki_zalloc_or(&e, 1, sizeof *e, "a JPEG encoder", err));
    volatile kith_status status = KITH_OK;
    e->bytes = bytes;
    e->err = err;
    e->info.err = jpeg_std_error(&e->errors);
    e->errors.error_exit = leave;
    e->errors.output_message = be_silent;
    e->info.client_data = e;
    if (setjmp(e->out)) {
        status = e->status != KITH_OK ? e->status : ki_fail(err, KITH_EBACKEND, "libjpeg: %s", e->text);
        goto done;
    }
    jpeg_create_compress(&e->info);
    e->to = (struct jpeg_destination_mgr){
        .init_destination = begin, .empty_output_buffer = make_room, .term_destination = finish};
    e->info.dest = &e->to;
    e->info.image_width = (JDIMENSION)image->w;
    e->info.image_height = (JDIMENSION)image->h;
    e->info.input_components = image->channels;
    e->info.in_color_space = image->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&e->info);
    jpeg_set_quality(&e->info, quality, TRUE);
    e->info.optimize_coding = TRUE;
    jpeg_start_compress(&e->info, TRUE);
    while (e->info.next_scanline < e->info.image_height) {
        JSAMPROW row =
            image->data + (size_t)e->info.next_scanline * (size_t)image->w * (size_t)image->channels;
        jpeg_write_scanlines(&e->info, &row, 1);
    }
    jpeg_finish_compress(&e->info);
done:
    jpeg_destroy_compress(&e->info);
    ki_free(e);
    return status;
}
