/* MNIST-style idx files, plain or gzipped: train-images-idx3-ubyte, train-labels-idx1-ubyte and the same
 * with t10k. All pixels are held in memory. The split is the files' own: both parts hold the same
 * classes (kith_dataset_split_first makes a zero-shot split). */
#include <stdio.h>
#include <string.h>

#include <zlib.h>

#include "core/alloc.h"
#include "data/dataset/dataset.h"

static const size_t most_bytes = (size_t)4 << 30;

static uint32_t be32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
}

/* Magic number, then n_dims big-endian extents; the data must fill the rest of the file exactly. */
static kith_status read_header(const uint8_t *bytes, size_t n, int n_dims, uint32_t *ret_dim,
                               const char *what, kith_error *err) {
    const size_t header = 4 + 4 * (size_t)n_dims;
    if (n < header)
        return ki_fail(err, KITH_EFORMAT, "the %s file has %zu bytes; wanted a header of %zu", what, n,
                       header);
    const uint32_t magic = be32(bytes), wanted = 0x800u + (uint32_t)n_dims;
    if (magic != wanted)
        return ki_fail(err, KITH_EFORMAT, "the %s file begins with 0x%08x; wanted 0x%08x (bytes, %d axes)",
                       what, magic, wanted, n_dims);
    size_t count = 1;
    for (int i = 0; i < n_dims; i++) {
        ret_dim[i] = be32(bytes + 4 + 4 * i);
        if (!ki_mul_size(count, ret_dim[i], &count)) count = SIZE_MAX;
    }
    if (count != n - header)
        return ki_fail(err, KITH_EFORMAT, "the %s file promises %zu bytes of data and has %zu", what, count,
                       n - header);
    return KITH_OK;
}

kith_status ki_idx_parse(kith_dataset *set, const char *name, const uint8_t *images, size_t n_images,
                         const uint8_t *labels, size_t n_labels, kith_split split, kith_error *err) {
    uint32_t dim[3] = {0}, n_rows = 0;
    KI_TRY(read_header(images, n_images, 3, dim, "images", err));
    KI_TRY(read_header(labels, n_labels, 1, &n_rows, "labels", err));
    if (dim[0] != n_rows)
        return ki_fail(err, KITH_EFORMAT, "there are %u images and %u labels", dim[0], n_rows);
    if (n_rows == 0) return KITH_OK;
    KI_TRY(ki_image_check_size(dim[2], dim[1], KI_IMAGE_MOST_PIXELS, err));
    const int32_t h = (int32_t)dim[1], w = (int32_t)dim[2];
    if (set->pixels && (set->pixels_w != w || set->pixels_h != h))
        return ki_fail(err, KITH_EFORMAT, "images of %dx%d beside images of %dx%d pixels", w, h,
                       set->pixels_w, set->pixels_h);
    const size_t data_bytes = n_images - 16, image_bytes = (size_t)w * (size_t)h;
    uint8_t *pixels = ki_realloc(set->pixels, set->pixel_bytes + data_bytes, 1);
    if (!pixels) return ki_fail_memory(err, set->pixel_bytes + data_bytes, "pixels");
    memcpy(pixels + set->pixel_bytes, images + 16, data_bytes);
    set->pixels = pixels;
    set->pixels_w = w;
    set->pixels_h = h;
    for (uint32_t i = 0; i < n_rows; i++) {
        char key[8];
        ki_path path;
        const int key_length = snprintf(key, sizeof key, "%d", labels[8 + i]);
        KI_TRY(ki_path_print(&path, err, "%s#%u", name, i));
        int32_t label = 0;
        ki_item *item = NULL;
        KI_TRY(ki_dataset_class(set, key, (size_t)key_length, &label, err));
        KI_TRY(ki_dataset_add(set, NULL, path.s, strlen(path.s), label, split, &item, err));
        item->pixels = (int64_t)(set->pixel_bytes + i * image_bytes);
    }
    set->pixel_bytes += data_bytes;
    return KITH_OK;
}

/* zlib reads plain and gzipped files alike. */
static kith_status unpack(const char *path, ki_bytes *bytes, kith_error *err) {
    kith_status status = KITH_OK;
    gzFile file = gzopen(path, "rb");
    if (!file) return ki_fail(err, KITH_EIO, "%s cannot be opened", path);
    gzbuffer(file, 1 << 17);
    bytes->n = 0;
    for (;;) {
        enum { STEP = 1 << 20 };
        if (bytes->n > most_bytes) {
            status = ki_fail(err, KITH_EINVAL, "%s unpacks to more than %zu bytes", path, most_bytes);
            goto done;
        }
        KI_CHECK(ki_grow(&bytes->data, &bytes->capacity, bytes->n + STEP, 1, "an idx file", err));
        const int got = gzread(file, bytes->data + bytes->n, STEP);
        int code = Z_OK;
        const char *why = gzerror(file, &code);
        if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) { /* Z_BUF_ERROR: cut off */
            status = ki_fail(err, KITH_EFORMAT, "%s: %s", path, why && *why ? why : "the file is damaged");
            goto done;
        }
        if (got == 0) break;
        bytes->n += (size_t)got;
    }
done:
    gzclose(file);
    return status;
}

static bool find_file(const char *root, const char *part, const char *what, int n_dims, ki_path *ret_path) {
    static const struct {
        char mark;
        const char *ending;
    } forms[] = {{'-', ""}, {'-', ".gz"}, {'.', ""}, {'.', ".gz"}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (ki_path_print(ret_path, NULL, "%s/%s-%s%cidx%d-ubyte%s", root, part, what, forms[i].mark, n_dims,
                          forms[i].ending) == KITH_OK &&
            ki_is_file("%s", ret_path->s))
            return true;
    }
    return false;
}

static bool found(const char *root) {
    ki_path path;
    return find_file(root, "train", "images", 3, &path) || find_file(root, "t10k", "images", 3, &path);
}

static kith_status read_idx(kith_dataset *set, const char *root, kith_error *err) {
    static const struct {
        const char *name;
        kith_split split;
    } parts[] = {{"train", KITH_SPLIT_TRAIN}, {"t10k", KITH_SPLIT_TEST}};
    kith_status status = KITH_OK;
    ki_bytes images = {0}, labels = {0};
    /* Digits in order, whichever comes first in the file. */
    for (int i = 0; i < 10; i++) {
        int32_t label = 0;
        KI_CHECK(ki_dataset_class(set, &"0123456789"[i], 1, &label, err));
    }
    for (int i = 0; i < 2; i++) {
        ki_path path, labels_path;
        if (!find_file(root, parts[i].name, "images", 3, &path)) continue;
        if (!find_file(root, parts[i].name, "labels", 1, &labels_path)) {
            status = ki_fail(err, KITH_EIO, "%s: %s-images is there and %s-labels is not", root,
                             parts[i].name, parts[i].name);
            goto done;
        }
        KI_CHECK(unpack(path.s, &images, err));
        KI_CHECK(unpack(labels_path.s, &labels, err));
        status = ki_idx_parse(set, path.s, images.data, images.n, labels.data, labels.n, parts[i].split, err);
        if (status != KITH_OK) {
            ki_prefix(err, status, "%s", path.s);
            goto done;
        }
    }
done:
    ki_bytes_release(&images);
    ki_bytes_release(&labels);
    return status;
}

const ki_dataset_kind ki_dataset_idx = {
    .name = "idx",
    .summary = "MNIST-style idx files, plain or .gz (train-images-idx3-ubyte …), with their own split",
    .found = found,
    .read = read_idx,
};
