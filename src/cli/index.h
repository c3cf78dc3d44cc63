/* What the parts of `kith index` share. */
#ifndef CLI_INDEX_H
#define CLI_INDEX_H

#include "cli/cli.h"
#include "kith/collection.h"
#include "kith/data.h"
#include "kith/model.h"

/* What the command was told. */
typedef struct index_request {
    const char *index;           /* its folder or address, there already or to be made */
    const char *const *operands; /* the others: what to index, sync or add */
    int64_t n_operands;
    kith_model_options model;
    /* for a new one */
    const char *kind; /* of a data set */
    bool has_split;
    kith_split split; /* all unless told otherwise */
    const char *labels, *meta;
    kith_metric metric;
    double recall;
    int64_t first; /* values that candidates are found by; 0: all */
    /* for one that is there */
    cli_list remove;
    const char *calibrate; /* a data set */
    bool force, json;
    bool exif, no_exif;
    const char *facets, *where; /* columns, and of which items */
    int64_t most;               /* values of a column */
    double error;               /* --groups: of the pairs put together so many may be wrong */
    bool groups_all;            /* also what has a label */
    const char *html;
} index_request;

/* ---- what is done ---- */

kith_status index_make(const index_request *request, kith_error *err);
/* --to: make it at the server, or bring up to date the one that is there. */
kith_status index_put(const index_request *request, kith_error *err);
kith_status index_sync(const index_request *request, kith_error *err);
kith_status index_add(const index_request *request, kith_error *err);
/* --renew-model: embed all of it anew. */
kith_status index_renew(const index_request *request, kith_error *err);
kith_status index_remove(const index_request *request, kith_error *err);
kith_status index_show(const index_request *request, kith_error *err);
kith_status index_facets(const index_request *request, kith_error *err);
kith_status index_compact(const index_request *request, kith_error *err);
kith_status index_check(const index_request *request, kith_error *err);
kith_status index_calibrate(const index_request *request, kith_error *err);
/* --groups (index_groups.c) */
kith_status index_groups(const index_request *request, kith_error *err);

/* Open the index that is there, with what was said of its model. */
kith_status index_open(const index_request *request, kith_index_mode mode, kith_collection **ret_collection,
                       kith_error *err);
/* What was said of values: --exif, --no-exif, --meta. */
void index_take_facts(const index_request *request, kith_sync_options *options);
/* After a sync or an addition: say what was done, or add to the error what to do about its reason. */
kith_status index_finish(const index_request *request, kith_collection *collection, kith_status status,
                         const kith_sync_report *report, kith_error *err);

/* ---- what is said (index_print.c) ---- */

/* What an index is, on one line or as JSON. `report` (may be NULL) tells what a command did to its items. */
kith_status index_print(const index_request *request, kith_collection *collection,
                        const kith_sync_report *report, kith_error *err);
/* One line when false-match rates were not measured, and one when what is new was not grouped. */
void index_print_measured(const kith_sync_report *report);

/* A kith_progress_fn that stops at a signal; user is the cli_progress. */
int index_show_progress(void *user, int64_t n_done, int64_t n_all);

#endif
