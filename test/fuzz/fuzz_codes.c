/* libFuzzer target: any bytes as a coder with codes behind it, and a search in what opens.
 * The first 4 bytes say how many bytes the coder has. */
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checksum.h"
#include "search/scan/scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_DIM = 64, MOST_ROWS = 256 };
enum { HEADER = 64, CHECKSUM_AT = 40, MARK_AT = 32 }; /* in the headers of a coder and of codes */

/* Rows of one value; a search reads any of them. */
static kith_status read_ones(void *user, const int64_t *row, int64_t n, float *dst, kith_error *err) {
    (void)row, (void)err;
    for (int64_t i = 0; i < n * *(const int64_t *)user; i++) dst[i] = 1;
    return KITH_OK;
}

static void search(const ki_coder *coder, const ki_codes *codes) {
    kith_error err;
    float query[MOST_DIM];
    kith_neighbor found[5], *all = NULL;
    int64_t n = 0, dim = ki_coder_dim(coder);
    for (int k = 0; k < MOST_DIM; k++) query[k] = (float)k - 3.5F;
    const ki_scan_segment segment = {codes, 0, codes->n};
    const ki_scan_set set = {.coder = coder,
                             .segments = &segment,
                             .n_segments = 1,
                             .rows = {.n = codes->n, .dim = dim, .read = read_ones, .user = &dim}};
    const ki_scan_options options = {.effort = {.n_probes = 3, .n_looks = 8}};
    ki_scan_search(&set, query, 1, 5, &options, found, &err);
    if (ki_scan_range(&set, query, 0.1, NULL, &all, &n, &err) == KITH_OK) ki_free(all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kith_error err;
    uint32_t n_coder = 0;
    ki_coder *coder = NULL;
    ki_codes codes;
    if (size < sizeof n_coder) return 0;
    memcpy(&n_coder, data, sizeof n_coder);
    data += sizeof n_coder, size -= sizeof n_coder;
    if (n_coder > size) n_coder = (uint32_t)size;
    uint8_t *bytes = ki_alloc(1, n_coder), *aligned = ki_alloc(1, size - n_coder);
    if (bytes && aligned) {
        memcpy(bytes, data, n_coder);
        memcpy(aligned, data + n_coder, size - n_coder);
        /* The right checksum, or hardly anything would come further than that. */
        const uint64_t checksum = n_coder > HEADER ? ki_checksum(bytes + HEADER, n_coder - HEADER, 0) : 0;
        if (n_coder > HEADER) memcpy(bytes + CHECKSUM_AT, &checksum, sizeof checksum);
    }
    if (bytes && aligned && ki_coder_from_bytes(bytes, n_coder, &coder, &err) == KITH_OK) {
        const uint64_t mark = ki_coder_mark(coder);
        if (size - n_coder >= HEADER) memcpy(aligned + MARK_AT, &mark, sizeof mark);
        if (ki_codes_open(coder, aligned, size - n_coder, &codes, &err) == KITH_OK &&
            ki_coder_dim(coder) <= MOST_DIM && codes.n <= MOST_ROWS)
            search(coder, &codes);
    }
    ki_free(bytes);
    ki_free(aligned);
    ki_coder_free(coder);
    return 0;
}
