/* Images as plain vectors of their pixels: what any embedding should be better than.
 *
 *     pixels DATA|RECIPE.yaml PIXELS.npy LABELS.npy [SIDE]
 *     kith eval --embedding PIXELS.npy --labels LABELS.npy
 *
 * The test images of a data set, squashed to SIDE x SIDE (28) grey pixels, each centred by its own mean, so
 * that cosine similarity compares drawings and not brightness. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/array.h"
#include "kith/data.h"

static int fail(const kith_error *err) {
    fprintf(stderr, "pixels: %s%s%s\n", err->message, err->hint[0] ? "; " : "", err->hint);
    return 1;
}

/* A folder, or what a recipe's data section says (a run has its recipe in RUN/recipe.yaml). */
static kith_status open_data(const char *path, kith_dataset **ret_set, kith_error *err) {
    const size_t n = strlen(path);
    if (n > 5 && strcmp(path + n - 5, ".yaml") == 0) return kith_dataset_open_recipe(path, ret_set, err);
    return kith_dataset_open("auto", path, ret_set, err);
}

/* Subtract each row's mean. */
static void centre(float *x, int64_t n, int64_t dim) {
    for (int64_t i = 0; i < n; i++) {
        double mean = 0;
        for (int64_t k = 0; k < dim; k++) mean += (double)x[i * dim + k] / (double)dim;
        for (int64_t k = 0; k < dim; k++) x[i * dim + k] -= (float)mean;
    }
}

int main(int argc, char **argv) {
    kith_error err = {0};
    kith_dataset *set = NULL;
    kith_image_reader *reader = NULL;
    kith_image_batch batch = {0};
    kith_array x = {0}, y = {0};
    if (argc < 4 || argc > 5) {
        fprintf(stderr, "usage: pixels DATA|RECIPE.yaml PIXELS.npy LABELS.npy [SIDE]\n");
        return 2;
    }
    KITH_OPTIONS(kith_transform, transform);
    transform.crop_to = transform.resize_to = argc > 4 ? atoi(argv[4]) : 28;
    transform.channels = 1;
    int status = 1;
    if (open_data(argv[1], &set, &err) != KITH_OK ||
        kith_image_reader_dataset(set, KITH_SPLIT_TEST, &transform, NULL, &reader, &err) != KITH_OK)
        goto done;
    const int64_t most = kith_image_reader_count(reader),
                  dim = (int64_t)transform.crop_to * transform.crop_to;
    if (kith_array_init(KITH_F32, 2, (const int64_t[]){most, dim}, &x, &err) != KITH_OK ||
        kith_array_init(KITH_I64, 1, &most, &y, &err) != KITH_OK)
        goto done;
    int64_t n = 0;
    for (;;) {
        if (kith_image_reader_next(reader, &batch, &err) != KITH_OK) goto done;
        if (batch.n == 0) break;
        memcpy((float *)x.data + n * dim, batch.data, (size_t)(batch.n * dim) * sizeof(float));
        for (int64_t i = 0; i < batch.n; i++) ((int64_t *)y.data)[n + i] = kith_image_reader_label(reader, i);
        n += batch.n;
    }
    centre(x.data, n, dim);
    x.dim[0] = y.dim[0] = n; /* fewer when some could not be read */
    if (kith_npy_write(argv[2], &x, &err) != KITH_OK || kith_npy_write(argv[3], &y, &err) != KITH_OK)
        goto done;
    printf("%lld images of %lld pixels\n", (long long)n, (long long)dim);
    status = 0;
done:
    if (status != 0) fail(&err);
    kith_array_release(&x);
    kith_array_release(&y);
    kith_image_reader_free(reader);
    kith_dataset_free(set);
    return status;
}
