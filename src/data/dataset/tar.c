/* Images in tar files, read in place (docs/data.md). Files that begin with the same KEY, up to the first dot of their last name, are one
 * sample, as WebDataset has it: KEY.jpg with its label in KEY.cls (text) or KEY.json (label, cls, class or class_name). Where no sample
 * has a label, folders inside name the classes. The files of a sample lie one behind the other. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/text.h"
#include "data/dataset/dataset.h"
#include "io/json.h"
#include "io/tar_file.h"

enum { MOST_LABEL = 1000, MOST_JSON = 1 << 20, MOST_PATH = 4000 };

typedef struct reading {
    kith_dataset *set;
    const char *shard;
    char key[MOST_PATH + 1];    /* of the sample that is being read … */
    size_t first;               /* … its first item … */
    char label[MOST_LABEL + 1]; /* … and its label; empty: none so far */
    size_t n_labelled;
    size_t first_item, *inside,
        inside_capacity; /* of each item from the first: where its name in the file begins */
} reading;

/* ---- labels ---- */

static bool is_label(const char *text) {
    for (const char *at = text; *at; at++) {
        if ((unsigned char)*at < 0x20 || *at == 0x7f) return false;
    }
    return *text != '\0';
}

static void set_label(reading *r, const char *text, size_t n) {
    while (n && strchr(" \t\r\n", text[n - 1])) n--;
    while (n && strchr(" \t\r\n", *text)) text++, n--;
    if (n > MOST_LABEL || memchr(text, '\0', n)) return;
    memcpy(r->label, text, n);
    r->label[n] = '\0';
    if (!is_label(r->label)) r->label[0] = '\0';
}

/* A file that is none is as good as no label: its image will be counted as without one. */
static kith_status read_json(reading *r, const char *text, size_t n, kith_error *err) {
    static const char *const keys[] = {"label", "cls", "class", "class_name"};
    ki_arena arena = {0};
    ki_value *root = NULL;
    const kith_status status = ki_json_parse(text, n, "a label", &arena, &root, err);
    for (size_t i = 0; status == KITH_OK && root->kind == KI_VALUE_MAP && i < sizeof keys / sizeof keys[0];
         i++) {
        const ki_value *v = ki_value_get(root, keys[i]);
        if (!v || v->kind != KI_VALUE_SCALAR) continue;
        set_label(r, v->text, strlen(v->text));
        break;
    }
    ki_arena_release(&arena);
    return status == KITH_ENOMEM ? status : KITH_OK;
}

static kith_status read_label(reading *r, ki_tar_walk *walk, const ki_tar_entry *entry, bool is_json,
                              kith_error *err) {
    char *text = NULL;
    if (entry->bytes > (is_json ? MOST_JSON : MOST_LABEL)) return KITH_OK;
    const size_t n = (size_t)entry->bytes;
    KI_TRY(ki_alloc_or(&text, n + 1, 1, "a label", err));
    kith_status status = ki_tar_read(walk, text, n, entry->at, err);
    text[n] = '\0';
    if (status == KITH_OK && is_json)
        status = read_json(r, text, n, err);
    else if (status == KITH_OK)
        set_label(r, text, n);
    ki_free(text);
    return status;
}

static kith_status end_sample(reading *r, kith_error *err) {
    kith_dataset *set = r->set;
    int32_t label = -1;
    if (r->label[0] && r->first < set->n_items) {
        KI_TRY(ki_dataset_class(set, r->label, strlen(r->label), &label, err));
        r->n_labelled += set->n_items - r->first;
        for (size_t i = r->first; i < set->n_items; i++) set->item[i].label = label;
    }
    r->first = set->n_items;
    r->label[0] = '\0';
    return KITH_OK;
}

/* ---- members ---- */

static bool is_litter(const char *name) {
    char part[256];
    for (const char *at = name; *at;) {
        const size_t n = strcspn(at, "/");
        if (n < sizeof part) {
            memcpy(part, at, n);
            part[n] = '\0';
            if (n && ki_is_litter(part)) return true;
        }
        at += n + (at[n] == '/');
    }
    return false;
}

