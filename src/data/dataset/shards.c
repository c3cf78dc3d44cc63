/* Which tar files words name: a path, a pattern ("train-{000..009}.tar", "{train,val}-0.tar"), several with "::" between them, a folder. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/text.h"
#include "data/dataset/dataset.h"
#include "io/file.h"

enum { MOST_SHARDS = 100000, MOST_WORDS = 4000 };

static bool ends(const char *s, const char *ending) {
    const size_t n = strlen(s), m = strlen(ending);
    return n >= m && strcasecmp(s + n - m, ending) == 0;
}

bool ki_is_tar_name(const char *path) { return ends(path, ".tar"); }

/* Packed ones are found, too, so that an error can say what to do. */
static bool is_archive(const char *path) {
    return ki_is_tar_name(path) || ends(path, ".tar.gz") || ends(path, ".tgz") || ends(path, ".tar.zst") ||
           ends(path, ".tar.bz2") || ends(path, ".tar.xz");
}

bool ki_names_tars(const char *root) {
    if (ki_is_folder("%s", root)) return false;
    if (ki_is_file("%s", root)) return is_archive(root);
    return is_archive(root) && (strstr(root, "::") || strchr(root, '{'));
}

typedef struct listing {
    ki_arena *arena;
    char **path;
    size_t n, capacity;
    const char *root;
} listing;

static kith_status add(listing *l, const char *path, kith_error *err) {
    if (l->n == MOST_SHARDS)
        return ki_fail(err, KITH_EINVAL, "%.300s names more than %d tar files", l->root, MOST_SHARDS);
    KI_TRY(ki_grow(&l->path, &l->capacity, l->n + 1, sizeof *l->path, "tar files", err));
    l->path[l->n] = ki_arena_strdup(l->arena, path);
    if (!l->path[l->n]) return ki_fail_memory(err, strlen(path), "tar files");
    l->n++;
    return KITH_OK;
}

/* ---- patterns ---- */

static kith_status fail_pattern(const listing *l, kith_error *err) {
    ki_fail(err, KITH_EINVAL, "%.300s is no pattern of tar files", l->root);
    return ki_hint(err, KITH_EINVAL,
                   "wanted numbers or words in braces: train-{000000..000009}.tar, {a,b}.tar");
}

static kith_status expand(listing *l, const char *words, kith_error *err);

/* before + one of several + behind. */
static kith_status expand_one(listing *l, const char *words, const char *open, const char *one, size_t n,
                              const char *behind, kith_error *err) {
    ki_path path;
    KI_TRY(ki_path_print(&path, err, "%.*s%.*s%s", (int)(open - words), words, (int)n, one, behind));
    return expand(l, path.s, err);
}

/* "{007..012}": as wide as written, if one of the numbers begins with 0. */
static kith_status expand_range(listing *l, const char *words, const char *open, const char *close,
                                kith_error *err) {
    enum { MOST_DIGITS = 9 };
    const char *from = open + 1;
    const size_t n = strspn(from, "0123456789");
    const char *to = from + n + 2;
    if (n < 1 || n > MOST_DIGITS || strncmp(from + n, "..", 2) != 0) return fail_pattern(l, err);
    const size_t m = strspn(to, "0123456789");
    if (m < 1 || m > MOST_DIGITS || to + m != close) return fail_pattern(l, err);
    const long first = strtol(from, NULL, 10), last = strtol(to, NULL, 10);
    const bool is_padded = (n > 1 && *from == '0') || (m > 1 && *to == '0');
    const int width = is_padded ? (int)(n > m ? n : m) : 1;
    if (last < first || last - first >= MOST_SHARDS) return fail_pattern(l, err);
    for (long i = first; i <= last; i++) {
        char number[32];
        const int length = ki_snprintf(number, sizeof number, "%0*ld", width, i);
        KI_TRY(expand_one(l, words, open, number, (size_t)length, close + 1, err));
    }
    return KITH_OK;
}

