/* Curves from a run's log: one JSON object a line, every number in it a point of a curve.
 *
 * A curve is named after the place of its numbers: "step/total", "step/terms/binomial", "eval/seen/recall/1"
 * (kind, the split for evaluations, then keys). When the step goes back, as after a resume, everything logged
 * from that step on is dropped: the later line is the one that led to the model. */
#ifndef KI_SERIES_H
#define KI_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

enum { KI_MOST_SERIES = 256, KI_MOST_REMARKS = 50 };

typedef struct ki_point {
    double step, value; /* finite both */
} ki_point;

typedef struct ki_series {
    const char *name;
    ki_point *point;
    size_t n, capacity;
    int64_t n_not_finite; /* values that were null: NaN or infinite when they were logged */
} ki_series;

/* A line of kind "warning" or "note". */
typedef struct ki_remark {
    double step; /* -1: none */
    bool is_warning;
    const char *text;
} ki_remark;

typedef struct ki_log_file {
    ki_arena arena; /* names and texts */
    ki_series *series;
    size_t n_series, series_capacity;
    ki_remark remark[KI_MOST_REMARKS];
    int n_remarks;
    int64_t n_remarks_left; /* beyond those kept */
    int64_t n_lines, n_bad; /* all lines, and lines that are not an object with a kind */
    int64_t first_bad;      /* line number */
    int64_t n_left_out;     /* curves beyond KI_MOST_SERIES, counted per point */
    double last_step, seconds;
} ki_log_file;

/* A bad line is counted and skipped (the last line of a run that was killed is often incomplete). Errors are
 * a file that cannot be read and a lack of memory. */
kith_status ki_log_read(const char *path, ki_log_file *ret_log, kith_error *err);
kith_status ki_log_parse(const char *text, size_t n, ki_log_file *ret_log, kith_error *err);
void ki_log_release(ki_log_file *log); /* fine on a zeroed struct */

/* The curve of that name, or NULL; and those whose names begin with `prefix`, from *at on (start with
 * 0), in order of appearance. A curve always has a point. */
const ki_series *ki_log_series(const ki_log_file *log, const char *name);
const ki_series *ki_log_next(const ki_log_file *log, const char *prefix, size_t *at);

#endif
