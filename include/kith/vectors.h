/* Vectors: embeddings of a data set's images, kept where they were made (kith/model.h), and which images they belong
 * to.
 *
 * A kith_vectors is used by one thread at a time, and not while another thread uses its model. Strings and arrays that
 * functions return live as long as the vectors. */
#ifndef KITH_VECTORS_H
#define KITH_VECTORS_H

#include <stdint.h>

#include "kith/array.h"
#include "kith/card.h"
#include "kith/eval.h"
#include "kith/status.h"
#include "kith/worst.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kith_vectors kith_vectors;

KITH_API void kith_vectors_free(kith_vectors *vectors); /* NULL is fine; before the model */

/* Images that could be read, in the order of the data set. */
KITH_API int64_t kith_vectors_count(const kith_vectors *vectors);
/* Of each: its number in the data set, and its class there (-1: none). */
KITH_API const int64_t *kith_vectors_items(const kith_vectors *vectors);
KITH_API const int64_t *kith_vectors_labels(const kith_vectors *vectors);
/* The values as float32 [count, …] on the host, copied there the first time; do not release the array. */
KITH_API kith_status kith_vectors_array(kith_vectors *vectors, kith_array *ret_array, kith_error *err);

/* Images that could not be read: how many, and the first hundred as "PATH: why" (NULL past them). */
KITH_API int64_t kith_vectors_n_bad(const kith_vectors *vectors);
KITH_API const char *kith_vectors_bad(const kith_vectors *vectors, int64_t i);

/* kith_judge_run of the vectors, by their labels and the data set's roles: on the device that has them. */
KITH_API kith_status kith_vectors_judge(kith_vectors *vectors, const kith_judge_options *options,
                                        kith_judgement *ret_judgement, kith_error *err);
/* kith_worst_find of the vectors, by their labels and the data set's roles. Rows are numbered from 0 to count - 1. */
KITH_API kith_status kith_vectors_worst(kith_vectors *vectors, const kith_worst_options *options,
                                        kith_worst *ret_worst, kith_error *err);
/* What a card says about the model, its input and the data; the other facts stay as they are. */
KITH_API void kith_vectors_facts(const kith_vectors *vectors, kith_card_facts *facts);

#ifdef __cplusplus
}
#endif
#endif
