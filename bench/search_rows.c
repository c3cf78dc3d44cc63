/* The rows of a search benchmark, for all programs that take part: PREFIX.rows, PREFIX.queries and PREFIX.truth.
 *   search_rows PREFIX N_QUERIES FILE.npy…
 * Rows of all files are normalised and shuffled; N_QUERIES of them become queries and are not searched. The truth is the 10
 * nearest rows by cosine, from exact search. A file begins with the number of rows and the width (int64); rows are float32, the
 * truth int64. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "kith/array.h"
#include "kith/knn.h"

enum { K = 10 };

static void stop(const char *what) {
    fprintf(stderr, "search_rows: %s\n", what);
    exit(1);
}

static void write_file(const char *prefix, const char *name, int64_t n, int64_t width, const void *data,
                       size_t bytes) {
    char path[4096];
    snprintf(path, sizeof path, "%s.%s", prefix, name);
    FILE *file = fopen(path, "wb");
    const int64_t shape[2] = {n, width};
    if (!file || fwrite(shape, sizeof shape, 1, file) != 1 ||
        fwrite(data, bytes, (size_t)(n * width), file) != (size_t)(n * width) || fclose(file) != 0)
        stop("a file could not be written");
}

int main(int argc, char **argv) {
    if (argc < 4) stop("usage: search_rows PREFIX N_QUERIES FILE.npy…");
    const int64_t n_queries = atoll(argv[2]);
    float *rows = NULL;
    int64_t n = 0, dim = 0;
    kith_error err = {0};
    for (int i = 3; i < argc; i++) {
        kith_array a = {0};
        if (kith_npy_read(argv[i], &a, &err) != KITH_OK) stop(err.message);
        if (a.n_dims != 2 || a.dtype != KITH_F32 || (dim && a.dim[1] != dim))
            stop("float32 rows of one width are wanted");
        dim = a.dim[1];
        rows = realloc(rows, (size_t)((n + a.dim[0]) * dim) * sizeof *rows);
        if (!rows) stop("no memory");
        memcpy(rows + n * dim, a.data, (size_t)(a.dim[0] * dim) * sizeof *rows);
        n += a.dim[0];
        kith_array_release(&a);
    }
    if (n_queries < 1 || n_queries >= n) stop("fewer queries than rows are wanted");
    float *row = malloc((size_t)dim * sizeof *row);
    ki_rng rng = ki_rng_at(1, KI_RNG_TEST, 0, 0);
    for (int64_t i = n - 1; i >= 0; i--) {
        double square = 0;
        const int64_t j = ki_rng_below(&rng, (uint32_t)i + 1);
        memcpy(row, rows + j * dim, (size_t)dim * sizeof *row);
        memcpy(rows + j * dim, rows + i * dim, (size_t)dim * sizeof *row);
        for (int64_t k = 0; k < dim; k++) square += (double)row[k] * (double)row[k];
        for (int64_t k = 0; k < dim; k++)
            rows[i * dim + k] = (float)((double)row[k] / fmax(sqrt(square), 1e-12));
    }
    const int64_t n_rows = n - n_queries;
    const float *queries = rows + n_rows * dim;
    write_file(argv[1], "rows", n_rows, dim, rows, sizeof *rows);
    write_file(argv[1], "queries", n_queries, dim, queries, sizeof *rows);

    const kith_array base = {.dtype = KITH_F32, .n_dims = 2, .dim = {n_rows, dim}, .data = rows};
    const kith_array asked = {
        .dtype = KITH_F32, .n_dims = 2, .dim = {n_queries, dim}, .data = (void *)queries};
    kith_gallery *gallery = NULL;
    kith_neighbor *found = malloc((size_t)(n_queries * K) * sizeof *found);
    int64_t *truth = malloc((size_t)(n_queries * K) * sizeof *truth);
    kith_knn_options options;
    kith_knn_options_init(&options, sizeof options);
    options.exact = true;
    if (kith_gallery_new(&base, &options, &gallery, &err) != KITH_OK ||
        kith_gallery_search(gallery, &asked, NULL, K, found, &err) != KITH_OK)
        stop(err.message);
    for (int64_t i = 0; i < n_queries * K; i++) truth[i] = found[i].index;
    write_file(argv[1], "truth", n_queries, K, truth, sizeof *truth);
    printf("%s: %lld rows and %lld queries of %lld values\n", argv[1], (long long)n_rows,
           (long long)n_queries, (long long)dim);
    return 0;
}
