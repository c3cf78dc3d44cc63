/* Reading, cutting and encoding small pictures. */
#include "report/thumbnail.h"

#include <string.h>

#include "data/dataset/dataset.h"

enum { QUALITY = 80 };

void ki_thumbnails_release(ki_thumbnails *t) {
    ki_bytes_release(&t->file);
    ki_bytes_release(&t->png);
    ki_bytes_release(&t->jpeg);
    ki_image_release(&t->image);
    ki_image_release(&t->base);
    ki_image_release(&t->square);
    ki_transform_scratch_release(&t->scratch);
    kith_dataset_free(t->dataset);
    *t = (ki_thumbnails){0};
}

/* Is it the same file? A run names its images from the root, a data set from the working folder. */
static bool ends_with(const char *path, const char *end) {
    const size_t n = strlen(path), n_end = strlen(end);
    if (n_end > n || strcmp(path + n - n_end, end) != 0) return false;
    return n == n_end || path[n - n_end - 1] == '/';
}

/* "FILE#17" is an image inside another file: only the data set knows its pixels. */
static kith_status read_inside(ki_thumbnails *t, const char *path, const ki_decode *how, kith_error *err) {
    if (!t->has_tried && t->recipe) {
        t->has_tried = true;
        KI_TRY(kith_dataset_open_recipe(t->recipe, &t->dataset, err));
    }
    for (int64_t i = 0; t->dataset && i < kith_dataset_count(t->dataset); i++) {
        if (ends_with(path, kith_dataset_item(t->dataset, i).path))
            return ki_dataset_pixels(t->dataset, i, how, &t->file, &t->image, err);
    }
    return ki_fail(err, KITH_ENOTFOUND, "%s: no such image", path);
}

/* Where an image is now, if its run may have been moved. */
static kith_status find_image(const ki_thumbnails *t, const char *path, ki_path *ret, kith_error *err) {
    return t->paths ? ki_run_paths_find(t->paths, path, ret, err) : ki_path_print(ret, err, "%s", path);
}

static ki_decode thumbnail_decoding(int size) {
    return (ki_decode){.least_side = size, .background = {255, 255, 255}};
}

static kith_status read_image(ki_thumbnails *t, const char *path, int size, kith_error *err) {
    const ki_decode how = thumbnail_decoding(size);
    const char *hash = strrchr(path, '#');
    if (hash && hash[1] && strspn(hash + 1, "0123456789") == strlen(hash + 1) && !ki_is_file("%s", path))
        return read_inside(t, path, &how, err);
    KI_TRY(ki_bytes_read(&t->file, path, err));
    return ki_image_decode(t->file.data, t->file.n, &how, &t->image, err);
}

kith_status ki_thumbnail_read(ki_thumbnails *t, const char *path, int size, uint8_t *ret_rgb,
                              kith_error *err) {
    ki_path found;
    KITH_OPTIONS(kith_transform, how);
    how.resize = KITH_RESIZE_SHORTER;
    how.resize_to = how.crop_to = size;
    memset(how.background, 255, sizeof how.background);
    KI_TRY(find_image(t, path, &found, err));
    KI_TRY(read_image(t, found.s, size, err));
    KI_TRY(ki_transform_base(&how, NULL, &t->image, &t->scratch, &t->base, err));
    ki_rng unused = ki_rng_at(0, KI_RNG_MAP, 0, 0);
    const ki_draw draw = ki_transform_draw(&how, t->base.w, t->base.h, &unused);
    return ki_transform_bytes(&how, &t->base, &draw, &t->scratch, ret_rgb, err);
}

/* The image that was read, made smaller. */
static kith_status fit(ki_thumbnails *t, int side, const ki_image **ret_image, kith_error *err) {
    KI_TRY(ki_resample_fit(&t->scratch.resampler, &t->image, side, &t->base, err));
    *ret_image = &t->base;
    return KITH_OK;
}

kith_status ki_thumbnail_fit(ki_thumbnails *t, const char *path, int side, const ki_image **ret_image,
                             kith_error *err) {
    ki_path found;
    KI_TRY(find_image(t, path, &found, err));
    KI_TRY(read_image(t, found.s, side, err));
    return fit(t, side, ret_image, err);
}

kith_status ki_thumbnail_fit_bytes(ki_thumbnails *t, const void *bytes, size_t n, int side,
                                   const ki_image **ret_image, kith_error *err) {
    const ki_decode how = thumbnail_decoding(side);
    KI_TRY(ki_image_decode(bytes, n, &how, &t->image, err));
    return fit(t, side, ret_image, err);
}

static bool is_grey(const ki_image *image) {
    const int64_t n = (int64_t)image->w * image->h;
    const uint8_t *rgb = image->data;
    for (int64_t i = 0; image->channels == 3 && i < n; i++) {
        if (rgb[3 * i] != rgb[3 * i + 1] || rgb[3 * i] != rgb[3 * i + 2]) return false;
    }
    return true;
}

static kith_status encode(ki_thumbnails *t, const ki_image *image, kith_error *err) {
    const int64_t n = (int64_t)image->w * image->h;
    const int channels = is_grey(image) ? 1 : 3;
    KI_TRY(ki_image_shape(&t->square, image->w, image->h, channels, err));
    for (int64_t i = 0; i < n; i++)
        memcpy(t->square.data + i * channels, image->data + i * image->channels, (size_t)channels);
    KI_TRY(ki_png_encode(&t->square, &t->png, err));
    return ki_jpeg_encode(&t->square, QUALITY, &t->jpeg, err);
}

void ki_thumbnail_image_uri(ki_thumbnails *t, const ki_image *image, ki_buffer *to) {
    if (to->status == KITH_OK) to->status = encode(t, image, to->err);
    if (to->status != KITH_OK) return;
    const bool is_png = t->png.n <= t->jpeg.n;
    ki_buffer_put(to, "data:image/%s;base64,", is_png ? "png" : "jpeg");
    if (is_png)
        ki_buffer_base64(to, t->png.data, t->png.n);
    else
        ki_buffer_base64(to, t->jpeg.data, t->jpeg.n);
}

void ki_thumbnail_uri(ki_thumbnails *t, const uint8_t *rgb, int size, ki_buffer *to) {
    const ki_image image = {.w = size, .h = size, .channels = 3, .data = (uint8_t *)(uintptr_t)rgb};
    ki_thumbnail_image_uri(t, &image, to);
}
