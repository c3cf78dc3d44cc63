/* Who is compared with whom: the rows of queries and gallery, and their classes. */
#ifndef KI_SIDES_H
#define KI_SIDES_H

#include "judge/judge.h"

typedef struct ki_sides {
    int64_t n_query, n_gallery, n_classes;
    ki_rows query, gallery; /* the whole matrix where there is no list */
    void *query_copy, *gallery_copy;
    int64_t *label; /* [n_classes], rising */
    int32_t *query_class, *gallery_class;
    int32_t *self;  /* [n_query]: the query's place in the gallery, or -1 */
    int32_t *place; /* [rows]: the row's place in the gallery, or -1 */
} ki_sides;

/* Errors as of kith_retrieval_run. Released after failure, too. */
kith_status ki_sides_init(const ki_judge_input *input, ki_sides *ret_sides, kith_error *err);
void ki_sides_release(ki_sides *sides); /* fine on a zeroed struct */

#endif