static kith_status note(reading *r, ki_unread_kind kind, const char *name, kith_error *err) {
    ki_path path;
    const bool fits = ki_path_print(&path, NULL, "%s/%s", r->shard, name) == KITH_OK ||
                      ki_path_print(&path, NULL, "%s/%.100s …", r->shard, name) == KITH_OK;
    return ki_unread_add(&r->set->unread, &r->set->arena, kind, fits ? path.s : r->shard, err);
}

static kith_status add_image(reading *r, const char *name, kith_error *err) {
    kith_dataset *set = r->set;
    const size_t n = strlen(name), at = set->n_items - r->first_item;
    if (strlen(r->shard) + 1 + n > MOST_PATH) return note(r, KI_UNREAD_NAME, name, err);
    KI_TRY(ki_grow(&r->inside, &r->inside_capacity, at + 1, sizeof *r->inside, "items", err));
    r->inside[at] = strlen(r->shard) + 1;
    return ki_dataset_add(set, r->shard, name, n, -1, KITH_SPLIT_TEST, NULL, err);
}

static kith_status visit(void *context, ki_tar_walk *walk, const ki_tar_entry *entry, kith_error *err) {
    reading *r = context;
    const char *name = entry->name, *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    const size_t n_key = (size_t)(base - name) + strcspn(base, ".");
    const char *ending = name + n_key;
    const bool is_image = ki_is_image_name(name);
    if (entry->is_odd) return is_image ? note(r, KI_UNREAD_NAME, name, err) : KITH_OK;
    if (is_litter(name)) return KITH_OK;
    if (!entry->is_file) return is_image ? note(r, KI_UNREAD_MEMBER, name, err) : KITH_OK;
    if (strlen(r->key) != n_key || memcmp(r->key, name, n_key) != 0) {
        KI_TRY(end_sample(r, err));
        memcpy(r->key, name, n_key);
        r->key[n_key] = '\0';
    }
    if (strcasecmp(ending, ".cls") == 0) return read_label(r, walk, entry, false, err);
    if (strcasecmp(ending, ".json") == 0 && !r->label[0]) return read_label(r, walk, entry, true, err);
    if (is_image) return add_image(r, name, err);
    const ki_unread_kind kind = ki_unread_kind_of(name);
    return kind == KI_UNREAD_NONE ? KITH_OK : note(r, kind, name, err);
}

/* ---- files ---- */

static kith_status note_shard(kith_dataset *set, const char *path, const char *why, int64_t n_read,
                              kith_error *err) {
    char text[600];
    ki_snprintf(text, sizeof text, "%.400s; %jd image%s before that %s read", why, (intmax_t)n_read,
                n_read == 1 ? "" : "s", n_read == 1 ? "is" : "are");
    return ki_unread_add_why(&set->unread, &set->arena, KI_UNREAD_SHARD, path, n_read < 0 ? why : text, err);
}

static kith_status add_shard(reading *r, const char *path, kith_error *err) {
    kith_dataset *set = r->set;
    ki_tar *tar = NULL;
    kith_error why = {0};
    const size_t before = set->n_items;
    if (!ki_is_file("%s", path)) {
        if (!set->unread.absent) set->unread.absent = ki_arena_strdup(&set->arena, path);
        if (!set->unread.absent) return ki_fail_memory(err, strlen(path), "a path");
        return note_shard(set, path, "there is no such file", -1, err);
    }
    KI_TRY(ki_grow(&set->tar, &set->tar_capacity, set->n_tars + 1, sizeof *set->tar, "tar files", err));
    r->shard = path;
    r->key[0] = r->label[0] = '\0';
    r->first = before;
    kith_status status = ki_tar_hold(path, visit, r, &tar, &why);
    if (status == KITH_OK) set->tar[set->n_tars++] = tar;
    if (status == KITH_OK) status = end_sample(r, &why);
    if (status == KITH_EIO) return note_shard(set, path, why.message, -1, err);
    if (status != KITH_OK) {
        if (err) *err = why;
        return status;
    }
    const char *damage = ki_tar_damage(tar);
    return damage ? note_shard(set, path, damage, (int64_t)(set->n_items - before), err) : KITH_OK;
}

/* ---- folders inside ---- */

static const char *name_of(const reading *r, size_t i) {
    return r->set->item[i].path + r->inside[i - r->first_item];
}

/* The folder that a name begins with; 0: there is none. */
static size_t folder_of(const char *name) {
    const char *slash = strchr(name, '/');
    return slash ? (size_t)(slash - name) : 0;
}

