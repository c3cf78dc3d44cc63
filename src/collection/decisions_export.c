/* Names for other programs: a table, sidecars beside photos, folders to train on.
 *
 * Names come from people and from folders of any file system: what cannot be the name of a folder everywhere is replaced, and two names that
 * would be one folder where case does not count get two. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/atomic.h"
#include "base/path.h"
#include "base/text.h"
#include "collection/ask.h"
#include "collection/collection.h"
#include "collection/decisions.h"
#include "data/image/image.h"
#include "io/file.h"
#include "search/notes.h"
#include "search/roots.h"

enum { MOST_FOLDER_BYTES = 120, MOST_FILE_NAME = 255, MOST_SIDECAR_BYTES = 1 << 20 };

KI_OPTIONS_INIT(kith_names_options, .form = KITH_NAMES_CSV)

/* ---- the table ---- */

static void put_field(ki_buffer *text, const char *value, bool is_last) {
    const char *v = value ? value : "";
    if (strpbrk(v, ",\"\r\n")) {
        ki_buffer_add(text, "\"", 1);
        for (const char *at = v; *at; at++) ki_buffer_add(text, *at == '"' ? "\"\"" : at, *at == '"' ? 2 : 1);
        ki_buffer_add(text, "\"", 1);
    } else {
        ki_buffer_add(text, v, strlen(v));
    }
    ki_buffer_add(text, is_last ? "\n" : ",", 1);
}

/* Ids of the items that have a name, or had one taken away: all that was decided, and all labels. */
static kith_status find_ids(const kith_index *index, int64_t **ret_ids, int64_t *ret_n, kith_error *err) {
    return kith_index_ids(index, "label != ''", ret_ids, ret_n, err);
}

kith_status ki_decisions_csv(const kith_index *index, ki_buffer *text, int64_t *ret_n, kith_error *err) {
    int64_t *ids = NULL, n = 0;
    kith_status status;
    ki_roots roots = {0};
    ki_arena arena = {0};
    KI_CHECK(find_ids(index, &ids, &n, err));
    KI_CHECK(ki_roots_init(&roots, ki_index_note(index, KI_NOTE_SOURCES), &arena, err));
    ki_buffer_put(text, "id,path,label," KI_NAMED_BY "," KI_NAMED_KIND "\n");
    for (int64_t i = 0; i < n; i++) {
        kith_index_item item;
        KI_CHECK(kith_index_item_get(index, ids[i], &item, err));
        const ki_name_state state = ki_name_state_of(index, &item);
        ki_buffer_put(text, "%lld,", (long long)ids[i]);
        put_field(text, item.path ? ki_roots_shown(&roots, item.path) : NULL, false);
        put_field(text, state.name, false);
        put_field(text, state.by, false);
        put_field(text, state.kind, true);
        kith_index_item_release(&item);
    }
    status = text->status;
    *ret_n = n;
done:
    kith_ids_free(ids);
    ki_arena_release(&arena);
    return status;
}

/* ---- one item after the other ---- */

typedef struct folder {
    const char *name, *made; /* of the folder */
    int64_t n;
} folder;

typedef struct exporting {
    const kith_collection *collection;
    const kith_names_options *o;
    kith_names_report report;
    ki_arena arena;
    ki_roots roots;
    folder *folders; /* by name */
    int64_t n_folders;
    kith_error *err;
} exporting;

typedef kith_status (*export_fn)(exporting *x, const kith_index_item *item, const char *picture);

static kith_status export_each(exporting *x, export_fn each) {
    const kith_index *index = x->collection->index;
    int64_t *ids = NULL, n = 0;
    kith_status status;
    KI_CHECK(find_ids(index, &ids, &n, x->err));
    for (int64_t i = 0; i < n; i++) {
        char path[PATH_MAX], whole[PATH_MAX];
        kith_index_item item;
        KI_CHECK(kith_index_item_get(index, ids[i], &item, x->err));
        const char *picture = ki_collection_picture_file(x->collection, item.path, path, sizeof path);
        /* Of a member of a tar file there is nothing to link to. */
        if (picture && (!ki_is_file("%s", picture) || !realpath(picture, whole))) picture = NULL;
        x->report.n_missing += !picture;
        status = picture ? each(x, &item, whole) : KITH_OK;
        kith_index_item_release(&item);
        KI_CHECK(status);
    }
done:
    kith_ids_free(ids);
    return status;
}

static kith_status make_folder(const char *path, kith_error *err) {
    if (mkdir(path, 0777) == 0 || (errno == EEXIST && ki_is_folder("%s", path))) return KITH_OK;
    return ki_fail(err, KITH_EIO, "%s cannot be made: %s", path, strerror(errno));
}

/* ---- names that are safe ---- */

