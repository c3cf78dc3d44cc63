/* The codes of one segment's rows: one block of bytes in the layout that the scan reads, sorted by list.
 *
 * The block is written to a file as it is and used where it lies, read or mapped. It holds no pointers; numbers are
 * little-endian. A row takes bits * dim / 8 bytes (dim rounded up to 16) and 12 more; a list 8 bytes.
 *
 *   header     64 bytes (codes_parts.h)
 *   begin      uint32 [n_lists + 1]: the list l is places begin[l] … begin[l + 1] - 1
 *   radius     float32 [n_lists]: no row of the list is farther from its centroid
 *   row        uint32 [n, rounded up to 32]: which row of the segment is at a place
 *   blocks     of 32 places each (kernel.h)
 * Each part begins at a multiple of 64 bytes. */
#ifndef KI_SEARCH_CODES_H
#define KI_SEARCH_CODES_H

#include "search/scan/coder.h"
#include "search/tally.h"

/* A view of such a block: borrows the bytes and holds nothing else, so there is nothing to release. */
typedef struct ki_codes {
    int64_t n;
    const uint32_t *begin;
    const float *radius;
    const uint32_t *row;
    const uint8_t *blocks;
} ki_codes;

/* Bytes of the codes of n rows, known before they are made. n is at most 2^31 - 1. */
size_t ki_codes_bytes(const ki_coder *coder, int64_t n);

/* Encode rows first … first + n - 1 of the source. The bytes are the same for any number of threads and every instruction
 * set. *ret_bytes, of ki_codes_bytes(coder, n), is aligned to 64 and given back with ki_free. n may be 0.
 * tally (may be NULL) is told of the rows. */
kith_status ki_codes_make(const ki_coder *coder, const ki_row_source *rows, int64_t first, int64_t n,
                          ki_tally *tally, uint8_t **ret_bytes, kith_error *err);

/* Check the bytes and look at them as codes. They must be aligned to 64 bytes (KITH_EINVAL) and outlive the view.
 * KITH_EFORMAT in one line for bytes of another coder, another size, or with a number in them that could lead the scan
 * astray; no bytes crash a search. A changed bit inside a code is not noticed: whoever stores codes keeps a checksum. */
kith_status ki_codes_open(const ki_coder *coder, const void *bytes, size_t n_bytes, ki_codes *ret_codes,
                          kith_error *err);

#endif
