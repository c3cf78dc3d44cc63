/* Changing an index that is there: --sync, --add, --remove, --calibrate, --compact, and --check. */
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/images.h"
#include "cli/index.h"

/* Opened for writing, with the embedder that made it. */
typedef struct opened {
    kith_index *index;
    kith_embedder *embedder;
    kith_dataset *set;
    index_source source;
} opened;

static void opened_release(opened *o) {
    kith_dataset_free(o->set);
    kith_embedder_free(o->embedder);
    kith_index_free(o->index);
    index_source_release(&o->source);
}

/* A model that lies elsewhere now is found there from now on. */
static kith_status note_model(const index_request *r, kith_index *index, kith_error *err) {
    char *whole = r->embedder.model ? realpath(r->embedder.model, NULL) : NULL;
    const char *noted = kith_index_note(index, "model");
    const bool is_new = whole && noted && strcmp(whole, noted) != 0;
    const kith_status status = is_new ? kith_index_note_set(index, "model", whole, err) : KITH_OK;
    free(whole);
    return status;
}

static kith_status open_both(const index_request *r, opened *o, kith_error *err) {
    kith_status status = kith_index_open(r->index, KITH_INDEX_WRITE, &o->index, err);
    if (status == KITH_OK) status = kith_embedder_open_index(o->index, &r->embedder, &o->embedder, err);
    return status == KITH_OK ? note_model(r, o->index, err) : status;
}

static kith_status bring_up_to_date(const index_request *r, opened *o, kith_sync_options *options,
                                    kith_error *err) {
    cli_progress progress;
    kith_sync_report report = {0};
    kith_error why = {0};
    options->progress = index_show_progress;
    options->user = &progress;
    cli_progress_begin(&progress, "embedding", 0);
    kith_status status = kith_index_sync(o->index, o->embedder, o->set, options, &report, err);
    cli_progress_end(&progress);
    if (status == KITH_OK) status = index_measure(r, &o->index, o->embedder, err);
    if (status == KITH_OK || status == KITH_ECANCELED) {
        const kith_status printed = index_print(r, o->index, &report, &why);
        if (printed != KITH_OK) *err = why, status = printed;
    }
    kith_sync_report_release(&report);
    return status;
}

kith_status index_sync(const index_request *r, kith_error *err) {
    opened o = {0};
    KITH_OPTIONS(kith_sync_options, options);
    kith_status status = open_both(r, &o, err);
    if (status == KITH_OK) status = index_source_take(r, o.index, &o.source, err);
    if (status == KITH_OK) {
        status = index_source_open(&o.source, &o.set, err);
        if (status == KITH_EIO && r->n_operands == 0)
            snprintf(err->hint, sizeof err->hint,
                     "mount the disk, or name the folders that it shall hold from now on: --sync FOLDER…");
    }
    if (status == KITH_OK && r->n_operands > 0) status = index_source_remember(&o.source, o.index, err);
    if (status == KITH_OK) {
        options.split = o.source.split;
        if (!r->force) options.most_removed = 0.5;
        status = bring_up_to_date(r, &o, &options, err);
        if (status == KITH_EINVAL && !r->force && strstr(err->message, "not in the folders"))
            snprintf(err->hint, sizeof err->hint, "mount the disk, or give --force if they shall go");
    }
    opened_release(&o);
    return status;
}

/* ---- --add ---- */

