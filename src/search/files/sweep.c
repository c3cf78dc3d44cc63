/* Removing files that no commit needs. */
#include "search/files/sweep.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "io/file.h"
#include "search/files/snapshot.h"

static bool is_named(const ki_manifest *m, int64_t number) {
    if (number == m->changes.number || number == m->coder.number || number == m->moves.number ||
        number == m->updates.number || number == m->excluded.number)
        return true;
    for (int64_t i = 0; i < m->n_segments; i++) {
        if (number == m->segments[i].rows.number || number == m->segments[i].codes.number) return true;
    }
    return false;
}

/* A file that a writer has made: its number, else 0. */
static int64_t number_of(const char *name) {
    static const char *const kinds[] = {KI_KIND_SEGMENT, KI_KIND_CHANGES, KI_KIND_CODES,   KI_KIND_CODER,
                                        KI_KIND_MOVES,   KI_KIND_UPDATES, KI_KIND_EXCLUDED};
    long long number = 0;
    int end = 0;
    if (strspn(name, "0123456789") < 8 || sscanf(name, "%lld.%n", &number, &end) != 1 || end == 0) return 0;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(name + end, kinds[i]) == 0) return number;
    }
    return 0;
}

void ki_sweep(const char *folder) {
    ki_manifest m = {0};
    kith_error err;
    if (ki_manifest_read(folder, &m, &err) != KITH_OK) return;
    DIR *dir = opendir(folder);
    int why = 0;
    for (const char *name; dir && (name = ki_dir_next(dir, &why));) {
        const int64_t number = number_of(name);
        if (number > 0 && !is_named(&m, number)) unlinkat(dirfd(dir), name, 0);
    }
    if (dir) closedir(dir);
    ki_atomic_clear(folder, "", 0);
    ki_manifest_release(&m);
}

void ki_sweep_away(const char *folder) {
    DIR *dir = opendir(folder);
    int why = 0;
    if (!dir) return;
    for (const char *name; (name = ki_dir_next(dir, &why));) {
        if (number_of(name) > 0) unlinkat(dirfd(dir), name, 0);
    }
    ki_atomic_clear(folder, "", 0);
    unlinkat(dirfd(dir), KI_MANIFEST_NAME, 0);
    unlinkat(dirfd(dir), "lock", 0);
    closedir(dir);
}
