/* What is inside a coder, for the files of this folder. */
#ifndef KI_SEARCH_CODER_PARTS_H
#define KI_SEARCH_CODER_PARTS_H

#include "search/scan/coder.h"
#include "search/scan/kernel.h"
#include "search/scan/rotation.h"

/* Numbers that differ from 0 by less count as 0: their inverse is no float. */
#define KI_CODER_LEAST 1e-30F

struct ki_coder {
    kith_metric metric;
    int64_t dim;    /* of rows */
    int64_t padded; /* of turned rows: dim rounded up to 16 */
    int64_t coded;  /* values of a turned row that its code covers: the first ones, a multiple of 16 */
    int bits;       /* of each of them */
    int64_t n_lists, n_panels;
    uint64_t seed, mark;
    ki_rotation rotation; /* of the coded values */
    /* What was learned, in one block of memory as in a file: */
    float *centroid; /* [n_lists, padded], turned */
    /* Axes of the rows' spread around their centroids, the widest first; NULL: rows are not turned to them. */
    float *axes;     /* [padded / 64 rounded up, dim, 64], as ki_scan_kernel.project reads them */
    float *variance; /* [padded]: of rows along the axes */
    size_t n_numbers;
    float dropped; /* the part of the variance that has no code */
    float *half;   /* [n_panels * 64]: |centroid|^2 / 2 */
    /* Centroids in bytes, for finding the nearest: value * scale + 128. */
    float *scale;    /* [n_panels * 64] */
    uint8_t *panels; /* as ki_scan_kernel.lists reads them */
};

/* Room for what is learned, for the dim, the lists and the seed that are set. Then axes and variance are to be filled in,
 * ki_coder_share_bits or what it decides, ki_coder_rotate, and the centroids; ki_coder_finish makes the rest. */
kith_status ki_coder_init(ki_coder *coder, bool has_axes, kith_error *err);
/* How many values to code, and how many bits for each, when a row has `bits` for each of its values. */
void ki_coder_share_bits(ki_coder *coder, int bits);
/* Rows are no longer turned to axes. */
void ki_coder_drop_axes(ki_coder *coder);
/* The rotation of the coded values, and the part of the others. */
kith_status ki_coder_rotate(ki_coder *coder, kith_error *err);
void ki_coder_finish(ki_coder *coder);
/* The mark, when all is in place. */
void ki_coder_seal(ki_coder *coder);

/* More values have no axes. */
enum { KI_CODER_MOST_AXES = 2048 };
static inline int64_t ki_coder_axis_panels(const ki_coder *coder) {
    return (coder->padded + KI_AXIS_PANEL - 1) / KI_AXIS_PANEL;
}
/* A vector along the axes and padded, but not rotated. ret [padded]. */
void ki_coder_align(const ki_coder *coder, const float *x, float *ret);
/* A row as the coder sees it: normalised for the cosine, aligned, the coded values rotated. ret [padded]. */
void ki_coder_turn(const ki_coder *coder, const float *x, float *ret);

/* For lists, larger is nearer: minus half the squared distance to the centroid, up to what all lists of a row have in common;
 * for a query by inner product, that product. Rounded to bytes on both sides, the same way for rows that are encoded and
 * for queries, so that a row as a query has its own list as the nearest. */
typedef struct ki_coder_ranker {
    const ki_coder *coder;
    const ki_scan_kernel *kernel;
    int8_t *bytes; /* [n_together, padded] */
    int32_t *dots; /* [n_together, n_panels * 64] */
} ki_coder_ranker;

kith_status ki_coder_ranker_init(ki_coder_ranker *ranker, const ki_coder *coder, int64_t n_together,
                                 kith_error *err);
void ki_coder_ranker_release(ki_coder_ranker *ranker); /* fine on a zeroed struct */
/* turned [n, padded], n at most 4 and n_together; ret_scores [n, n_panels * 64], of which n_lists mean something. */
void ki_coder_rank(ki_coder_ranker *ranker, const float *turned, int64_t n, bool is_query, float *ret_scores);

/* n_drawn different numbers below n at random, in rising order. */
void ki_coder_draw(int64_t n, int64_t n_drawn, uint64_t seed, int64_t *ret_rows);

#endif
