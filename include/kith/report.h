/* The report of a training run: one HTML file that holds everything it shows.
 *
 * Curves of every term, R@1 on seen against unseen classes, nearest neighbours of some test images, a map of
 * the test embeddings, histograms of pairs, the result card and the recipe, read from what training left in
 * the run folder. It loads nothing from anywhere else and needs no JavaScript (which only shows values under
 * the pointer). The same folder gives the same bytes. */
#ifndef KITH_REPORT_H
#define KITH_REPORT_H

#include <stddef.h>
#include <stdint.h>

#include "kith/explain.h"
#include "kith/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kith_report_options {
    size_t size;         /* of the struct: set by kith_report_options_init */
    const char *out;     /* the file to write; NULL: report.html in the run folder */
    int64_t n_queries;   /* test images shown with their neighbours: 12, at most 100 */
    int64_t n_neighbors; /* of each: 8, at most 32 */
    int64_t n_points;    /* test images on the map: 1500, at most 5000; 0: no map */
} kith_report_options;

/* The numbers above. */
KITH_API void kith_report_options_init(kith_report_options *options, size_t size);

/* Write the report of the run in folder `run`; options NULL: the defaults. A part of the run that is absent or cannot
 * be read is left out, with a line in the report and the log (a warning when it is damaged): a run that was
 * interrupted, or is still running, has a report too. KITH_EIO when the folder does not exist or the file cannot be
 * written; KITH_EFORMAT when the folder contains no part of a run. After a failure the file is as it was before.
 * KITH_EIO also when images cannot be read and the existing page has more pictures: that page is kept. */
KITH_API kith_status kith_report_write(const char *run, const kith_report_options *options, kith_error *err);

/* Write a description of the model of the run in folder `run`, in Markdown, as `out` (NULL: MODEL.md in the run folder): what
 * it is, what it learned from, how it scored, what errors to expect, how to use it and what it is not for. It is made from
 * result.json and recipe.yaml alone. What users named is escaped. KITH_EIO: there is no result yet, or the
 * file cannot be written; after a failure it is as it was before. */
KITH_API kith_status kith_model_card_write(const char *run, const char *out, kith_error *err);

typedef struct kith_views_options {
    size_t size;             /* of the struct: set by kith_views_options_init */
    const char *const *sets; /* "data.root=photos": overrides of the recipe's keys, in order */
    int64_t n_sets;
    int64_t n_images; /* training photos shown, evenly spaced: 6, at most 100 */
    int64_t n_draws;  /* random views of each: 9, at most 100 */
} kith_views_options;

/* The numbers above, and no overrides. */
KITH_API void kith_views_options_init(kith_views_options *options, size_t size);

/* Write an HTML page of what a recipe shows the network: some training photos, each as it is, as tests see it and as
 * training draws it. If a photo cannot be read, its place shows its name. If `out` ends in .png or .jpg, it is one small
 * picture instead, with a row for each photo. After a failure the file is as it was before. */
KITH_API kith_status kith_views_write(const char *recipe, const char *out, const kith_views_options *options,
                                      kith_error *err);

/* ---- what a search found ---- */

/* A picture with what is known of it. Strings are borrowed for the call. */
typedef struct kith_page_hit {
    const char *image;              /* the file; NULL: no picture */
    const char *path;               /* as it is written below the picture; NULL: nothing */
    const char *label, *note;       /* NULL: none */
    int64_t id;                     /* -1: none */
    double score, false_match_rate; /* NaN: none */
    double error_rate;              /* the chance that it is wrong; 0 or NaN: not known */
    const kith_explanation
        *why; /* of the part's images and this one, in their order: drawn as heat maps; NULL: none */
} kith_page_hit;

/* A question and its answers: of a query those that look like it, of a group its members. */
typedef struct kith_page_part {
    const char *title;
    const char *const *images; /* the query's; may be NULL */
    int64_t n_images;
    const kith_page_hit *hits;
    int64_t n_hits;
} kith_page_part;

typedef struct kith_hits_page {
    size_t size;       /* of the struct: set by kith_hits_page_init */
    const char *title; /* yours to set */
    const char *about; /* a sentence below it; NULL: none */
    const kith_page_part *parts;
    int64_t n_parts;
    int64_t most_parts; /* shown: 1000; the page says how many are not */
} kith_hits_page;

/* The numbers above, and no parts. */
KITH_API void kith_hits_page_init(kith_hits_page *page, size_t size);

/* Write an HTML page of pictures with their scores, which loads nothing from elsewhere: pictures are made small and are
 * written into it without what cameras add (EXIF). An image that cannot be read is named in its place. The file is complete
 * or as it was. */
KITH_API kith_status kith_hits_page_write(const kith_hits_page *page, const char *out, kith_error *err);

#ifdef __cplusplus
}
#endif
#endif