/* Folders around all classes, such as "photos/" of photos/rook/1.jpg, say nothing. */
static void drop_folders_around(reading *r) {
    const size_t n = r->set->n_items;
    for (;;) {
        const char *first = name_of(r, r->first_item);
        const size_t length = folder_of(first);
        for (size_t i = r->first_item; i < n; i++) {
            const char *name = name_of(r, i);
            if (length == 0 || folder_of(name) != length || memcmp(name, first, length) != 0) return;
            if (folder_of(name + length + 1) == 0) return;
        }
        for (size_t i = r->first_item; i < n; i++) r->inside[i - r->first_item] += length + 1;
    }
}

/* train/rook/1.jpg and test/elm/1.jpg */
static bool take_parts(reading *r) {
    bool trains = false, others = false;
    kith_split split = KITH_SPLIT_TEST;
    for (size_t i = r->first_item; i < r->set->n_items; i++) {
        const char *name = name_of(r, i);
        const size_t n = folder_of(name);
        if (!n || !ki_part_named(name, n, &split) || !folder_of(name + n + 1)) return false;
        if (split == KITH_SPLIT_TRAIN)
            trains = true;
        else
            others = true;
    }
    if (!trains || !others) return false;
    for (size_t i = r->first_item; i < r->set->n_items; i++) {
        const char *name = name_of(r, i);
        const size_t n = folder_of(name);
        if (ki_part_named(name, n, &split)) r->set->item[i].split = (uint8_t)split;
        r->inside[i - r->first_item] += n + 1;
    }
    return true;
}

static kith_status take_classes(reading *r, kith_error *err) {
    for (size_t i = r->first_item; i < r->set->n_items; i++) {
        const char *name = name_of(r, i);
        const size_t n = folder_of(name);
        int32_t label = -1;
        if (n) KI_TRY(ki_dataset_class(r->set, name, n, &label, err));
        r->set->item[i].label = label;
    }
    return KITH_OK;
}

static kith_status fail_empty(const kith_dataset *set, char *const *paths, size_t n, kith_error *err) {
    if (n == 0) return ki_fail(err, KITH_EIO, "%s holds no tar files", set->root);
    ki_fail(err, KITH_EIO, "%s%s: no image in %s", paths[0], n > 1 ? " …" : "", n > 1 ? "any of them" : "it");
    if (set->unread.n) return ki_hint(err, KITH_EIO, "not read is %.300s", set->unread.name[0]);
    return ki_hint(err, KITH_EIO, "wanted members that end in one of " KI_IMAGE_ENDINGS);
}

kith_status ki_dataset_add_tars(kith_dataset *set, char *const *paths, size_t n, bool *ret_has_splits,
                                kith_error *err) {
    kith_status status = KITH_OK;
    bool has_parts = false;
    reading *r = NULL;
    KI_TRY(ki_zalloc_or(&r, 1, sizeof *r, "tar files", err));
    r->set = set;
    r->first_item = set->n_items;
    for (size_t i = 0; i < n; i++) KI_CHECK(add_shard(r, paths[i], err));
    if (set->n_items == r->first_item) {
        status = fail_empty(set, paths, n, err);
        goto done;
    }
    if (r->n_labelled == 0) {
        drop_folders_around(r);
        has_parts = take_parts(r);
        KI_CHECK(take_classes(r, err));
    }
    if (ret_has_splits) *ret_has_splits = has_parts;
done:
    ki_free(r->inside);
    ki_free(r);
    return status;
}

/* ---- the layout ---- */

/* train/ and so on without folders that may be classes */
static bool is_part_of_tars(const char *root, const char *name) {
    ki_arena arena = {0};
    ki_path path;
    kith_split split;
    char **folders = NULL;
    size_t n = 1;
    if (!ki_part_named(name, strlen(name), &split) ||
        ki_path_print(&path, NULL, "%s/%s", root, name) != KITH_OK)
        return false;
    const bool is_listed = ki_list_folders(path.s, &arena, &folders, &n, NULL) == KITH_OK;
    ki_free(folders);
    ki_arena_release(&arena);
    return is_listed && n == 0;
}

