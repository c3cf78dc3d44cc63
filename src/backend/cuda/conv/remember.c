/* Remembers ways. The file has a first line "kith choices 1", a second line that says what it was made for, then lines
 * of key TAB value, and last "end N" with the number of pairs, which shows whether the file is complete. */
#include "backend/cuda/conv/remember.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/buffer.h"
#include "base/log.h"
#include "base/text.h"

#define HEADER "kith choices 1"
enum { MAX_LINE = 1024 };

typedef struct pair {
    char *key, *value;
} pair;

struct ki_remembered {
    char *path; /* NULL: nowhere to keep them */
    char made_for[160];
    pair *pair;
    size_t n, capacity;
    bool is_new;      /* something is not in the file yet */
    struct stat seen; /* the file when it was last read or written */
};

static pair *find(const ki_remembered *all, const char *key) {
    for (size_t i = 0; i < all->n; i++) {
        if (strcmp(all->pair[i].key, key) == 0) return &all->pair[i];
    }
    return NULL;
}

const char *ki_remembered_get(const ki_remembered *all, const char *key) {
    const pair *found = find(all, key);
    return found ? found->value : NULL;
}

static kith_status put(ki_remembered *all, const char *key, const char *value, kith_error *err) {
    pair *found = find(all, key);
    char *copy = ki_strdup(value);
    if (!copy) return ki_fail_memory(err, strlen(value) + 1, "a remembered way");
    if (found) {
        ki_free(found->value);
        found->value = copy;
        return KITH_OK;
    }
    kith_status status =
        ki_grow(&all->pair, &all->capacity, all->n + 1, sizeof *all->pair, "remembered ways", err);
    char *key_copy = status == KITH_OK ? ki_strdup(key) : NULL;
    if (status == KITH_OK && !key_copy) status = ki_fail_memory(err, strlen(key) + 1, "a remembered way");
    if (status != KITH_OK) {
        ki_free(copy);
        return status;
    }
    all->pair[all->n++] = (pair){key_copy, copy};
    return KITH_OK;
}

kith_status ki_remembered_set(ki_remembered *all, const char *key, const char *value, kith_error *err) {
    if (strpbrk(key, "\t\n") || strpbrk(value, "\t\n") || strlen(key) + strlen(value) + 3 > MAX_LINE)
        return ki_fail(err, KITH_EINTERNAL, "a way that is not one line: %.60s", key);
    all->is_new = true;
    return put(all, key, value, err);
}

/* A line without its newline; false at the end of the file or when it is too long. */
static bool read_line(FILE *file, char line[MAX_LINE]) {
    if (!fgets(line, MAX_LINE, file)) return false;
    const size_t n = strcspn(line, "\n");
    if (line[n] != '\n') return false;
    line[n] = '\0';
    return true;
}

/* Read all pairs into `into`, or say why not. Pairs that are already there stay. */
static const char *read_pairs(FILE *file, ki_remembered *into) {
    char line[MAX_LINE];
    long n = 0;
    if (!read_line(file, line) || strcmp(line, HEADER) != 0) return "not a file of choices";
    if (!read_line(file, line) || strcmp(line, into->made_for) != 0)
        return "made for another device or version";
    while (read_line(file, line)) {
        char *tab = strchr(line, '\t');
        if (!tab) {
            char wanted[32];
            ki_snprintf(wanted, sizeof wanted, "end %ld", n);
            return strcmp(line, wanted) == 0 ? NULL : "broken";
        }
        *tab = '\0';
        if (!find(into, line) && put(into, line, tab + 1, NULL) != KITH_OK) return "out of memory";
        n++;
    }
    return "cut off";
}

static void forget(ki_remembered *all) {
    for (size_t i = 0; i < all->n; i++) {
        ki_free(all->pair[i].key);
        ki_free(all->pair[i].value);
    }
    all->n = 0;
}

static void load(ki_remembered *all) {
    FILE *file = fopen(all->path, "r");
    if (!file) {
        if (errno != ENOENT) ki_log(KITH_LOG_WARNING, "%s: %s; choosing anew", all->path, strerror(errno));
        return;
    }
    const char *why = read_pairs(file, all);
    fclose(file);
    if (!why) return;
    ki_log(KITH_LOG_WARNING, "%s: %s; choosing anew", all->path, why);
    forget(all);
}

/* Has another process replaced the file since this function last looked at it? */
static bool is_changed(ki_remembered *all) {
    struct stat now = {0};
    if (stat(all->path, &now) != 0) return false;
    const bool is_same = now.st_ino == all->seen.st_ino && now.st_size == all->seen.st_size &&
                         now.st_mtim.tv_sec == all->seen.st_mtim.tv_sec &&
                         now.st_mtim.tv_nsec == all->seen.st_mtim.tv_nsec;
    all->seen = now;
    return !is_same;
}

