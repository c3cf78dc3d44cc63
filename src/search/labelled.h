/* Items with a label, all of them or a sample: what false-match rates and the reliability of hits are measured on. */
#ifndef KI_SEARCH_LABELLED_H
#define KI_SEARCH_LABELLED_H

#include "judge/trials.h"
#include "kith/index.h"

typedef struct ki_labelled {
    int64_t n, *id;    /* ascending */
    int64_t *class_of; /* [n]: the number of its label, in the order of their bytes */
    int64_t n_classes, n_same, n_different;
} ki_labelled;

/* Items that may be compared with each other in a second or two: 10,000, fewer of long vectors. */
int64_t ki_labelled_most(int64_t dim);

/* Of the last commit at most `most` of them, as if drawn, but the same at every store, and nearly the same after small changes. */
kith_status ki_labelled_take(const kith_index *index, int64_t most, ki_labelled *ret, kith_error *err);
void ki_labelled_release(ki_labelled *s); /* fine on a zeroed struct */

/* Trials of an index: of all its labelled items, or where these are very many of a sample that is searched for in the whole index, with its own
 * search. Thinned items would have fewer hits that are right, and fewer that are wrong, than a search has. KITH_ENOTFOUND: fewer
 * than n_least labels have two items. */
kith_status ki_index_trials(const kith_index *index, int64_t k, int64_t n_least, ki_trials *ret,
                            kith_error *err);

#endif
