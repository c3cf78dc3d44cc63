/* Scoring variants (base/variant.h): some parts of described rows, as they are or after a change that is fitted first. */
#ifndef KI_JUDGE_VARIANTS_H
#define KI_JUDGE_VARIANTS_H

#include "base/variant.h"
#include "judge/judge.h"

typedef struct ki_variants_options {
    const int64_t *k; /* of R@K */
    int64_t n_k;
    ki_parts parts;      /* of every row */
    int64_t embedding;   /* its numbers: components at most of variants that do not say */
    bool has_clustering; /* for those that want it */
} ki_variants_options;

typedef struct ki_variant_scores {
    ki_variant variant;
    int64_t dim[2]; /* numbers of a row before and after the change */
    ki_scores scores;
    kith_intervals intervals; /* with KI_VARIANT_INTERVALS */
    ki_clustered clustered;   /* with KI_VARIANT_CLUSTERS */
} ki_variant_scores;

/* A list that is ki_free'd by ki_variant_list_release. */
typedef struct ki_variant_list {
    ki_variant_scores *item;
    size_t n;
} ki_variant_list;

void ki_variant_list_release(ki_variant_list *list); /* fine on a zeroed struct */

/* The scores of the embedding that begins every row, as if it were alone. KITH_EINTERNAL when there is none. */
kith_status ki_judge_embedding(ki_vectors *rows, const ki_variants_options *options, ki_scores *ret_scores,
                               kith_error *err);

/* Scores of n variants of the rows in `test`, in their order. `fitted` are the training images that changes are fitted on; NULL
 * is fine for variants without a change. A variant of parts that the rows do not have is not there. The products of a change
 * are made by the backend that made the rows, where it can, and rows that lie there are ranked from there. Variants that
 * follow each other and differ only by KI_CHANGE_PCA_WHITE share one PCA. */
kith_status ki_judge_variants(ki_vectors *fitted, ki_vectors *test, const ki_variants_options *options,
                              const ki_variant *list, size_t n, ki_variant_list *ret_list, kith_error *err);

enum { KI_VARIANT_NOTE = 320 };
/* How its vectors were made, in words, for a card. */
const char *ki_variant_note(const ki_variant_scores *variant, char ret_note[KI_VARIANT_NOTE]);

/* Rows of embeddings, made into part 0: every one of a row's `heads` gets the length 1. They are on the host afterwards. */
kith_status ki_judge_normalize(ki_vectors *rows, int64_t heads, kith_error *err);

#endif