/* Add what others have written since. A file that cannot be used is about to be replaced. */
static void merge(ki_remembered *all) {
    if (!is_changed(all)) return;
    ki_remembered theirs = {0};
    memcpy(theirs.made_for, all->made_for, sizeof theirs.made_for);
    FILE *file = fopen(all->path, "r");
    if (!file) return;
    if (!read_pairs(file, &theirs)) {
        for (size_t i = 0; i < theirs.n; i++) {
            if (!find(all, theirs.pair[i].key))
                (void)put(all, theirs.pair[i].key, theirs.pair[i].value, NULL);
        }
    }
    fclose(file);
    forget(&theirs);
    ki_free(theirs.pair);
}

static kith_status write_pairs(ki_remembered *all, kith_error *err) {
    kith_status status = KITH_OK;
    ki_atomic_file file = {0};
    ki_buffer text = {.err = err};
    ki_buffer_put(&text, "%s\n%s\n", HEADER, all->made_for);
    for (size_t i = 0; i < all->n; i++)
        ki_buffer_put(&text, "%s\t%s\n", all->pair[i].key, all->pair[i].value);
    ki_buffer_put(&text, "end %zu\n", all->n);
    KI_CHECK(text.status);
    KI_CHECK(ki_atomic_open(&file, all->path, err));
    KI_CHECK(ki_atomic_write(&file, text.data, text.n, err));
    /* The file as it will be: examined before others can replace it. */
    if (fstat(file.fd, &all->seen) != 0) all->seen = (struct stat){0};
    KI_CHECK(ki_atomic_commit(&file, err));
done:
    ki_atomic_discard(&file);
    ki_buffer_release(&text);
    return status;
}

/* Several processes may write here at the same time, but none of them takes minutes. */
static void clear_left_over(const char *path) {
    enum { IDLE_SECONDS = 600 };
    char folder[PATH_MAX];
    ki_snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (!slash) return;
    *slash = '\0';
    ki_atomic_clear(folder, slash + 1, IDLE_SECONDS);
}

/* Make every folder on the path of the file. */
static void make_folders(const char *path) {
    char part[PATH_MAX];
    ki_snprintf(part, sizeof part, "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(part, 0777);
        *slash = '/';
    }
}

void ki_remembered_save(ki_remembered *all) {
    if (!all->path || !all->is_new) return;
    make_folders(all->path);
    clear_left_over(all->path);
    merge(all);
    kith_error err;
    if (write_pairs(all, &err) != KITH_OK)
        ki_log(KITH_LOG_WARNING, "%s; the choice of algorithms is not kept", err.message);
    all->is_new = false; /* said once */
}

void ki_remembered_refresh(ki_remembered *all) {
    if (all->path) merge(all);
}

bool ki_remembered_is_kept(const ki_remembered *all) {
    if (!all->path) return false;
    char folder[PATH_MAX];
    ki_snprintf(folder, sizeof folder, "%s", all->path);
    char *end = strrchr(folder, '/');
    if (!end) return false;
    make_folders(all->path);
    *end = 0;
    return access(folder, W_OK) == 0;
}

/* FOLDER/cuda-NAME.txt with a name of plain letters. */
static kith_status make_path(const char *folder, const char *made_for, char **ret_path, kith_error *err) {
    char path[PATH_MAX];
    const char *home = getenv("HOME"), *cache = getenv("XDG_CACHE_HOME");
    int n = -1;
    if (folder && folder[0])
        n = ki_snprintf(path, sizeof path, "%s/cuda-", folder);
    else if (cache && cache[0])
        n = ki_snprintf(path, sizeof path, "%s/kith/cuda-", cache);
    else if (home && home[0])
        n = ki_snprintf(path, sizeof path, "%s/.cache/kith/cuda-", home);
    if (n < 0 || (size_t)n + strlen(made_for) + 8 > sizeof path) return KITH_OK; /* nowhere */
    for (const char *c = made_for; *c; c++) {
        const bool is_plain =
            (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '.';
        if (is_plain)
            path[n++] = *c;
        else if (path[n - 1] != '-')
            path[n++] = '-';
    }
    memcpy(path + n, ".txt", 5);
    *ret_path = ki_strdup(path);
    return *ret_path ? KITH_OK : ki_fail_memory(err, strlen(path) + 1, "a path");
}

kith_status ki_remembered_open(const char *folder, const char *made_for, ki_remembered **ret_remembered,
                               kith_error *err) {
    ki_remembered *all = NULL;
    KI_TRY(ki_zalloc_or(&all, 1, sizeof *all, "remembered ways", err));
    ki_snprintf(all->made_for, sizeof all->made_for, "%s", made_for);
    const kith_status status = make_path(folder, all->made_for, &all->path, err);
    if (status != KITH_OK) {
        ki_remembered_free(all);
        return status;
    }
    if (all->path) load(all);
    *ret_remembered = all;
    return KITH_OK;
}

void ki_remembered_free(ki_remembered *all) {
    if (!all) return;
    ki_remembered_save(all);
    forget(all);
    ki_free(all->pair);
    ki_free(all->path);
    ki_free(all);
}
