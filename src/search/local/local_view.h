/* A commit of an index in a folder, ready to be asked. */
#ifndef KI_SEARCH_LOCAL_VIEW_H
#define KI_SEARCH_LOCAL_VIEW_H

#include "search/files/columns.h"
#include "search/filter.h"
#include "search/local/coded.h"
#include "search/local/exact.h"

/* What belongs to one commit: made anew by the next. The lazy parts lock themselves. */
typedef struct ki_view {
    const ki_snapshot *snapshot;
    uint64_t *alive; /* [ki_exact_words]: the snapshot's */
    ki_columns columns;
    ki_exact exact;
    ki_coded coded;
} ki_view;

kith_status ki_view_new(const ki_snapshot *snapshot, ki_view **ret_view, kith_error *err);
void ki_view_free(ki_view *view); /* NULL is fine */

/* Rows that may be found. */
typedef struct ki_allowed {
    const uint64_t *bits; /* [ki_exact_words] */
    uint64_t *own;        /* the caller's, given back with ki_free; NULL: the bits are the view's */
    int64_t n;            /* how many */
} ki_allowed;

/* Rows that are there and that `where` (NULL: all) holds for. */
kith_status ki_view_allowed(ki_view *view, const ki_where *where, ki_allowed *ret_allowed, kith_error *err);

#endif
