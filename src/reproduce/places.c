/* Where the files of a reproduction lie, where its options do not say: named after the list, so that lists do not meet in
 * one folder. */
#include <stdio.h>
#include <string.h>

#include "base/argument.h"
#include "base/atomic.h"
#include "base/path.h"
#include "base/text.h"
#include "kith/experimental/reproduce.h"
#include "reproduce/list.h"
#include "reproduce/page.h"
#include "train/folder.h"

/* "lists/mine.yaml" is mine. Lists beside their recipes are all called tables.yaml: these go by their folder. */
static void name_list(const char *path, char *ret, size_t bytes) {
    const char *end = path + strlen(path), *begin, *slash = strrchr(path, '/');
    begin = slash ? slash + 1 : path;
    if (slash && slash > path && strcmp(begin, "tables.yaml") == 0) {
        end = slash;
        for (begin = slash; begin > path && begin[-1] != '/';) begin--;
    } else {
        const char *dot = strrchr(begin, '.');
        if (dot && dot > begin) end = dot;
    }
    const size_t n = (size_t)(end - begin);
    const bool is_name = n > 0 && *begin != '.';
    ki_snprintf(ret, bytes, "%.*s", is_name ? (int)n : 4, is_name ? begin : "list");
}

/* What was given, else the two parts together. */
static kith_status choose(char (*ret)[KITH_REPRODUCE_PATH], const char *given, const char *begin,
                          const char *end, kith_error *err) {
    const int n = given ? ki_snprintf(*ret, sizeof *ret, "%s", given)
                        : ki_snprintf(*ret, sizeof *ret, "%s%s", begin, end);
    if (n >= 0 && (size_t)n < sizeof *ret) return KITH_OK;
    return ki_fail(err, KITH_EINVAL, "a path has %d letters; wanted at most %zu", n, sizeof *ret - 1);
}

kith_status kith_reproduce_places(const kith_reproduce_options *options, kith_reproduce_paths *ret,
                                  kith_error *err) {
    char name[256];
    KI_NEED(err, ret);
    KI_OPTIONS_TAKE(kith_reproduce_options, taken, options, err);
    const kith_reproduce_options *o = &taken;
    KI_TRY(ki_reproduce_check(o, err));
    name_list(o->list, name, sizeof name);
    KI_TRY(choose(&ret->out, o->out, "results/", name, err));
    KI_TRY(choose(&ret->runs, o->runs, "runs/", name, err));
    KI_TRY(choose(&ret->page, o->page, ret->out, ".md", err));
    KI_TRY(choose(&ret->notes, o->notes, ret->out, "-notes.md", err));
    return choose(&ret->pictures, o->pictures, ret->out, "-pictures", err);
}

/* A new file at the path, begun and taken back. */
static kith_status check_file(const char *path, kith_error *err) {
    ki_atomic_file file = {0};
    const kith_status status = ki_atomic_open(&file, path, err);
    ki_atomic_discard(&file);
    return status;
}

static kith_status make_parent(const char *path, kith_error *err) {
    ki_path folder;
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path) return KITH_OK;
    KI_TRY(ki_path_print(&folder, err, "%.*s", (int)(slash - path), path));
    return ki_make_folders(folder.s, err);
}

static kith_status check_picture(const kith_reproduce_paths *at, const char *name, kith_error *err) {
    ki_path path;
    KI_TRY(ki_path_print(&path, err, "%s/%s.svg", at->pictures, name));
    return check_file(path.s, err);
}

kith_status ki_page_check(const ki_list *list, const kith_reproduce_paths *at, kith_error *err) {
    ki_notes notes = {0};
    KI_TRY(ki_notes_read(at->notes, list, &notes, err));
    ki_notes_release(&notes);
    KI_TRY(make_parent(at->page, err));
    KI_TRY(check_file(at->page, err));
    const bool has_overview = *list->summary.name || *list->gains.name;
    if (list->n_curves > 0 || has_overview) KI_TRY(ki_make_folders(at->pictures, err));
    for (size_t i = 0; i < list->n_curves; i++) KI_TRY(check_picture(at, list->curve[i].name, err));
    if (*list->summary.name) KI_TRY(check_picture(at, list->summary.name, err));
    return *list->gains.name ? check_picture(at, list->gains.name, err) : KITH_OK;
}
