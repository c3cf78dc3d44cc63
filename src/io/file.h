/* Reading files, whole or in parts. Folders, devices and files beyond a limit are refused. Nothing is mapped: whoever
 * shortens a mapped file kills its readers (SIGBUS). */
#ifndef KI_FILE_H
#define KI_FILE_H

#include <dirent.h>
#include <stddef.h>

#include "core/error.h"

/* The whole file, with a NUL behind it that is not counted (so that text can be used as a string).
 * Give *ret_bytes back with ki_free. Works for pipes too. Over `limit` bytes is KITH_EFORMAT. */
kith_status ki_file_read(const char *path, size_t limit, char **ret_bytes, size_t *ret_n, kith_error *err);

typedef enum ki_file_wanted {
    KI_FILE_ONLY, /* a pipe is refused, without waiting for its writer: for what is read more than once, or in parts */
    KI_FILE_OR_PIPE, /* for what people make on the way: <(command), /dev/stdin */
} ki_file_wanted;

/* open(2) for reading and fstat(2) with their errors said; the caller closes *ret_fd. *ret_bytes is
 * -1 when the file is a pipe, whose size cannot be asked. */
kith_status ki_file_open(const char *path, ki_file_wanted wanted, int *ret_fd, long long *ret_bytes,
                         kith_error *err);
/* As ki_file_read, from what ki_file_open gave; the file stays open. What a pipe has given is gone with the descriptor it was
 * opened with: whoever has opened one reads it, and does not open it again. */
kith_status ki_file_read_rest(int fd, long long file_bytes, const char *path, size_t limit, char **ret_bytes,
                              size_t *ret_n, kith_error *err);
/* The next bytes, up to n; *ret_n is 0 at the end. */
kith_status ki_file_read_some(int fd, const char *path, void *dst, size_t n, size_t *ret_n, kith_error *err);
/* Exactly n bytes from offset; KITH_EIO when the file ends before. */
kith_status ki_file_read_at(int fd, const char *path, void *dst, size_t n, long long offset, kith_error *err);

/* The next name in a folder, except "." and ".."; NULL at its end. *ret_why is then 0, or the errno if the folder could
 * not be read to its end. A plain loop over readdir cannot tell the two apart. */
const char *ki_dir_next(DIR *dir, int *ret_why);

#endif
