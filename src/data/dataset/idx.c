/* MNIST-style idx files, plain or gzipped: train-images-idx3-ubyte, train-labels-idx1-ubyte and the same
 * with t10k. All pixels are held in memory. The split is the files' own: both parts hold the same
 * classes (kith_dataset_split_first makes a zero-shot split). */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "data/dataset/dataset.h"
#include "io/file.h"
#include "io/inflate.h"

enum { MOST_HEADER_BYTES = 16 };
static const size_t most_bytes = (size_t)4 << 30;

static uint32_t be32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
}

static size_t header_bytes(int n_dims) { return 4 + 4 * (size_t)n_dims; }

/* Magic number, then n_dims big-endian extents. *ret_count, the bytes of data they promise, is SIZE_MAX when it
 * would not fit. */
static kith_status read_header(const uint8_t *bytes, size_t n, int n_dims, uint32_t *ret_dim,
                               size_t *ret_count, const char *what, kith_error *err) {
    if (n < header_bytes(n_dims))
        return ki_fail(err, KITH_EFORMAT, "the %s file has %zu bytes; wanted a header of %zu", what, n,
                       header_bytes(n_dims));
    const uint32_t magic = be32(bytes), wanted = 0x800u + (uint32_t)n_dims;
    if (magic != wanted)
        return ki_fail(err, KITH_EFORMAT, "the %s file begins with 0x%08x; wanted 0x%08x (bytes, %d axes)",
                       what, magic, wanted, n_dims);
    size_t count = 1;
    for (int i = 0; i < n_dims; i++) {
        ret_dim[i] = be32(bytes + 4 + 4 * i);
        if (!ki_mul_size(count, ret_dim[i], &count)) count = SIZE_MAX;
    }
    *ret_count = count;
    return KITH_OK;
}

/* The data must fill the rest of the file exactly. */
static kith_status check_file(const uint8_t *bytes, size_t n, int n_dims, uint32_t *ret_dim, const char *what,
                              kith_error *err) {
    size_t count = 0;
    KI_TRY(read_header(bytes, n, n_dims, ret_dim, &count, what, err));
    if (count != n - header_bytes(n_dims))
        return ki_fail(err, KITH_EFORMAT, "the %s file promises %zu bytes of data and has %zu", what, count,
                       n - header_bytes(n_dims));
    return KITH_OK;
}

kith_status ki_idx_parse(kith_dataset *set, const char *name, const uint8_t *images, size_t n_images,
                         const uint8_t *labels, size_t n_labels, kith_split split, kith_error *err) {
    uint32_t dim[3] = {0}, n_rows = 0;
    KI_TRY(check_file(images, n_images, 3, dim, "images", err));
    KI_TRY(check_file(labels, n_labels, 1, &n_rows, "labels", err));
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
        const int key_length = ki_snprintf(key, sizeof key, "%d", labels[8 + i]);
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

/* The header says how many bytes there must be, and is unpacked first. Otherwise a damaged file of a few
 * bytes could take gigabytes before the damage is found. */
kith_status ki_idx_unpack(const void *packed, size_t n_packed, const char *name, const char *what, int n_dims,
                          ki_bytes *bytes, kith_error *err) {
    kith_status status = KITH_OK;
    ki_inflate *in = NULL;
    uint8_t head[MOST_HEADER_BYTES], extra;
    uint32_t dim[3];
    size_t got = 0, count = 0, n_extra = 0;
    bytes->n = 0;
    KI_CHECK(ki_inflate_new(packed, n_packed, name, &in, err));
    KI_CHECK(ki_inflate_read(in, head, header_bytes(n_dims), &got, err));
    status = read_header(head, got, n_dims, dim, &count, what, err);
    if (status != KITH_OK) {
        ki_prefix(err, status, "%s", name);
        goto done;
    }
    if (count > most_bytes) {
        status = ki_fail(err, KITH_EINVAL, "%s unpacks to %zu bytes, more than the %zu that are read", name,
                         count, most_bytes);
        goto done;
    }
    if (!ki_inflate_can_make(n_packed, count)) {
        status = ki_fail(err, KITH_EFORMAT,
                         "%s promises %zu bytes of data, more than its %zu packed bytes can hold", name,
                         count, n_packed);
        goto done;
    }
    KI_CHECK(ki_grow(&bytes->data, &bytes->capacity, got + count, 1, "an idx file", err));
    memcpy(bytes->data, head, got);
    bytes->n = got;
    KI_CHECK(ki_inflate_read(in, bytes->data + bytes->n, count, &got, err));
    bytes->n += got;
    KI_CHECK(ki_inflate_read(in, &extra, 1, &n_extra, err)); /* the end, where the checksum is */
    if (got < count)
        status = ki_fail(err, KITH_EFORMAT, "%s promises %zu bytes of data and has %zu", name, count, got);
    else if (n_extra > 0)
        status = ki_fail(err, KITH_EFORMAT, "%s promises %zu bytes of data and has more", name, count);
done:
    ki_inflate_free(in);
    return status;
}

/* Files that are not packed are used as they are, whatever their names are. */
static kith_status read_file(const char *path, const char *what, int n_dims, ki_bytes *bytes,
                             kith_error *err) {
    char *raw = NULL;
    size_t n = 0;
    KI_TRY(ki_file_read(path, most_bytes, &raw, &n, err));
    if (!ki_inflate_is_gzip(raw, n)) {
        ki_bytes_release(bytes);
        *bytes = (ki_bytes){.data = (uint8_t *)raw, .n = n, .capacity = n};
        return KITH_OK;
    }
    const kith_status status = ki_idx_unpack(raw, n, path, what, n_dims, bytes, err);
    ki_free(raw);
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
        KI_CHECK(read_file(path.s, "images", 3, &images, err));
        KI_CHECK(read_file(labels_path.s, "labels", 1, &labels, err));
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
