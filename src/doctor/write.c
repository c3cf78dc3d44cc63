/* kith_findings_write: the data set without what should be left out, as a manifest that can be opened. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/atomic.h"
#include "base/path.h"
#include "doctor/doctor.h"

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static kith_status are_names_different(const kith_dataset *set, bool *ret, kith_error *err) {
    const char **names = NULL;
    KI_TRY(ki_alloc_or(&names, set->n_classes, sizeof *names, "class names", err));
    for (size_t c = 0; c < set->n_classes; c++) names[c] = set->class_[c].name;
    qsort(names, set->n_classes, sizeof *names, by_name);
    *ret = true;
    for (size_t c = 1; c < set->n_classes; c++) *ret = *ret && strcmp(names[c - 1], names[c]) != 0;
    ki_free(names);
    return KITH_OK;
}

/* Absolute, without "." and double slashes, so that beginnings can be compared. Links stay what they are: a photo behind one is
 * still named by the folder that it was found in. */
static kith_status absolute(const char *path, ki_path *ret, kith_error *err) {
    char here[2048] = "";
    if (path[0] != '/' && !getcwd(here, sizeof here))
        return ki_fail(err, KITH_EIO, "the current folder has no name; wanted absolute paths");
    ki_path whole;
    KI_TRY(ki_path_print(&whole, err, "%s/%s", here, path));
    size_t n = 0;
    for (const char *at = whole.s; *at;) {
        at += strspn(at, "/");
        const size_t length = strcspn(at, "/");
        if (length > 0 && !(length == 1 && at[0] == '.')) {
            ret->s[n++] = '/';
            memcpy(ret->s + n, at, length);
            n += length;
        }
        at += length;
    }
    ret->s[n] = '\0';
    return KITH_OK;
}

static kith_status put_item(const ki_item *item, const kith_dataset *set, const char *folder,
                            const ki_list_rows *m, ki_buffer *out, kith_error *err) {
    ki_path path;
    KI_TRY(absolute(item->path, &path, err));
    const size_t n = strlen(folder);
    const bool is_below = strncmp(path.s, folder, n) == 0 && path.s[n] == '/';
    ki_list_rows_row(m, set, item, is_below ? path.s + n + 1 : path.s, (kith_split)item->split, out);
    return out->status;
}

static kith_status check(const kith_findings *f, const kith_dataset *set, ki_list_rows *ret,
                         kith_error *err) {
    if (f->n_items != (int64_t)set->n_items)
        return ki_fail(err, KITH_EINVAL, "the findings are of %lld items; the data set has %lld",
                       (long long)f->n_items, (long long)set->n_items);
    for (size_t i = 0; i < set->n_items; i++) {
        const ki_item *item = &set->item[i];
        if (set->rows || item->pixels >= 0)
            return ki_fail(err, KITH_EUNSUPPORTED,
                           "%s is no file of its own; a manifest lists files of images", item->path);
        if (item->label < 0 || !ki_dataset_is_class(set, item->label))
            return ki_fail(err, KITH_EUNSUPPORTED, "%s has no class; a manifest lists classes", item->path);
    }
    if (f->n_out == f->n_items)
        return ki_fail(err, KITH_EINVAL, "all %lld images would be left out: nothing is left to write",
                       (long long)f->n_items);
    *ret = ki_list_rows_of(set);
    return are_names_different(set, &ret->names, err);
}

/* The folder of the manifest, absolute. */
static kith_status folder_of(const char *path, ki_path *ret, kith_error *err) {
    KI_TRY(absolute(path, ret, err));
    char *slash = strrchr(ret->s, '/');
    if (slash) *slash = '\0';
    return KITH_OK;
}

kith_status kith_findings_write(const kith_findings *findings, const kith_dataset *dataset, const char *path,
                                kith_error *err) {
    KI_NEED(err, findings, dataset, path);
    kith_status status;
    ki_list_rows m = {0};
    ki_path folder;
    ki_buffer text = {.err = err};
    KI_CHECK(check(findings, dataset, &m, err));
    KI_CHECK(folder_of(path, &folder, err));
    ki_list_rows_head(&m, &text);
    for (int64_t i = 0; i < findings->n_items; i++) {
        if (findings->why_out[i] < 0)
            KI_CHECK(put_item(&dataset->item[i], dataset, folder.s, &m, &text, err));
    }
    KI_CHECK(text.status);
    status = ki_file_write(path, text.data, text.n, err);
done:
    ki_buffer_release(&text);
    return status;
}
