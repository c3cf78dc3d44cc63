/* Changing an index that is there: --sync, --add, --remove, --calibrate, --compact, and --check. */
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/images.h"
#include "cli/index.h"

kith_status index_open(const index_request *r, kith_index_mode mode, kith_collection **ret_collection,
                       kith_error *err) {
    KITH_OPTIONS(kith_collection_open_options, options);
    options.mode = mode;
    options.model = &r->model;
    return kith_collection_open(r->index, &options, ret_collection, err);
}

void index_take_facts(const index_request *r, kith_sync_options *options) {
    options->exif = r->exif ? KITH_EXIF_ALL : r->no_exif ? KITH_EXIF_NONE : KITH_EXIF_AS_BEFORE;
    options->meta = r->meta;
}

kith_status index_finish(const index_request *r, kith_collection *collection, kith_status status,
                         const kith_sync_report *report, kith_error *err) {
    kith_error why = {0};
    if (report->reason == KITH_SYNC_SOURCE_MISSING)
        snprintf(err->hint, sizeof err->hint,
                 "mount the disk, or name the folders that it shall hold from now on: --sync FOLDER…");
    if (report->reason == KITH_SYNC_MOST_REMOVED)
        snprintf(err->hint, sizeof err->hint, "mount the disk, or give --force if they shall go");
    if (status != KITH_OK && status != KITH_ECANCELED) return status;
    for (int64_t i = 0; i < report->n_said; i++) fprintf(stderr, "kith: %s\n", report->said[i]);
    index_print_measured(report);
    const kith_status printed = index_print(r, collection, report, &why);
    if (printed != KITH_OK) *err = why;
    return printed != KITH_OK ? printed : status;
}

/* ---- --sync and --add ---- */

static kith_status bring_up_to_date(const index_request *r, bool adds, kith_error *err) {
    kith_collection *collection = NULL;
    cli_progress progress;
    kith_sync_report report = {0};
    const kith_sources sources = {r->operands, r->n_operands, r->kind, r->split};
    KITH_OPTIONS(kith_sync_options, options);
    if (!adds && !r->force) options.most_removed = 0.5;
    options.progress = index_show_progress;
    options.user = &progress;
    index_take_facts(r, &options);
    kith_status status = index_open(r, KITH_INDEX_WRITE, &collection, err);
    if (status != KITH_OK) return status;
    cli_progress_begin(&progress, "embedding", 0);
    status =
        adds ? kith_collection_add(collection, r->operands, r->n_operands, &options, &report, err)
             : kith_collection_sync(collection, r->n_operands > 0 ? &sources : NULL, &options, &report, err);
    cli_progress_end(&progress);
    status = index_finish(r, collection, status, &report, err);
    kith_sync_report_release(&report);
    kith_collection_free(collection);
    return status;
}

kith_status index_sync(const index_request *r, kith_error *err) { return bring_up_to_date(r, false, err); }
kith_status index_add(const index_request *r, kith_error *err) { return bring_up_to_date(r, true, err); }

/* ---- --renew-model ---- */

kith_status index_renew(const index_request *r, kith_error *err) {
    kith_collection *collection = NULL;
    kith_model *model = NULL;
    cli_progress progress;
    kith_sync_report report = {0};
    KITH_OPTIONS(kith_sync_options, options);
    options.progress = index_show_progress;
    options.user = &progress;
    cli_progress_begin(&progress, "embedding", 0);
    kith_status status = kith_collection_renew(r->index, &r->model, &options, &report, err);
    cli_progress_end(&progress);
    if (status == KITH_OK) status = index_open(r, KITH_INDEX_READ, &collection, err);
    if (status == KITH_OK) {
        index_print_measured(&report);
        if (kith_collection_model(collection, &model, NULL) == KITH_OK)
            cli_say_model(r->model.weights, model);
        status = index_print(r, collection, &report, err);
    }
    kith_sync_report_release(&report);
    kith_collection_free(collection);
    return status;
}

/* ---- --remove ---- */

