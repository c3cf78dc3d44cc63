/* A variant: other vectors than the embedding that the same images can be compared by.
 *
 * A described row is several parts side by side. Part 0 is the normalised embedding, the others belong to a term of the
 * objective. A variant names some of these parts and what is done to them before they are scored. Terms of an objective list
 * variants, the judge scores them, and cards, logs and reports show them by their names. This is the data alone. */
#ifndef KI_VARIANT_H
#define KI_VARIANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    KI_MOST_PARTS = 16,    /* of a described row */
    KI_MOST_VARIANTS = 32, /* of an objective */
    KI_VARIANT_NAME = 48   /* bytes of the longest name, and its end */
};

/* What is done to a row's parts. A part is whitened softly: each of its principal components is divided by the root of its
 * variance and a tenth of the mean one. */
typedef enum ki_change {
    KI_CHANGE_NONE,
    KI_CHANGE_PCA,
    KI_CHANGE_PCA_WHITE, /* … and every component over its standard deviation */
    /* Every part is whitened by itself first and given its length: that of the embedding is the root of the number of the
     * others, so that it counts as much as all of them together. */
    KI_CHANGE_EACH_WHITE_PCA,
    KI_CHANGE_WHITE, /* one part, whitened */
} ki_change;

/* The images that the change is fitted on. */
typedef enum ki_fitted {
    KI_FITTED_NOTHING, /* KI_CHANGE_NONE */
    KI_FITTED_TRAINING,
    /* The very images that are judged. Papers have done so. It is not comparable with the rest, because a query's vector then
     * depends on all other test images. */
    KI_FITTED_TEST,
} ki_fitted;

/* What a variant gets beside its scores at the end of a run. A curve is R@1 at every evaluation, for variants without a change:
 * nothing is fitted there. */
enum { KI_VARIANT_CURVE = 1, KI_VARIANT_INTERVALS = 2, KI_VARIANT_CLUSTERS = 4 };

/* Texts are constants. */
typedef struct ki_variant {
    const char *name;  /* as cards and logs have it: "embedding_white" */
    const char *about; /* which vectors these are, for people: "the embedding alone" */
    int first_part, n_parts;
    ki_change change;
    ki_fitted fitted_on;
    unsigned has;  /* KI_VARIANT_… */
    int64_t width; /* components at most; 0: as many as the embedding has */
    int64_t first; /* of the parts' numbers the first so many; 0: all */
} ki_variant;

/* What a described row is made of. A part of 0 numbers is not there. */
typedef struct ki_parts {
    int n;
    int64_t width[KI_MOST_PARTS];
} ki_parts;

/* As in a card: "none", "pca", "pca_white", "each_white_pca", "white"; "nothing", "training", "test". */
const char *ki_change_name(ki_change change);
const char *ki_fitted_name(ki_fitted fitted);

/* The numbers of a row before part p; of all parts with p = parts->n. */
int64_t ki_parts_before(const ki_parts *parts, int p);
/* Does the variant use the embedding alone? Then every network has it. */
bool ki_variant_is_of_embedding(const ki_variant *variant);
/* The one that every network has: the embedding alone, whitened on training images. */
extern const ki_variant ki_variant_embedding_white;

#endif
