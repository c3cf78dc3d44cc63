/* Columns of a snapshot in memory, read when they are first asked for. */
#ifndef KI_SEARCH_COLUMNS_H
#define KI_SEARCH_COLUMNS_H

#include <pthread.h>

#include "search/files/snapshot.h"

/* Any number of threads may ask. */
typedef struct ki_columns {
    const ki_snapshot *snapshot;
    pthread_mutex_t lock;
    ki_cells **cells; /* [segments * columns], NULL until read */
    int64_t n_columns;
} ki_columns;

kith_status ki_columns_init(ki_columns *columns, const ki_snapshot *snapshot, kith_error *err);
void ki_columns_release(ki_columns *columns); /* only after ki_columns_init succeeded, or zeroed */

/* The values of a segment's rows, with what has moved since. Live as long as the columns. */
kith_status ki_columns_get(ki_columns *columns, int64_t segment, int64_t column, const ki_cells **ret_cells,
                           kith_error *err);

#endif
