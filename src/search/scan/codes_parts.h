/* The layout of a block of codes, for those who write and read it. */
#ifndef KI_SEARCH_CODES_PARTS_H
#define KI_SEARCH_CODES_PARTS_H

#include "search/scan/coder_parts.h"
#include "search/scan/codes.h"

typedef struct ki_codes_header {
    char magic[8]; /* KI_CODES_MAGIC */
    uint32_t version, bits, coded, n_lists;
    uint64_t n, mark; /* rows; the coder's mark */
    uint64_t zero[3];
} ki_codes_header;
_Static_assert(sizeof(ki_codes_header) == 64, "the header of codes has no gaps");

#define KI_CODES_MAGIC "kithcode"
enum { KI_CODES_VERSION = 1 };

/* Where the parts begin. */
typedef struct ki_codes_layout {
    size_t begin, radius, row, blocks, end;
    size_t block; /* bytes of one */
    int64_t n_blocks;
} ki_codes_layout;

ki_codes_layout ki_codes_layout_of(const ki_coder *coder, int64_t n);

#endif
