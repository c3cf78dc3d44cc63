/* Writes a coder and codes as test/fuzz/fuzz_codes.c reads them: make_codes BITS LISTS FILE. The seeds in test/corpus/codes are made
 * with it. */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "search/scan/codes.h"

enum { N = 100, DIM = 20 };

int main(int argc, char **argv) {
    kith_error err = {0};
    float x[N * DIM];
    ki_coder *coder = NULL;
    uint8_t *codes = NULL;
    ki_buffer bytes = {0};
    if (argc != 4) return fprintf(stderr, "usage: make_codes BITS LISTS FILE\n"), 2;
    ki_rng rng = ki_rng_at(1, KI_RNG_TEST, 0, 0);
    /* Values that vary less and less, so that a coder gives them different bits. */
    for (int i = 0; i < N * DIM; i++) x[i] = (float)(ki_rng_normal(&rng) / (1 << i % DIM));
    const ki_row_source rows = {.n = N, .dim = DIM, .data = x};
    const ki_coder_options options = {.bits = atoi(argv[1]), .n_lists = atoi(argv[2])};
    FILE *file = fopen(argv[3], "wb");
    bool is_done = file && ki_coder_fit(&rows, &options, &coder, &err) == KITH_OK &&
                   ki_codes_make(coder, &rows, 0, N, NULL, &codes, &err) == KITH_OK;
    if (is_done) {
        ki_coder_to_bytes(coder, &bytes);
        const uint32_t n = (uint32_t)bytes.n;
        const size_t n_codes = ki_codes_bytes(coder, N);
        is_done = fwrite(&n, sizeof n, 1, file) == 1 && fwrite(bytes.data, 1, bytes.n, file) == bytes.n &&
                  fwrite(codes, 1, n_codes, file) == n_codes;
    }
    if (file) is_done = fclose(file) == 0 && is_done;
    if (!is_done) fprintf(stderr, "make_codes: %s\n", err.message);
    ki_buffer_release(&bytes);
    ki_free(codes);
    ki_coder_free(coder);
    return is_done ? 0 : 1;
}
