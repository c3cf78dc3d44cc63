/* The rows of bench/features.sh: clusters of features made of a counter, the same in every call.
 *
 *     features_rows OUT.npy ROWS NUMBERS CLASSES
 *
 * writes float32 [ROWS, NUMBERS] and the class of each row, int64 [ROWS], to OUT.labels.npy (OUT without .npy). Row by row,
 * so that it needs no memory. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t x) {
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Uniform from -1 to 1. */
static float draw(uint64_t x) { return (float)(mix(x) >> 40) / (float)(1 << 23) - 1; }

static FILE *begin(const char *path, const char *type, const char *shape) {
    char head[128];
    FILE *file = fopen(path, "wb");
    if (!file) {
        perror(path);
        exit(1);
    }
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
    const int n = snprintf(head + 10, sizeof head - 11,
                           "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type, shape);
    head[10 + n] = ' ';
    head[127] = '\n';
    fwrite(head, 1, sizeof head, file);
    return file;
}

static void finish(FILE *file, const char *path) {
    if (ferror(file) || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

int main(int argc, char **argv) {
    char shape[64], labels[4096];
    if (argc != 5) {
        fprintf(stderr, "features_rows OUT.npy ROWS NUMBERS CLASSES\n");
        return 2;
    }
    const int64_t rows = atoll(argv[2]), numbers = atoll(argv[3]), classes = atoll(argv[4]);
    float *row = malloc((size_t)numbers * sizeof *row);
    if (!row || rows < 1 || numbers < 1 || classes < 1) return 1;
    snprintf(shape, sizeof shape, "(%" PRId64 ", %" PRId64 ")", rows, numbers);
    FILE *x = begin(argv[1], "<f4", shape);
    for (int64_t i = 0; i < rows; i++) {
        const uint64_t class = (uint64_t)(i % classes);
        for (int64_t k = 0; k < numbers; k++)
            row[k] =
                draw(class << 32 | (uint64_t)k) + 2 * draw(UINT64_C(1) << 63 | (uint64_t)(i * numbers + k));
        fwrite(row, sizeof *row, (size_t)numbers, x);
    }
    finish(x, argv[1]);
    snprintf(labels, sizeof labels, "%.*s.labels.npy", (int)(strlen(argv[1]) - strlen(".npy")), argv[1]);
    snprintf(shape, sizeof shape, "(%" PRId64 ",)", rows);
    FILE *y = begin(labels, "<i8", shape);
    for (int64_t i = 0; i < rows; i++) {
        const int64_t class = i % classes;
        fwrite(&class, sizeof class, 1, y);
    }
    finish(y, labels);
    free(row);
    return 0;
}