/* A name as one of a folder or file: nothing that any file system refuses, or that leads elsewhere. */
static const char *make_safe(ki_arena *arena, const char *name, size_t most) {
    const size_t n = strlen(name);
    char *out = ki_arena_alloc(arena, n + 2, 1);
    size_t to = 0;
    if (!out) return NULL;
    for (size_t i = 0; i < n && to < most;) {
        const size_t step = ki_utf8_next(name + i, n - i);
        const bool is_bad = step == 0 || (unsigned char)name[i] < ' ' || name[i] == 0x7f ||
                            (step == 1 && strchr("/\\<>:\"|?*", name[i]));
        if (!is_bad && to + step > most) break;
        if (is_bad)
            out[to++] = '_';
        else
            memcpy(out + to, name + i, step);
        to += is_bad ? 0 : step;
        i += step ? step : 1;
    }
    while (to > 0 && (out[to - 1] == ' ' || out[to - 1] == '.')) out[--to] = '\0';
    if (to == 0) out[to++] = '_';
    out[to] = '\0';
    for (char *c = out; *c == '.' || *c == ' '; c++) *c = '_'; /* hidden, or above */
    return out;
}

/* Is the folder's name taken, by one that differs in case at most? */
static bool is_taken(const exporting *x, const char *made) {
    for (int64_t i = 0; i < x->n_folders; i++) {
        if (strcasecmp(x->folders[i].made, made) == 0) return true;
    }
    return false;
}

/* ---- folders ---- */

static kith_status say_renamed(exporting *x, const char *name, const char *made) {
    if (strcmp(name, made) == 0) return KITH_OK;
    if (x->report.n_renamed++ > 0) return KITH_OK;
    ki_snprintf(x->report.renamed, sizeof x->report.renamed, "%.100s -> %.120s", name, made);
    ki_make_line(x->report.renamed);
    return KITH_OK;
}

static kith_status add_folder(exporting *x, const char *name, folder **ret) {
    ki_path path;
    const char *safe = make_safe(&x->arena, name, MOST_FOLDER_BYTES), *made = safe;
    for (int k = 2; safe && is_taken(x, made); k++) {
        made = ki_arena_printf(&x->arena, "%s (%d)", safe, k);
        if (!made) safe = NULL;
    }
    folder *longer = safe ? ki_arena_alloc(&x->arena, (size_t)x->n_folders + 1, sizeof *longer) : NULL;
    const char *copy = longer ? ki_arena_strdup(&x->arena, name) : NULL;
    if (!copy) return ki_fail_memory(x->err, strlen(name), "a folder's name");
    if (x->n_folders > 0) memcpy(longer, x->folders, (size_t)x->n_folders * sizeof *longer);
    x->folders = longer;
    *ret = &x->folders[x->n_folders++];
    **ret = (folder){copy, made, 0};
    KI_TRY(say_renamed(x, name, made));
    KI_TRY(ki_path_print(&path, x->err, "%s/%s", x->o->to, made));
    return make_folder(path.s, x->err);
}

static kith_status find_folder(exporting *x, const char *name, folder **ret) {
    for (int64_t i = x->n_folders - 1; i >= 0; i--) {
        *ret = &x->folders[i];
        if (strcmp((*ret)->name, name) == 0) return KITH_OK;
    }
    return add_folder(x, name, ret);
}

static kith_status copy_file(const char *from, const char *to, kith_error *err) {
    char *bytes = NULL;
    size_t n = 0;
    kith_status status = ki_file_read(from, KI_IMAGE_MOST_FILE_BYTES, &bytes, &n, err);
    if (status == KITH_OK) status = ki_file_write(to, bytes, n, err);
    ki_free(bytes);
    return status;
}

static bool is_there(const char *path) {
    struct stat info;
    return lstat(path, &info) == 0;
}

static kith_status put_photo(exporting *x, const kith_index_item *item, const char *picture) {
    folder *f = NULL;
    ki_path path;
    const char *name = strrchr(picture, '/') + 1;
    KI_TRY(find_folder(x, item->label, &f));
    KI_TRY(ki_path_print(&path, x->err, "%s/%s/%s", x->o->to, f->made, name));
    if (is_there(path.s)) {
        const char *dot = strrchr(name, '.');
        const bool is_long = strlen(name) + 24 > MOST_FILE_NAME;
        KI_TRY(ki_path_print(&path, x->err, "%s/%s/%lld%s%s", x->o->to, f->made, (long long)item->id,
                             is_long ? "" : "-", is_long ? dot ? dot : "" : name));
    }
    if (x->o->copy)
        KI_TRY(copy_file(picture, path.s, x->err));
    else if (symlink(picture, path.s) != 0)
        return ki_fail(x->err, KITH_EIO, "%s cannot be made: %s", path.s, strerror(errno));
    f->n++;
    x->report.n_written++;
    return KITH_OK;
}

static kith_status check_empty(const char *path, kith_error *err) {
    int why = 0;
    DIR *dir = opendir(path);
    if (!dir) return ki_fail(err, KITH_EIO, "%s cannot be read: %s", path, strerror(errno));
    const bool is_empty = !ki_dir_next(dir, &why);
    closedir(dir);
    if (is_empty && why == 0) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "%s is not empty", path);
    return ki_hint(err, KITH_EINVAL, "name a folder that is not there yet");
}

