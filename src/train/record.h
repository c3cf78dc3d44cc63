/* What happened in a run: log.jsonl, one JSON object per line, written line by line; its numbers as a table (log.csv) and as
 * an event file for TensorBoard, with the recipe as text. */
#ifndef KI_RECORD_H
#define KI_RECORD_H

#include "judge/variants.h"
#include "train/learner.h"
#include "train/log_table.h"

/* NULL is a record that keeps nothing: the add functions and ki_record_cut then do nothing. */
typedef struct ki_record ki_record;

/* Add lines to FOLDER/log.jsonl after the first `keep_bytes` (the rest is cut off), make FOLDER/log.csv from those that are
 * kept, and begin a new event file for the steps after `step`. */
kith_status ki_record_open(const char *folder, int64_t keep_bytes, int64_t step,
                           const ki_log_columns *columns, ki_record **ret_record, kith_error *err);
void ki_record_close(ki_record *record); /* NULL is fine */

typedef struct ki_record_step {
    int64_t step, epoch, side; /* side: of the images of the last batch; 0: all are alike */
    const ki_learner_values *values;
    double lr, images_per_second, seconds;
} ki_record_step;

kith_status ki_record_add_step(ki_record *record, const ki_record_step *step, kith_error *err);
/* variants (may be NULL, or have none): R@1 of those with a curve. */
kith_status ki_record_add_eval(ki_record *record, int64_t step, const char *split, int64_t n_k,
                               const int64_t *k, const ki_scores *scores, const ki_variant_list *variants,
                               kith_error *err);
/* kind "warning" or "note"; `images` (may be NULL) are n paths. */
kith_status ki_record_add_text(ki_record *record, const char *kind, int64_t step, const char *text,
                               const char *const *images, int64_t n_images, kith_error *err);

/* How many bytes the lines so far have; and cut the log back to that size, which drops everything added
 * since. */
int64_t ki_record_bytes(const ki_record *record);
kith_status ki_record_cut(ki_record *record, int64_t bytes, kith_error *err);

/* The step of the last line about a step in FOLDER/log.jsonl; -1: there is none, or no log. */
kith_status ki_record_last_step(const char *folder, int64_t *ret_step, kith_error *err);

/* Sync the lines so far to the disk; returns how many bytes they have. */
kith_status ki_record_sync(ki_record *record, int64_t *ret_bytes, kith_error *err);

#endif