static kith_status expand(listing *l, const char *words, kith_error *err) {
    const char *open = strchr(words, '{');
    if (!open || ki_is_file("%s", words)) return add(l, words, err);
    const char *close = strchr(open, '}');
    if (!close) return fail_pattern(l, err);
    if (!memchr(open, ',', (size_t)(close - open))) return expand_range(l, words, open, close, err);
    for (const char *at = open + 1;; at++) {
        const size_t n = strcspn(at, ",}");
        KI_TRY(expand_one(l, words, open, at, n, close + 1, err));
        at += n;
        if (*at == '}') return KITH_OK;
    }
}

static kith_status expand_words(listing *l, const char *words, kith_error *err) {
    if (strlen(words) > MOST_WORDS)
        return ki_fail(err, KITH_EINVAL, "the names of tar files have %zu bytes; wanted at most %d",
                       strlen(words), MOST_WORDS);
    for (const char *at = words;; at += 2) {
        const char *next = ki_is_file("%s", at) ? NULL : strstr(at, "::");
        const size_t n = next ? (size_t)(next - at) : strlen(at);
        ki_path one;
        KI_TRY(ki_path_print(&one, err, "%.*s", (int)n, at));
        if (n) KI_TRY(expand(l, one.s, err));
        if (!next) return KITH_OK;
        at = next;
    }
}

/* ---- folders ---- */

static int compare_paths(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static kith_status list_folder(listing *l, const char *folder, kith_error *err) {
    kith_status status = KITH_OK;
    int why = 0;
    const size_t first = l->n;
    DIR *dir = opendir(folder);
    if (!dir) return ki_fail(err, KITH_EIO, "%s cannot be read", folder);
    for (const char *name; (name = ki_dir_next(dir, &why));) {
        ki_path path;
        if (ki_is_litter(name) || !ki_is_tar_name(name)) continue;
        KI_CHECK(ki_path_print(&path, err, "%s/%s", folder, name));
        if (ki_is_file("%s", path.s)) KI_CHECK(add(l, path.s, err));
    }
    if (why) status = ki_fail(err, KITH_EIO, "%s cannot be read to its end", folder);
    if (l->n > first) qsort(l->path + first, l->n - first, sizeof *l->path, compare_paths);
done:
    closedir(dir);
    return status;
}

/* Also those in train/, val/ … */
static kith_status list_folders(listing *l, const char *root, kith_error *err) {
    static const char *const parts[] = {"train", "val", "validation", "test"};
    KI_TRY(list_folder(l, root, err));
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        ki_path folder;
        KI_TRY(ki_path_print(&folder, err, "%s/%s", root, parts[i]));
        if (ki_is_folder("%s", folder.s)) KI_TRY(list_folder(l, folder.s, err));
    }
    return KITH_OK;
}

kith_status ki_shards_list(const char *root, ki_arena *arena, char ***ret_paths, size_t *ret_n,
                           kith_error *err) {
    listing l = {.arena = arena, .root = root};
    const kith_status status =
        ki_is_folder("%s", root) ? list_folders(&l, root, err) : expand_words(&l, root, err);
    if (status != KITH_OK) {
        ki_free(l.path);
        return status;
    }
    *ret_paths = l.path;
    *ret_n = l.n;
    return KITH_OK;
}

/* ---- splits ---- */

static bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* "imagenet-train-000001.tar", "val/0.tar" */
static bool split_of(const char *path, kith_split *ret) {
    const char *base = strrchr(path, '/');
    for (const char *at = base ? base + 1 : path; *at;) {
        size_t n = 0;
        while (is_word(at[n])) n++;
        if (n && ki_part_named(at, n, ret)) return true;
        at += n ? n : 1;
    }
    if (!base) return false;
    const char *folder = base;
    while (folder > path && folder[-1] != '/') folder--;
    return ki_part_named(folder, (size_t)(base - folder), ret);
}

bool ki_shards_split(char *const *paths, size_t n, kith_split *ret_split) {
    bool trains = false, others = false;
    for (size_t i = 0; i < n; i++) {
        if (!split_of(paths[i], &ret_split[i])) return false;
        if (ret_split[i] == KITH_SPLIT_TRAIN)
            trains = true;
        else
            others = true;
    }
    return trains && others;
}
