/* A coder: what is learned once from rows and then fixed, so that rows added later get codes like the first ones.
 *
 *   - the metric. For the cosine, rows are normalised before anything else is done with them;
 *   - a rotation, made from a seed, of rows that are padded with zeros to a multiple of 16 values;
 *   - the centroids of lists (k-means): a row belongs to the list of the nearest one. One list has the mean of all rows;
 *   - how many bits a dimension of a code has.
 *
 * A coder is not changed after it is made: any number of threads may use it. */
#ifndef KI_SEARCH_CODER_H
#define KI_SEARCH_CODER_H

#include <stddef.h>

#include "base/buffer.h"
#include "kith/knn.h"
#include "search/scan/source.h"

enum {
    KI_CODER_MOST_BITS = 8,
    KI_CODER_MOST_DIM = 65536,
    KI_CODER_MOST_LISTS = 1 << 20,
};

typedef struct ki_coder ki_coder;

/* All zeros is a good choice: cosine, 1 bit, lists as many as the rows call for. */
typedef struct ki_coder_options {
    kith_metric metric;
    int bits;                  /* of a dimension, 1 to KI_CODER_MOST_BITS; 0: 1 */
    int64_t n_lists;           /* 1: no lists, every search reads all codes; 0: ki_coder_lists_for(n) */
    int64_t n_sample;          /* rows that k-means sees, drawn at random; 0: enough */
    uint64_t seed;             /* of the rotation, the sample and k-means */
    kith_progress_fn progress; /* may be NULL */
    void *user;
} ki_coder_options;

/* Lists for n rows, where a search takes least: 1 for few rows. */
int64_t ki_coder_lists_for(int64_t n);

/* Learn from the rows, of which there must be at least one. The same rows and options give the same coder for any number of
 * threads. KITH_EINVAL for options out of range, KITH_ECANCELED when progress asks for it. */
kith_status ki_coder_fit(const ki_row_source *rows, const ki_coder_options *options, ki_coder **ret_coder,
                         kith_error *err);
void ki_coder_free(ki_coder *coder); /* NULL is fine */

/* The same rotation and lists, with codes of another number of bits. */
kith_status ki_coder_with_bits(const ki_coder *coder, int bits, ki_coder **ret_coder, kith_error *err);

kith_metric ki_coder_metric(const ki_coder *coder);
int64_t ki_coder_dim(const ki_coder *coder); /* of rows, as they are given */
int ki_coder_bits(const ki_coder *coder);
int64_t ki_coder_lists(const ki_coder *coder);
/* Of heap memory. */
size_t ki_coder_memory(const ki_coder *coder);
/* The same for two coders only if they make the same codes: codes know by this which coder they are of. */
uint64_t ki_coder_mark(const ki_coder *coder);

/* A coder as bytes, the same on every machine, and back. Bytes that no coder was written as give KITH_EFORMAT and one line;
 * what they say is checked before memory is taken for it. The bytes need no alignment. */
void ki_coder_to_bytes(const ki_coder *coder, ki_buffer *dst);
kith_status ki_coder_from_bytes(const void *bytes, size_t n_bytes, ki_coder **ret_coder, kith_error *err);

#endif