static bool is_below(const char *path, const char *folder) {
    const size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* What is named lies below a folder that the index knows, whose name decides the class; or is a source of its own. */
static kith_status find_bases(const index_source *named, index_source *known, int64_t *ret_n_first,
                              const char **bases, kith_error *err) {
    int64_t n = 0;
    *ret_n_first = 0;
    for (int64_t i = 0; i < named->n; i++) {
        const char *base = named->path[i];
        for (int64_t k = 0; k < known->n; k++) {
            if (is_below(named->path[i], known->path[k])) base = known->path[k];
        }
        bool is_there = false;
        for (int64_t k = 0; k < n; k++) is_there |= strcmp(bases[k], base) == 0;
        if (!is_there) bases[n++] = base;
        if (base == named->path[i]) {
            char **more = realloc(known->path, (size_t)(known->n + 1) * sizeof *more);
            char *copy = more ? strdup(base) : NULL;
            if (more) known->path = more;
            if (!copy) return cli_error(err, KITH_ENOMEM, NULL, "not enough memory for the sources");
            known->path[known->n++] = copy;
        }
    }
    *ret_n_first = n;
    return KITH_OK;
}

/* The items of the set that were named, or lie below a folder that was. */
static int64_t select_named(const kith_dataset *set, const index_source *named, int64_t *items) {
    int64_t n = 0;
    for (int64_t i = 0; i < kith_dataset_count(set); i++) {
        const char *path = kith_dataset_item(set, i).path;
        bool is_named = false;
        for (int64_t k = 0; k < named->n && !is_named; k++) is_named = is_below(path, named->path[k]);
        if (is_named) items[n++] = i;
    }
    return n;
}

kith_status index_add(const index_request *r, kith_error *err) {
    opened o = {0};
    index_source known = {0};
    const char **bases = NULL;
    int64_t *items = NULL, n_bases = 0;
    const index_request without = {.index = r->index};
    KITH_OPTIONS(kith_sync_options, options);
    kith_status status = open_both(r, &o, err);
    if (status == KITH_OK) status = index_source_take(r, o.index, &o.source, err);
    if (status == KITH_OK && kith_index_note(o.index, "sources"))
        status = index_source_take(&without, o.index, &known, err);
    if (status == KITH_OK && known.kind)
        status = cli_error(err, KITH_EINVAL, "change the data set, then use --sync",
                           "the index holds a data set (%s); wanted one of files and folders", known.kind);
    if (status == KITH_OK) {
        bases = calloc((size_t)o.source.n + 1, sizeof *bases);
        status = bases ? find_bases(&o.source, &known, &n_bases, bases, err)
                       : cli_error(err, KITH_ENOMEM, NULL, "not enough memory for the sources");
    }
    if (status == KITH_OK) status = kith_dataset_open_files(bases, n_bases, &o.set, err);
    if (status == KITH_OK) {
        items = calloc((size_t)kith_dataset_count(o.set) + 1, sizeof *items);
        if (!items) status = cli_error(err, KITH_ENOMEM, NULL, "not enough memory for the items");
    }
    if (status == KITH_OK) {
        options.items = items;
        options.n_items = select_named(o.set, &o.source, items);
        options.only_adds = true;
        options.with_excluded = true;
        known.split = KITH_SPLIT_ALL;
        status = index_source_remember(&known, o.index, err);
    }
    if (status == KITH_OK) status = bring_up_to_date(r, &o, &options, err);
    free(bases);
    free(items);
    index_source_release(&known);
    opened_release(&o);
    return status;
}

/* ---- --remove ---- */

/* Is the path what a shell's pattern means, or does it lie in a folder that is? */
static bool matches(const char *path, const char *pattern) {
    char below[4096];
    const size_t length = strlen(pattern);
    const char *slash = length > 0 && pattern[length - 1] == '/' ? "" : "/";
    const int n = snprintf(below, sizeof below, "%s%s*", pattern, slash);
    return fnmatch(pattern, path, 0) == 0 ||
           (n > 0 && (size_t)n < sizeof below && fnmatch(below, path, 0) == 0);
}

/* A pattern is for the whole path, or for its end behind a slash. */
static bool is_meant(const char *path, const cli_list *patterns) {
    for (int i = 0; i < patterns->n_items; i++) {
        char anywhere[4096];
        const char *pattern = patterns->item[i];
        const int n = snprintf(anywhere, sizeof anywhere, "*/%s", pattern);
        if (matches(path, pattern) || (n > 0 && (size_t)n < sizeof anywhere && matches(path, anywhere)))
            return true;
    }
    return false;
}

static kith_status select_meant(const index_request *r, const kith_index *index, int64_t *ids, int64_t *n,
                                kith_error *err) {
    int64_t n_kept = 0;
    for (int64_t i = 0; i < *n; i++) {
        kith_index_item item;
        const kith_status status = kith_index_item_get(index, ids[i], &item, err);
        if (status != KITH_OK) return status;
        if (item.path && is_meant(item.path, &r->remove)) ids[n_kept++] = ids[i];
        kith_index_item_release(&item);
    }
    *n = n_kept;
    if (n_kept > 0) return KITH_OK;
    return cli_error(err, KITH_ENOTFOUND, "quote a pattern such as 'oak/*', so that the shell leaves it",
                     "no item's path is like '%.200s'", r->remove.item[0]);
}

kith_status index_remove(const index_request *r, kith_error *err) {
    kith_index *index = NULL;
    int64_t *ids = NULL, n = 0;
    kith_status status = kith_index_open(r->index, KITH_INDEX_WRITE, &index, err);
    if (status == KITH_OK) status = kith_index_ids(index, NULL, &ids, &n, err);
    if (status == KITH_OK) status = select_meant(r, index, ids, &n, err);
    if (status == KITH_OK) status = kith_index_exclude(index, ids, n, err);
    if (status == KITH_OK) status = kith_index_commit(index, NULL, err);
    if (status == KITH_OK) {
        const kith_sync_report report = {.n_removed = n};
        status = index_print(r, index, &report, err);
    }
    kith_ids_free(ids);
    kith_index_free(index);
    return status;
}

/* ---- --calibrate ---- */

/* Classes that the model was not trained on: the test part, unless told otherwise. */
static kith_status measure(const index_request *r, opened *o, kith_calibration *ret, kith_error *err) {
    cli_progress progress;
    const char *const path[] = {r->calibrate};
    const index_request data = {.operands = path, .n_operands = 1, .kind = r->kind};
    kith_status status = index_source_take(&data, o->index, &o->source, err);
    if (status != KITH_OK) return status;
    if (!o->source.kind) o->source.kind = "auto";
    status = index_source_open(&o->source, &o->set, err);
    cli_progress_begin(&progress, "embedding", 0);
    if (status == KITH_OK)
        status = kith_embedder_calibrate(o->embedder, o->set, r->has_split ? r->split : KITH_SPLIT_TEST,
                                         o->index, index_show_progress, &progress, ret, err);
    cli_progress_end(&progress);
    return status;
}

/* Is the data that is named the index itself? Then its own labels count. */
static bool is_itself(const index_request *r) {
    struct stat data, index;
    if (strcmp(r->calibrate, r->index) == 0) return true;
    return stat(r->calibrate, &data) == 0 && stat(r->index, &index) == 0 && data.st_dev == index.st_dev &&
           data.st_ino == index.st_ino;
}

/* An index of vectors made elsewhere has no model. */
static kith_status measure_itself(const index_request *r, opened *o, kith_calibration *ret, kith_error *err) {
    kith_status status = kith_index_open(r->index, KITH_INDEX_WRITE, &o->index, err);
    if (status == KITH_OK && (r->embedder.model || kith_index_note(o->index, "model")))
        status = kith_embedder_open_index(o->index, &r->embedder, &o->embedder, err);
    return status == KITH_OK ? index_calibrate_own(o->index, o->embedder, ret, err) : status;
}

static kith_status measure_data(const index_request *r, opened *o, kith_calibration *ret, kith_error *err) {
    kith_status status = open_both(r, o, err);
    if (status == KITH_OK) status = measure(r, o, ret, err);
    return status == KITH_OK ? kith_index_commit(o->index, NULL, err) : status;
}

kith_status index_calibrate(const index_request *r, kith_error *err) {
    opened o = {0};
    kith_calibration curve = {0};
    kith_status status = is_itself(r) ? measure_itself(r, &o, &curve, err) : measure_data(r, &o, &curve, err);
    if (status == KITH_OK && r->json) status = index_print(r, o.index, NULL, err);
    if (status == KITH_OK && !r->json) {
        const double limit = kith_calibration_threshold(&curve, 0.01);
        printf(
            "%s: false-match rates from %lld pairs of the same and %lld pairs of different things, of %lld "
            "classes; ",
            r->index, (long long)curve.n_same, (long long)curve.n_different, (long long)curve.n_classes);
        if (isnan(limit))
            printf("so few tell rates from %.3g on\n", kith_calibration_least(&curve));
        else
            printf("--same 0.01 is a score of %.4f\n", limit);
    }
    opened_release(&o);
    return status;
}

/* ---- --compact and --check ---- */

kith_status index_compact(const index_request *r, kith_error *err) {
    kith_index *index = NULL;
    cli_progress progress;
    KITH_OPTIONS(kith_work_options, work);
    work.progress = index_show_progress;
    work.user = &progress;
    kith_status status = kith_index_open(r->index, KITH_INDEX_WRITE, &index, err);
    cli_progress_begin(&progress, "compacting", 0);
    if (status == KITH_OK) status = kith_index_compact(index, &work, err);
    cli_progress_end(&progress);
    if (status == KITH_OK) status = index_print(r, index, NULL, err);
    kith_index_free(index);
    return status;
}

kith_status index_check(const index_request *r, kith_error *err) {
    kith_index *index = NULL;
    int64_t n_bytes = 0;
    cli_progress progress;
    KITH_OPTIONS(kith_work_options, work);
    work.progress = index_show_progress;
    work.user = &progress;
    kith_status status = kith_index_open(r->index, KITH_INDEX_READ, &index, err);
    cli_progress_begin(&progress, "checking", 0);
    if (status == KITH_OK) status = kith_index_check(index, &work, &n_bytes, err);
    cli_progress_end(&progress);
    if (status == KITH_OK && r->json) status = index_print(r, index, NULL, err);
    if (status == KITH_OK && !r->json)
        printf("%s: %lld bytes read, all sound\n", r->index, (long long)n_bytes);
    kith_index_free(index);
    return status;
}
