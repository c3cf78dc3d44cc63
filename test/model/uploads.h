/* Photos as files and as uploads: the loader's way to vectors and that of decoded pixels, on any device. */
#ifndef TEST_MODEL_UPLOADS_H
#define TEST_MODEL_UPLOADS_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/transform/transform.h"
#include "kith/model.h"
#include "model/handle.h"
#include "support/testing.h"

enum { UPLOADS_DIM = 32, UPLOADS_SIDE = 28, UPLOADS_MOST = 16 };

/* Photos of several sizes and shapes: many times as large as the network's input, so that a JPEG is decoded at a part of its size,
 * and smaller than it. The number that EXIF has for what is up; 0: none. */
static const struct {
    int32_t w, h;
    int channels, turned;
    bool is_png;
} uploads_photo[] = {
    {640, 427, 3, 0, false}, {427, 640, 3, 0, false}, {1003, 667, 3, 6, false}, {667, 999, 3, 3, false},
    {301, 257, 1, 0, false}, {259, 515, 1, 8, false}, {40, 31, 3, 0, false},    {19, 23, 3, 5, false},
    {900, 61, 3, 0, false},  {333, 217, 3, 0, true},  {701, 499, 1, 0, true},
};
enum { UPLOADS_N = sizeof uploads_photo / sizeof uploads_photo[0] };

/* What a photo has: large things, edges, and noise. */
static inline void uploads_draw(ki_image *image, int which) {
    uint32_t noise = 17U * (uint32_t)which + 1;
    for (int32_t y = 0; y < image->h; y++) {
        for (int32_t x = 0; x < image->w; x++) {
            for (int c = 0; c < image->channels; c++) {
                noise = noise * 1664525U + 1013904223U;
                const int32_t ramp = (x * (c + 1) * 120) / image->w + (y * 100) / image->h;
                const int32_t edge = ((x * 7 / image->w + y * 5 / image->h + which) % 2) * 25;
                image->data[(y * image->w + x) * image->channels + c] =
                    (uint8_t)((ramp + edge + (int32_t)(noise >> 28)) % 256);
            }
        }
    }
}

/* A JPEG with the EXIF note of how it is turned, behind the two bytes that every JPEG begins with. */
static inline void uploads_put(FILE *file, const ki_bytes *photo, int turned) {
    const unsigned char note[] = {0xff, 0xe1, 0, 34, 'E', 'x', 'i', 'f', 0, 0,
                                  'M',  'M',  0, 42, 0,   0,   0,   8,   0, 1,
                                  1,    18,   0, 3,  0,   0,   0,   1,   0, (unsigned char)turned,
                                  0,    0,    0, 0,  0,   0};
    assert_int_equal(fwrite(photo->data, 1, 2, file), 2);
    if (turned) assert_int_equal(fwrite(note, 1, sizeof note, file), sizeof note);
    assert_int_equal(fwrite((const char *)photo->data + 2, 1, photo->n - 2, file), photo->n - 2);
}

/* FOLDER/photos with a file of each; the paths in the order of uploads_photo. */
static inline void uploads_write(char path[UPLOADS_N][1024]) {
    for (int i = 0; i < UPLOADS_N; i++) {
        kith_error err;
        ki_image image = {0};
        ki_bytes bytes = {0};
        snprintf(path[i], 1024, "%s/%02d.%s", testing_folder(), i, uploads_photo[i].is_png ? "png" : "jpg");
        assert_ok(
            ki_image_shape(&image, uploads_photo[i].w, uploads_photo[i].h, uploads_photo[i].channels, &err),
            &err);
        uploads_draw(&image, i);
        assert_ok(uploads_photo[i].is_png ? ki_png_encode(&image, &bytes, &err)
                                          : ki_jpeg_encode(&image, 90, &bytes, &err),
                  &err);
        FILE *file = fopen(path[i], "wb");
        assert_non_null(file);
        uploads_put(file, &bytes, uploads_photo[i].turned);
        assert_int_equal(fclose(file), 0);
        ki_bytes_release(&bytes);
        ki_image_release(&image);
    }
}

static inline kith_model *uploads_model(const char *device, const char *resize, int64_t channels) {
    kith_model *model = NULL;
    kith_error err;
    KITH_OPTIONS(kith_model_options, o);
    o.backbone = "convnet4";
    o.settings = "width=8";
    o.seed = 3;
    o.channels = channels;
    o.height = o.width = UPLOADS_SIDE;
    o.embedding = UPLOADS_DIM;
    o.device = device;
    o.resize = resize;
    o.batch = 7;
    assert_ok(kith_model_open(&o, &model, &err), &err);
    return model;
}