kith_status index_remove(const index_request *r, kith_error *err) {
    kith_collection *collection = NULL;
    kith_sync_report report = {0};
    kith_status status = index_open(r, KITH_INDEX_WRITE, &collection, err);
    if (status == KITH_OK)
        status =
            kith_collection_remove(collection, r->remove.item, r->remove.n_items, &report.n_removed, err);
    if (status == KITH_ENOTFOUND)
        snprintf(err->hint, sizeof err->hint, "quote a pattern such as 'oak/*', so that the shell leaves it");
    if (status == KITH_OK) status = index_print(r, collection, &report, err);
    kith_collection_free(collection);
    return status;
}

/* ---- --calibrate ---- */

/* Is the data that is named the index itself? Then its own labels count. */
static bool is_itself(const index_request *r) {
    struct stat data, index;
    if (strcmp(r->calibrate, r->index) == 0) return true;
    return stat(r->calibrate, &data) == 0 && stat(r->index, &index) == 0 && data.st_dev == index.st_dev &&
           data.st_ino == index.st_ino;
}

static void print_curve(const index_request *r, const kith_calibration *curve) {
    const double limit = kith_calibration_threshold(curve, 0.01);
    printf(
        "%s: false-match rates from %lld pairs of the same and %lld pairs of different things, of %lld "
        "classes; ",
        r->index, (long long)curve->n_same, (long long)curve->n_different, (long long)curve->n_classes);
    if (isnan(limit))
        printf("so few tell rates from %.3g on\n", kith_calibration_least(curve));
    else
        printf("--same 0.01 is a score of %.4f\n", limit);
}

/* Classes that the model was not trained on: the test part, unless told otherwise. */
kith_status index_calibrate(const index_request *r, kith_error *err) {
    kith_collection *collection = NULL;
    cli_progress progress;
    kith_calibration curve = {0};
    const kith_sources data = {&r->calibrate, 1, r->kind, r->has_split ? r->split : KITH_SPLIT_TEST};
    kith_status status = index_open(r, KITH_INDEX_WRITE, &collection, err);
    if (status != KITH_OK) return status;
    cli_progress_begin(&progress, "embedding", 0);
    status = kith_collection_calibrate(collection, is_itself(r) ? NULL : &data, index_show_progress,
                                       &progress, &curve, err);
    cli_progress_end(&progress);
    if (status == KITH_OK && r->json)
        status = index_print(r, collection, NULL, err);
    else if (status == KITH_OK)
        print_curve(r, &curve);
    kith_collection_free(collection);
    return status;
}

/* ---- --compact and --check ---- */

kith_status index_compact(const index_request *r, kith_error *err) {
    kith_collection *collection = NULL;
    cli_progress progress;
    KITH_OPTIONS(kith_work_options, work);
    work.progress = index_show_progress;
    work.user = &progress;
    kith_status status = index_open(r, KITH_INDEX_WRITE, &collection, err);
    cli_progress_begin(&progress, "compacting", 0);
    if (status == KITH_OK) status = kith_index_compact(kith_collection_index(collection), &work, err);
    cli_progress_end(&progress);
    if (status == KITH_OK) status = index_print(r, collection, NULL, err);
    kith_collection_free(collection);
    return status;
}

kith_status index_check(const index_request *r, kith_error *err) {
    kith_collection *collection = NULL;
    int64_t n_bytes = 0;
    cli_progress progress;
    KITH_OPTIONS(kith_work_options, work);
    work.progress = index_show_progress;
    work.user = &progress;
    kith_status status = index_open(r, KITH_INDEX_READ, &collection, err);
    cli_progress_begin(&progress, "checking", 0);
    if (status == KITH_OK) status = kith_collection_check(collection, &work, &n_bytes, err);
    cli_progress_end(&progress);
    if (status == KITH_OK && r->json) status = index_print(r, collection, NULL, err);
    if (status == KITH_OK && !r->json)
        printf("%s: %lld bytes read, all sound\n", r->index, (long long)n_bytes);
    kith_collection_free(collection);
    return status;
}
