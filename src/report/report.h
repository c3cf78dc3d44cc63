/* The page: its sections in order, each a file of this folder. */
#ifndef KI_REPORT_H
#define KI_REPORT_H

#include "base/buffer.h"
#include "kith/report.h"
#include "report/material.h"

typedef struct ki_report {
    const kith_report_options *options;
    ki_material run;           /* the folder asked for */
    ki_material first;         /* its first sub-run, when it has any */
    const ki_material *detail; /* whose curves and pictures are shown: one of the two */
    const ki_value *tuning;    /* tune.json, of kith train PHOTOS; NULL: the run is of a recipe */
    double chosen_step;        /* of the detail's result; negative: none */
    char why_unread[200];      /* the first picture that could not be read, and why; "": none */
    ki_buffer *to;
    kith_error *err;
} ki_report;

/* The whole page into the buffer. Numbers are written with a point whatever the thread's locale. ret_why (may be NULL):
 * why the first picture that is missing could not be read; "" when none is. */
kith_status ki_report_make(const char *run, const kith_report_options *options, ki_buffer *to,
                           char ret_why[200], kith_error *err);

/* ---- sections; they fail only for lack of memory or inside a library ---- */

kith_status ki_report_card(ki_report *report);
kith_status ki_report_photos(ki_report *report);
kith_status ki_report_sub_runs(ki_report *report);
kith_status ki_report_seen(ki_report *report);
kith_status ki_report_curves(ki_report *report);
kith_status ki_report_grid(ki_report *report);
kith_status ki_report_map(ki_report *report);
kith_status ki_report_pairs(ki_report *report);
kith_status ki_report_recipe(ki_report *report);

/* ---- what sections share ---- */

/* The opening of a section: its title and a sentence or two (plain text; NULL: none). */
void ki_report_section(ki_report *report, const char *id, const char *title, const char *about);
void ki_report_section_end(ki_report *report);
/* A line that says why something is not shown; also a warning to the log. `text` is plain. */
void ki_report_left_out(ki_report *report, const char *text);
/* The same where nothing is wrong: no warning. */
void ki_report_not_there(ki_report *report, const char *text);
/* The same for a part of the folder with a note; nothing without one. A part that is merely absent gives no
 * warning. */
void ki_report_part(ki_report *report, const ki_material *material, ki_material_part part);

/* Metrics by their place in a result ("recall.1") and as people write them ("R@1"); the order they are
 * shown in. NULL past the end. */
typedef struct ki_metric_name {
    const char *key, *name;
} ki_metric_name;
const ki_metric_name *ki_metric_at(size_t i);

/* A metric in a map of metrics: a plain number, or {"mean": …, "low": …, "high": …}. The interval, when
 * there is one, is there or in `intervals` (may be NULL) as [low, high]; else both are NaN. */
typedef struct ki_estimate {
    double value, low, high;
} ki_estimate;
bool ki_estimate_of(const ki_value *metrics, const ki_value *intervals, const char *key, ki_estimate *ret);
/* "63.2" and " (62.0 to 64.4)". */
void ki_estimate_put(ki_buffer *to, const ki_estimate *estimate);

/* The maps of a result, or NULL. */
const ki_value *ki_result_test(const ki_value *result);
const ki_value *ki_result_untrained(const ki_value *result);
const ki_value *ki_result_seen(const ki_value *result);
const ki_value *ki_result_intervals(const ki_value *result);

/* The head of a page up to its title, and from the title into its style sheet, to which more may be added. */
void ki_page_begin(ki_buffer *to);
void ki_page_style(ki_buffer *to);

/* Lines, NULL-ended. */
extern const char *const ki_report_style[], *const ki_report_script[];

/* model_card.c: MODEL.md from a card, tune.json of a run that kith train PHOTOS made (NULL: another), and the recipe's text
 * (NULL: none). */
kith_status ki_model_card_make(const kith_card *card, const kith_card *tune, const char *recipe,
                               ki_buffer *to, kith_error *err);

#endif