/* What a server's decoder makes of an upload: see serve/decode/child.c. */
static inline void uploads_decode(const kith_model *model, const char *path, ki_image *ret) {
    kith_error err;
    ki_bytes file = {0};
    ki_image whole = {0};
    kith_transform transform;
    ki_transform_scratch scratch = {0};
    ki_decode how;
    double shown[4];
    assert_ok(ki_model_decoding(model, &how, &err), &err);
    assert_ok(ki_model_transform(model, &transform, &err), &err);
    assert_ok(ki_bytes_read(&file, path, &err), &err);
    assert_ok(ki_image_decode(file.data, file.n, &how, &whole, &err), &err);
    assert_ok(ki_transform_shrink_part(&transform, &whole, NULL, false, &scratch, ret, shown, &err), &err);
    ki_transform_scratch_release(&scratch);
    ki_image_release(&whole);
    ki_bytes_release(&file);
}

/* Every value of the vector of length 1, to 1e-6. */
static inline void uploads_near(const float *found, const float *wanted, int64_t dim, const char *what,
                                const char *resize, const char *path) {
    double squares[2] = {0, 0};
    for (int64_t i = 0; i < dim; i++) {
        squares[0] += (double)found[i] * (double)found[i];
        squares[1] += (double)wanted[i] * (double)wanted[i];
    }
    for (int64_t i = 0; i < dim; i++) {
        const double off = (double)found[i] / sqrt(squares[0]) - (double)wanted[i] / sqrt(squares[1]);
        if (!(fabs(off) <= 1e-6))
            fail_msg("%s, %s, %s: value %d is %g off that of the indexed vector", resize, path, what, (int)i,
                     off);
    }
}

/* Indexed photos and the same photos uploaded: each alone, as a path that is a query, and all together. */
static inline void uploads_compare(kith_model *model, const char *const *paths, int64_t n,
                                   const char *resize) {
    kith_error err;
    kith_dataset *set = NULL;
    kith_vectors *vectors = NULL;
    kith_array indexed;
    ki_image image[UPLOADS_MOST] = {0};
    kith_pixels pixels[UPLOADS_MOST];
    int64_t items[UPLOADS_MOST];
    const int64_t dim = kith_model_dim(model);
    float *all = calloc((size_t)(n * dim), sizeof *all), *one = calloc((size_t)dim, sizeof *one);
    assert_true(n <= UPLOADS_MOST && all && one);
    for (int64_t i = 0; i < n; i++) items[i] = i;
    assert_ok(kith_dataset_open_files(paths, n, &set, &err), &err);
    assert_ok(kith_model_embed_items(model, set, items, n, NULL, &vectors, &err), &err);
    assert_ok(kith_vectors_array(vectors, &indexed, &err), &err);
    assert_int_equal(indexed.dim[0], n);
    const float *wanted = indexed.data;
    for (int64_t i = 0; i < n; i++) {
        uploads_decode(model, paths[i], &image[i]);
        pixels[i] = (kith_pixels){image[i].w, image[i].h, image[i].channels, image[i].data};
        assert_ok(kith_model_embed_pixels(model, &pixels[i], 1, NULL, one, &err), &err);
        uploads_near(one, wanted + i * dim, dim, "alone", resize, paths[i]);
        const kith_query_image query = {.path = paths[i], .weight = 1};
        assert_ok(kith_model_query(model, &query, 1, NULL, one, &err), &err);
        uploads_near(one, wanted + i * dim, dim, "as a query", resize, paths[i]);
    }
    assert_ok(kith_model_embed_pixels(model, pixels, n, NULL, all, &err), &err);
    for (int64_t i = 0; i < n; i++)
        uploads_near(all + i * dim, wanted + i * dim, dim, "together", resize, paths[i]);
    for (int64_t i = 1; i < n; i++) {
        if (!(testing_relative_l2(wanted, wanted + i * dim, dim) > 1e-4))
            fail_msg("%s: photos 0 and %d have one vector", resize, (int)i);
    }
    for (int64_t i = 0; i < n; i++) ki_image_release(&image[i]);
    kith_vectors_free(vectors);
    kith_dataset_free(set);
    free(all);
    free(one);
}

/* Every way of resizing, in colour and in grey. */
static inline void uploads_compare_all(const char *device) {
    static const char *const resize[] = {"squash32", "shorter32", "pad32", "atmost32", "none", "shorter28"};
    static char path[UPLOADS_N][1024];
    const char *paths[UPLOADS_N];
    uploads_write(path);
    for (int i = 0; i < UPLOADS_N; i++) paths[i] = path[i];
    for (size_t i = 0; i < 2 * N_ROWS(resize); i++) {
        kith_model *model = uploads_model(device, resize[i / 2], i % 2 ? 1 : 3);
        uploads_compare(model, paths, UPLOADS_N, resize[i / 2]);
        kith_model_free(model);
    }
}

#endif
