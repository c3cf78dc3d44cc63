/* What the parts of `kith index` share. */
#ifndef CLI_INDEX_H
#define CLI_INDEX_H

#include "cli/cli.h"
#include "kith/data.h"
#include "kith/embedder.h"
#include "kith/index.h"
#include "kith/sync.h"

/* What the command was told. */
typedef struct index_request {
    const char *index;           /* its folder or address, there already or to be made */
    const char *const *operands; /* the others: what to index, sync or add */
    int64_t n_operands;
    kith_embedder_options embedder;
    /* for a new one */
    const char *kind; /* of a data set */
    bool has_split;
    kith_split split; /* all unless told otherwise */
    const char *labels, *meta;
    kith_metric metric;
    double recall;
    /* for one that is there */
    cli_list remove;
    const char *calibrate; /* a data set */
    bool force, json;
} index_request;

/* ---- images of an index (index_source.c) ---- */

/* Where the images of an index come from, as the index remembers it. Owned; index_source_release. */
typedef struct index_source {
    char **path; /* absolute, but for a recipe of a data set */
    int64_t n;
    const char *kind; /* of a data set; NULL: files and folders */
    kith_split split;
} index_source;

/* The operands, or, without any, what the index remembers. */
kith_status index_source_take(const index_request *request, const kith_index *index, index_source *ret,
                              kith_error *err);
kith_status index_source_remember(const index_source *source, kith_index *index, kith_error *err);
kith_status index_source_open(const index_source *source, kith_dataset **ret_dataset, kith_error *err);
void index_source_release(index_source *source);

/* ---- what is done ---- */

kith_status index_make(const index_request *request, kith_error *err);
/* --to: make it at the server, or bring up to date the one that is there. */
kith_status index_put(const index_request *request, kith_error *err);
kith_status index_sync(const index_request *request, kith_error *err);
kith_status index_add(const index_request *request, kith_error *err);
kith_status index_remove(const index_request *request, kith_error *err);
kith_status index_show(const index_request *request, kith_error *err);
kith_status index_compact(const index_request *request, kith_error *err);
kith_status index_check(const index_request *request, kith_error *err);
kith_status index_calibrate(const index_request *request, kith_error *err);

/* False-match rates from the index's own labels, beside the model's curve (embedder may be NULL), committed. KITH_ENOTFOUND: too few
 * labels. (index_own.c) */
kith_status index_calibrate_own(kith_index *index, const kith_embedder *embedder, kith_calibration *ret_curve,
                                kith_error *err);
/* After a commit that changed items: the same, where it is due. Not when the user measured them on other data, or a tenth of the items
 * has not changed since the last time; with too few labels a curve of earlier ones is taken away. A failure is said and is none:
 * the index is complete without. Then *index is opened anew, for reading. */
kith_status index_measure(const index_request *request, kith_index **index, const kith_embedder *embedder,
                          kith_error *err);

/* ---- what is said (index_print.c) ---- */

/* What an index is, on one line or as JSON. `report` (may be NULL) tells what a command did to its items. */
kith_status index_print(const index_request *request, const kith_index *index, const kith_sync_report *report,
                        kith_error *err);

/* A kith_progress_fn that stops at a signal; user is the cli_progress. */
int index_show_progress(void *user, int64_t n_done, int64_t n_all);

#endif
