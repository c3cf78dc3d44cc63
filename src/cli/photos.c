/* Opening photos, and waiting for their index. */
#include "cli/photos.h"

#include <string.h>

#include "cli/images.h"

kith_status cli_photos_open(const char *folder, const char *cache, const kith_model_options *model,
                            kith_photos **ret_photos, kith_error *err) {
    KITH_OPTIONS(kith_photos_options, options);
    options.cache = cache;
    options.model = model;
    const kith_status status = kith_photos_open(folder, &options, ret_photos, err);
    if (status == KITH_OK) cli_say_model(model->weights, kith_photos_model(*ret_photos));
    return status;
}

static int64_t count_ready(const kith_photos *photos) {
    kith_index *index = NULL;
    kith_index_info info = {0};
    if (kith_index_open(kith_photos_index(photos), KITH_INDEX_READ, &index, NULL) == KITH_OK)
        kith_index_info_get(index, &info);
    kith_index_free(index);
    return info.n_items;
}

bool cli_photos_are_new(const kith_photos *photos) { return count_ready(photos) == 0; }

static int show(void *user, const kith_photos_progress *p) {
    cli_show_progress(user, p->n_done, p->n_photos);
    return cli_stop_signal() != 0;
}

kith_status cli_photos_sync(kith_photos *photos, kith_error *err) {
    cli_progress progress;
    kith_sync_report report = {0};
    KITH_OPTIONS(kith_photos_sync_options, options);
    options.progress = show;
    options.user = &progress;
    cli_progress_begin(&progress, "indexing", 0);
    kith_status status = kith_photos_sync(photos, &options, &report, err);
    cli_progress_end(&progress);
    const bool has_none = status == KITH_OK && report.n_bad == report.n_files;
    if ((status == KITH_OK && !has_none) || status == KITH_ECANCELED)
        cli_report_bad(report.n_bad, report.n_named > 0 ? report.bad[0] : "");
    if (status == KITH_OK && report.n_files == 0)
        status = cli_error(err, KITH_ENOTFOUND, NULL, "%.300s holds no photos", kith_photos_folder(photos));
    else if (has_none)
        status = cli_error(
            err, KITH_EFORMAT, NULL, "no photo of %lld in %.160s can be read; the first: %.200s",
            (long long)report.n_files, kith_photos_folder(photos), report.n_named > 0 ? report.bad[0] : "");
    if (report.reason == KITH_SYNC_BUSY) {
        const int64_t n = count_ready(photos);
        fprintf(stderr, "kith: another process is indexing these photos; searching the %lld that %s ready\n",
                (long long)n, n == 1 ? "is" : "are");
        status = KITH_OK;
    }
    kith_sync_report_release(&report);
    return status;
}

/* The index is CACHE/photos/NAME/index, and NAME has no sign that a shell minds. */
int cli_photos_fail(const kith_photos *photos, const char *cache, kith_error *err) {
    const char *index = photos ? kith_photos_index(photos) : NULL;
    char name[80], quoted[128] = "";
    if (!index || (err->status != KITH_EFORMAT && err->status != KITH_EUNSUPPORTED) ||
        !strstr(err->message, index))
        return cli_fail(err);
    const char *slash = strrchr(index, '/'), *at = slash;
    while (at > index && at[-1] != '/') at--;
    if (cache && cli_quote(cache, quoted, sizeof quoted) >= sizeof quoted)
        snprintf(quoted, sizeof quoted, "DIR");
    snprintf(name, sizeof name, "%.*s", (int)(slash - at), at);
    snprintf(err->hint, sizeof err->hint, "remove it, and it is made anew: kith cache %s%s%s--remove %s",
             cache ? "--cache " : "", quoted, cache ? " " : "", name);
    return cli_fail(err);
}
