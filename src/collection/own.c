/* What in the cache is kith's own: by names, records and contents. */
#include "collection/own.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/path.h"
#include "collection/entry.h"
#include "io/file.h"

static mode_t kind_of(const char *folder, const char *name) {
    struct stat info;
    ki_path path;
    if (ki_path_print(&path, NULL, "%s/%s", folder, name) != KITH_OK || lstat(path.s, &info) != 0) return 0;
    return info.st_mode & S_IFMT;
}

static size_t count_hex(const char *text) { return strspn(text, "0123456789abcdef"); }

/* "NAME-0a1b2c3d4e5f-0a1b2c3d4e5f" of n bytes. */
static bool is_name(const char *name, size_t n) {
    enum { PART = 1 + KI_ENTRY_DIGITS };
    if (name[0] == '.' || n < 2 * PART) return false;
    for (const char *at = name + n - 2 * PART; at < name + n; at += PART) {
        if (at[0] != '-' || count_hex(at + 1) != KI_ENTRY_DIGITS) return false;
    }
    return true;
}

/* Some are of a process that was killed. */
static bool is_file_of_entry(const char *name) {
    static const char *const names[] = {"entry.json", "used", "writer", "index", ".index.renewed"};
    static const char half[] = "entry.json.tmp-";
    if (strncmp(name, half, sizeof half - 1) == 0) return true;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) return true;
    }
    return false;
}

static bool holds_nothing_else(const char *entry) {
    DIR *dir = opendir(entry);
    bool is_own = dir != NULL;
    int why = 0;
    for (const char *name; is_own && (name = ki_dir_next(dir, &why));) is_own = is_file_of_entry(name);
    if (dir) closedir(dir);
    return is_own && !why;
}

static bool has_its_record(const char *entry) {
    ki_arena arena = {0};
    ki_entry_record record;
    const bool is_own =
        ki_entry_read(entry, &arena, &record, NULL) == KITH_OK && ki_entry_fits(entry, &record);
    ki_arena_release(&arena);
    return is_own;
}

bool ki_own_entry(const char *photos, const char *name) {
    ki_path entry;
    return is_name(name, strlen(name)) && kind_of(photos, name) == S_IFDIR &&
           ki_path_print(&entry, NULL, "%s/%s", photos, name) == KITH_OK &&
           (has_its_record(entry.s) || holds_nothing_else(entry.s));
}

/* ".NAME-0a1b2c3d4e5f-0a1b2c3d4e5f.PID" */
bool ki_own_leftover(const char *photos, const char *name) {
    const char *dot = strrchr(name, '.');
    return name[0] == '.' && dot > name && is_name(name + 1, (size_t)(dot - name) - 1) && dot[1] &&
           dot[1 + strspn(dot + 1, "0123456789")] == '\0' && kind_of(photos, name) == S_IFDIR;
}

bool ki_own_model(const char *models, const char *name) {
    return count_hex(name) == 64 && strcmp(name + 64, ".safetensors") == 0 &&
           kind_of(models, name) == S_IFREG;
}