static kith_status export_folders(exporting *x) {
    KI_TRY(make_folder(x->o->to, x->err));
    KI_TRY(check_empty(x->o->to, x->err));
    KI_TRY(export_each(x, put_photo));
    x->report.n_names = x->n_folders;
    return KITH_OK;
}

/* ---- sidecars ---- */

static const char xmp_mark[] = "x:xmptk=\"kith\"";

/* A sidecar of another program holds more than a name. */
static bool is_foreign(const char *path) {
    char *bytes = NULL;
    size_t n = 0;
    if (!is_there(path)) return false;
    const bool is_ours =
        ki_file_read(path, MOST_SIDECAR_BYTES, &bytes, &n, NULL) == KITH_OK && strstr(bytes, xmp_mark);
    ki_free(bytes);
    return !is_ours;
}

static kith_status write_sidecar(exporting *x, const kith_index_item *item, const char *path) {
    ki_buffer text = {.err = x->err};
    if (is_foreign(path)) {
        x->report.n_kept++;
        return KITH_OK;
    }
    ki_buffer_put(&text,
                  "<?xpacket begin=\"\xef\xbb\xbf\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?>\n"
                  "<x:xmpmeta xmlns:x=\"adobe:ns:meta/\" %s>\n"
                  "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">\n"
                  "<rdf:Description rdf:about=\"\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\">\n"
                  "<dc:subject><rdf:Bag><rdf:li>",
                  xmp_mark);
    ki_buffer_escaped(&text, item->label);
    ki_buffer_put(&text,
                  "</rdf:li></rdf:Bag></dc:subject>\n</rdf:Description>\n</rdf:RDF>\n</x:xmpmeta>\n"
                  "<?xpacket end=\"w\"?>\n");
    kith_status status = text.status;
    if (status == KITH_OK) status = ki_file_write(path, text.data, text.n, x->err);
    ki_buffer_release(&text);
    x->report.n_written += status == KITH_OK;
    return status;
}

/* The path below `to`, each folder of it made. */
static kith_status place_below(exporting *x, const char *shown, ki_path *ret) {
    KI_TRY(ki_path_print(ret, x->err, "%s", x->o->to));
    for (const char *at = shown; *at;) {
        const size_t n = strcspn(at, "/");
        char *part = ki_arena_strndup(&x->arena, at, n);
        const char *safe = part ? make_safe(&x->arena, part, MOST_FILE_NAME - 5) : NULL;
        if (!safe) return ki_fail_memory(x->err, n, "a path");
        at += n + strspn(at + n, "/");
        ki_path longer;
        KI_TRY(ki_path_print(&longer, x->err, *at ? "%s/%s" : "%s/%s.xmp", ret->s, safe));
        *ret = longer;
        if (*at) KI_TRY(make_folder(ret->s, x->err));
    }
    return KITH_OK;
}

static kith_status put_sidecar(exporting *x, const kith_index_item *item, const char *picture) {
    ki_path path;
    if (x->o->to)
        KI_TRY(place_below(x, ki_roots_shown(&x->roots, item->path), &path));
    else
        KI_TRY(ki_path_print(&path, x->err, "%s.xmp", picture));
    return write_sidecar(x, item, path.s);
}

static kith_status export_sidecars(exporting *x) {
    if (x->o->to) KI_TRY(make_folder(x->o->to, x->err));
    return export_each(x, put_sidecar);
}

/* ---- all forms ---- */

static kith_status export_table(exporting *x) {
    ki_buffer text = {.err = x->err};
    kith_status status = ki_decisions_csv(x->collection->index, &text, &x->report.n_written, x->err);
    if (status == KITH_OK) status = ki_file_write(x->o->to, text.data, text.n, x->err);
    ki_buffer_release(&text);
    return status;
}

static kith_status run(exporting *x) {
    const kith_index *index = x->collection->index;
    KI_TRY(ki_roots_init(&x->roots, ki_index_note(index, KI_NOTE_SOURCES), &x->arena, x->err));
    switch (x->o->form) {
    case KITH_NAMES_CSV: return export_table(x);
    case KITH_NAMES_XMP: return export_sidecars(x);
    case KITH_NAMES_FOLDERS: return export_folders(x);
    default: return ki_fail(x->err, KITH_EINVAL, "%d is no form of names", (int)x->o->form);
    }
}

kith_status kith_names_export(const kith_collection *collection, const kith_names_options *options,
                              kith_names_report *ret_report, kith_error *err) {
    KI_NEED(err, collection);
    KI_OPTIONS_TAKE(kith_names_options, o, options, err);
    KI_TRY(ki_collection_has_index(collection, err));
    if (!o.to && o.form != KITH_NAMES_XMP)
        return ki_fail(err, KITH_EINVAL, "no file or folder is named to write to");
    exporting x = {.collection = collection, .o = &o, .err = err};
    const kith_status status = run(&x);
    ki_arena_release(&x.arena);
    if (ret_report) *ret_report = x.report;
    return status;
}
