/* Nested widths: the loss is evaluated on the first d numbers of the embedding for several d, so that a vector can be cut short.
 *
 *     nested: [32, 64, 128, 512]        # rising; normalised again where the loss wants it
 *     nested_weights: [1, 1, 1, 2]      # default: equal
 *
 *   L = sum_d w_d loss(first d numbers) / sum_d w_d
 *
 * What the loss learns is one for all widths: proxies are cut like the embedding, remembered embeddings too. The miner chooses
 * anew for every width. Regularizers see the whole embedding.
 * Source: Kusupati et al., Matryoshka Representation Learning, NeurIPS 2022, Eq. 1 and its weight-tied form (MRL-E). */
#ifndef KI_OBJECTIVE_NESTED_H
#define KI_OBJECTIVE_NESTED_H

#include <stdint.h>

#include "base/error.h"
#include "base/value.h"

enum { KI_NESTED_MOST = 12, KI_NESTED_NAME = 32 };

typedef struct ki_nested {
    int n; /* 0: the loss sees the whole embedding alone */
    int64_t width[KI_NESTED_MOST];
    double share[KI_NESTED_MOST];              /* of the value: they sum to 1 */
    char name[KI_NESTED_MOST][KI_NESTED_NAME]; /* "first_32": as cards and logs have the scores of a width */
} ki_nested;

/* From a section `objective`. `embedding` is the embedding's numbers; 0: not known yet. */
kith_status ki_nested_parse(const ki_value *section, int64_t embedding, ki_nested *ret, kith_error *err);
/* KITH_EINVAL where an embedding of so many numbers is too short for the widths. */
kith_status ki_nested_check(const ki_nested *nested, int64_t embedding, kith_error *err);

#endif
