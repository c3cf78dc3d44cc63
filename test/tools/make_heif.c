/* Makes the HEIC and AVIF files of test/corpus/image from a PNG file there: make_heif IN.png OUT {heic|avif} {0|90}.
 * Pixels differ from the PNG by at most two grey levels, because of the colour conversion, so tests know them. 90 adds
 * a property that the image must be rotated by 90 degrees to the right.
 *
 * libheif 1.15 writes that property before the size, and the size after the rotation; 1.19 takes the size of such a file for the one
 * before, and 1.23 refuses it (data/image/heif_order.h). ok_lossy_irot_first.* are such files. The standard and cameras have the size first, before the rotation: the other corpus files
 * were put into that order by hand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libheif/heif.h>

#include "data/image/image.h"

static void check(struct heif_error found) {
    if (found.code == heif_error_Ok) return;
    fprintf(stderr, "make_heif: %s\n", found.message);
    exit(1);
}

static struct heif_image *read_png(const char *path) {
    ki_bytes bytes = {0};
    ki_image png = {0};
    kith_error err;
    if (ki_bytes_read(&bytes, path, &err) != KITH_OK ||
        ki_image_decode(bytes.data, bytes.n, &(ki_decode){0}, &png, &err) != KITH_OK || png.channels != 3) {
        fprintf(stderr, "make_heif: %s: %s\n", path, err.message);
        exit(1);
    }
    struct heif_image *image = NULL;
    check(heif_image_create(png.w, png.h, heif_colorspace_RGB, heif_chroma_interleaved_RGB, &image));
    check(heif_image_add_plane(image, heif_channel_interleaved, png.w, png.h, 8));
    int stride = 0;
    uint8_t *rows = heif_image_get_plane(image, heif_channel_interleaved, &stride);
    for (int y = 0; y < png.h; y++)
        memcpy(rows + (size_t)y * (size_t)stride, png.data + (size_t)y * (size_t)png.w * 3,
               (size_t)png.w * 3);
    ki_image_release(&png);
    ki_bytes_release(&bytes);
    return image;
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: make_heif IN.png OUT {heic|avif} {0|90}\n");
        return 2;
    }
    const bool is_avif = strcmp(argv[3], "avif") == 0;
    struct heif_image *image = read_png(argv[1]);
    struct heif_context *context = heif_context_alloc();
    struct heif_encoder *encoder = NULL;
    check(heif_context_get_encoder_for_format(context, is_avif ? heif_compression_AV1 : heif_compression_HEVC,
                                              &encoder));
    check(heif_encoder_set_lossless(encoder, 1));
    check(heif_encoder_set_parameter_string(encoder, "chroma", "444"));
    struct heif_encoding_options *options = heif_encoding_options_alloc();
    struct heif_color_profile_nclx *colours = heif_nclx_color_profile_alloc();
    colours->matrix_coefficients = heif_matrix_coefficients_RGB_GBR;
    options->output_nclx_profile = colours;
    options->image_orientation =
        strcmp(argv[4], "90") == 0 ? heif_orientation_rotate_90_cw : heif_orientation_normal;
    check(heif_context_encode_image(context, image, encoder, options, NULL));
    check(heif_context_write_to_file(context, argv[2]));
    heif_nclx_color_profile_free(colours);
    heif_encoding_options_free(options);
    heif_encoder_release(encoder);
    heif_image_release(image);
    heif_context_free(context);
    return 0;
}
