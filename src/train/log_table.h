/* log.csv: the numbers of log.jsonl as a table, for spreadsheets and data frames.
 *
 * A row for each line about a step or an evaluation, under the same names ("terms.binomial", "recall.1"); a cell is empty where
 * the line does not have that number. The columns are those that the recipe can have, so they are the same from the first row
 * on. The table follows from the log: it is made again from it when a run is resumed. */
#ifndef KI_LOG_TABLE_H
#define KI_LOG_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct ki_log_table ki_log_table;

typedef struct ki_log_columns {
    const char *const *term; /* names of the objective's terms */
    size_t n_terms;
    const int64_t *k; /* of R@K */
    int64_t n_k;
} ki_log_columns;

/* FOLDER/log.csv, with a row for each line of FOLDER/log.jsonl so far. A line that is not valid is left out. */
kith_status ki_log_table_open(const char *folder, const ki_log_columns *columns, ki_log_table **ret_table,
                              kith_error *err);
void ki_log_table_close(ki_log_table *table); /* NULL is fine */

/* The row of one line of the log; nothing for lines of other kinds. After a failure the file is unchanged. */
kith_status ki_log_table_add(ki_log_table *table, const char *line, size_t n, kith_error *err);
/* Make it again: the log has been cut. */
kith_status ki_log_table_renew(ki_log_table *table, kith_error *err);

#endif
