/* Writing a file so that a reader, or a machine that loses power, sees the old one or the new one.
 *
 *     ki_atomic_file file = {0};
 *     KI_CHECK(ki_atomic_open(&file, path, err));
 *     KI_CHECK(ki_atomic_write(&file, bytes, n, err));
 *     KI_CHECK(ki_atomic_commit(&file, err));
 *     done:
 *     ki_atomic_discard(&file);
 *
 * The bytes go to a temporary file in the same folder, which is synced and renamed over the old one
 * (whose permissions it takes over); then the folder is synced. Until commit succeeds the old file
 * stays as it was. A symbolic link is followed. A device or a pipe (/dev/stdout) is written as it is. */
#ifndef KI_ATOMIC_H
#define KI_ATOMIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct ki_atomic_file {
    bool is_open;
    int fd;
    char *path;      /* as the caller gave it, for error lines */
    char *target;    /* what is renamed over: path with links followed */
    char *temporary; /* NULL when the target is written directly */
} ki_atomic_file;

kith_status ki_atomic_open(ki_atomic_file *file, const char *path, kith_error *err);
kith_status ki_atomic_write(ki_atomic_file *file, const void *bytes, size_t n, kith_error *err);
kith_status ki_atomic_commit(ki_atomic_file *file, kith_error *err);
/* Remove what was written, unless it was committed. Always called; fine on a zeroed struct. */
void ki_atomic_discard(ki_atomic_file *file);

/* Open, write, commit. */
kith_status ki_file_write(const char *path, const void *bytes, size_t n, kith_error *err);

/* Sync the folder that a file or folder lies in: what was made or renamed there stays after a loss of power. */
kith_status ki_parent_sync(const char *path, kith_error *err);

/* Remove half-written temporary files that killed processes left in a folder: those whose target's name begins with the
 * prefix ("": all) and that were not written to for `idle_s` seconds. Pass 0 only if no other process writes such
 * files. */
void ki_atomic_clear(const char *folder, const char *beginning, int64_t idle_s);

#endif
