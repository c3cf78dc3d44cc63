/* The page of a reproduction, in parts. */
#ifndef KI_REPRODUCE_PAGE_H
#define KI_REPRODUCE_PAGE_H

#include "base/buffer.h"
#include "kith/experimental/reproduce.h"
#include "reproduce/list.h"
#include "reproduce/outcome.h"
#include "reproduce/sample.h"

/* Hand-written text that goes into the page, block by block: what stands behind a line `<!-- NAME -->` up to the
 * next such line. Blocks: top, the tables' names, gains, orders, curves, end. */
typedef struct ki_notes {
    ki_arena arena;
    const char **name, **text;
    size_t n;
} ki_notes;

/* A file that is not there has no blocks. KITH_EFORMAT for text before the first block, a block given twice, and one
 * that has no place. */
kith_status ki_notes_read(const char *path, const ki_list *list, ki_notes *ret_notes, kith_error *err);
void ki_notes_release(ki_notes *notes); /* fine on a zeroed struct */
void ki_notes_put(const ki_notes *notes, const char *name, ki_buffer *to);

/* What can go wrong with a page after hours of runs, found before the first: notes that do not fit the list, a page or a
 * drawing that cannot be written. Makes the folders they lie in. */
kith_status ki_page_check(const ki_list *list, const kith_reproduce_paths *at, kith_error *err);

/* A drawing as a file, readable on light and dark pages: text in classes "b" (bold) and "q" (quiet), grid lines in "g". */
void ki_drawing_open(ki_buffer *to, int w, int h, const char *title);
enum { KI_DRAWING_COLOURS = 6 };
extern const char *const ki_drawing_colour[KI_DRAWING_COLOURS];

/* A row beside its baseline. */
typedef struct ki_gain {
    const ki_list_row *row, *baseline;
    ki_sample with, without;          /* R@1 */
    double gain, half;                /* half of its 95 % interval, or NaN */
    double paper_with, paper_without; /* R@1 in percent by one source that has both, or NaN */
} ki_gain;

/* false: one of the two has no result, or they are of different data. */
bool ki_gain_of(const ki_list *list, const ki_outcomes *all, const ki_noise *noise, const char *row,
                ki_gain *ret_gain);

/* What the page begins with: the methods of the list's summary that have results, as an SVG file (false: none has) and as a
 * table. */
bool ki_summary_draw(const ki_list *list, const ki_outcomes *all, const ki_noise *noise, ki_buffer *to);
void ki_summary_put(const ki_list *list, const ki_outcomes *all, const ki_noise *noise, ki_buffer *to);

/* Gains over how much the baseline overfits: R@1 of seen less that of unseen classes, after the last step. The same two
 * forms. */
bool ki_gains_draw(const ki_list *list, const ki_outcomes *all, const ki_noise *noise, ki_buffer *to);
void ki_gains_put(const ki_list *list, const ki_outcomes *all, const ki_noise *noise, ki_buffer *to);

/* A drawing of R@1 over the steps, a line for each row (the mean over its seeds), as an SVG file: a panel each for seen,
 * validation and test classes, where some row was scored on them. false: none of the rows has curves. *ret_has_seen: there
 * is a panel of seen classes. */
bool ki_curves_draw(const ki_list *list, const ki_outcomes *all, const ki_list_curve *curve, ki_buffer *to,
                    bool *ret_has_seen);

#endif
