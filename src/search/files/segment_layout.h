/* The bytes at the end of a segment, as the writer and the reader see them. */
#ifndef KI_SEARCH_SEGMENT_LAYOUT_H
#define KI_SEARCH_SEGMENT_LAYOUT_H

#include <stdint.h>

#define KI_SEGMENT_MARK "kithseg"

typedef struct ki_segment_trailer {
    char mark[8]; /* KI_SEGMENT_MARK and a NUL */
    int64_t n, dim, n_entries, directory;
    int64_t zero[3];
} ki_segment_trailer;

_Static_assert(sizeof(ki_segment_trailer) == 64, "the trailer has 64 bytes");

#endif