static bool has_tars(const char *folder) {
    ki_arena arena = {0};
    char **paths = NULL, **folders = NULL;
    size_t n = 0, n_folders = 0;
    bool yes = false;
    if (ki_shards_list(folder, &arena, &paths, &n, NULL) == KITH_OK && n > 0 &&
        ki_list_folders(folder, &arena, &folders, &n_folders, NULL) == KITH_OK) {
        yes = true;
        for (size_t i = 0; i < n_folders && yes; i++) yes = is_part_of_tars(folder, folders[i]);
    }
    ki_free(paths);
    ki_free(folders);
    ki_arena_release(&arena);
    return yes;
}

static bool found(const char *root) {
    return ki_is_folder("%s", root) ? has_tars(root) : ki_names_tars(root);
}

/* Images without a class go, and are counted. */
static kith_status drop_unlabelled(kith_dataset *set, kith_error *err) {
    size_t kept = 0;
    for (size_t i = 0; i < set->n_items; i++) {
        if (set->item[i].label < 0)
            KI_TRY(ki_unread_add(&set->unread, &set->arena, KI_UNREAD_LABEL, set->item[i].path, err));
        else
            set->item[kept++] = set->item[i];
    }
    if (kept == 0) {
        ki_fail(err, KITH_EIO, "%s: %zu image%s and no labels", set->root, set->n_items,
                set->n_items == 1 ? "" : "s");
        return ki_hint(
            err, KITH_EIO,
            "to train, wanted KEY.cls or KEY.json beside each KEY.jpg, or a folder per class inside; as it "
            "is it can be indexed (`kith index`)");
    }
    set->n_items = kept;
    return KITH_OK;
}

static kith_status take_splits(kith_dataset *set, char *const *paths, size_t n, kith_error *err) {
    kith_split *split = NULL;
    KI_TRY(ki_alloc_or(&split, n, sizeof *split, "tar files", err));
    if (!ki_shards_split(paths, n, split)) {
        ki_dataset_split_at(set, (int32_t)(set->n_classes + 1) / 2);
        ki_free(split);
        return KITH_OK;
    }
    size_t shard = 0; /* items follow the order of the files */
    for (size_t i = 0; i < set->n_items; i++) {
        const char *path = set->item[i].path;
        for (size_t k = 0; k < n; k++, shard = (shard + 1) % n) {
            const size_t length = strlen(paths[shard]);
            if (strncmp(path, paths[shard], length) == 0 && path[length] == '/') break;
        }
        set->item[i].split = (uint8_t)split[shard];
    }
    ki_free(split);
    return KITH_OK;
}

/* Items are named by what comes after the folder that all files lie in, so that they keep their names when it is moved. */
static kith_status set_root(kith_dataset *set, char *const *paths, size_t n, kith_error *err) {
    if (ki_is_folder("%s", set->root) || ki_is_file("%s", set->root)) return KITH_OK;
    const char *slash = strrchr(paths[0], '/');
    size_t length = slash ? (size_t)(slash - paths[0]) : 0;
    for (size_t i = 1; i < n; i++) {
        while (length && (strncmp(paths[i], paths[0], length) != 0 || paths[i][length] != '/')) {
            do length--;
            while (length && paths[0][length] != '/');
        }
    }
    if (length == 0) return KITH_OK;
    set->root = ki_arena_strndup(&set->arena, paths[0], length);
    return set->root ? KITH_OK : ki_fail_memory(err, length, "a data set");
}

static kith_status read_tars(kith_dataset *set, const char *root, kith_error *err) {
    kith_status status = KITH_OK;
    ki_arena arena = {0};
    char **paths = NULL;
    size_t n = 0;
    bool has_splits = false;
    KI_CHECK(ki_shards_list(root, &arena, &paths, &n, err));
    KI_CHECK(ki_dataset_add_tars(set, paths, n, &has_splits, err));
    KI_CHECK(drop_unlabelled(set, err));
    KI_CHECK(ki_dataset_sort_classes(set, err));
    if (!has_splits) KI_CHECK(take_splits(set, paths, n, err));
    KI_CHECK(set_root(set, paths, n, err));
done:
    ki_free(paths);
    ki_arena_release(&arena);
    return status;
}

const ki_dataset_kind ki_dataset_tar = {
    .name = "tar",
    .summary =
        "tar files (WebDataset): KEY.jpg with KEY.cls or KEY.json, or class folders; a file, a folder, "
        "shards-{000..009}.tar",
    .found = found,
    .read = read_tars,
};
