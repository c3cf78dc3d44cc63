/* Reading files, whole or in parts. Folders, devices and files beyond a limit are refused. Nothing is mapped: if a
 * mapped file is shortened, its readers are killed (SIGBUS); gather.h has the one way around that. */
#ifndef KI_FILE_H
#define KI_FILE_H

#include <dirent.h>
#include <stddef.h>

#include "base/error.h"

/* The whole file, followed by a NUL that is not counted (so that text can be used as a string). Free
 * *ret_bytes with ki_free. Works for pipes too. Over `limit` bytes is KITH_EFORMAT. */
kith_status ki_file_read(const char *path, size_t limit, char **ret_bytes, size_t *ret_n, kith_error *err);

typedef enum ki_file_wanted {
    KI_FILE_ONLY, /* a pipe is refused, without waiting for it: for files read more than once, or in parts */
    KI_FILE_OR_PIPE, /* pipes are fine, too: <(command), /dev/stdin */
} ki_file_wanted;

/* open(2) for reading and fstat(2), with their errors reported; the caller closes *ret_fd. *ret_bytes is -1
 * for a pipe, whose size is not known. */
kith_status ki_file_open(const char *path, ki_file_wanted wanted, int *ret_fd, long long *ret_bytes,
                         kith_error *err);
/* As ki_file_read, from the descriptor that ki_file_open returned; the file stays open. A pipe can be read only once:
 * read it from the descriptor that opened it, and do not open it again. */
kith_status ki_file_read_rest(int fd, long long file_bytes, const char *path, size_t limit, char **ret_bytes,
                              size_t *ret_n, kith_error *err);
/* The next bytes, up to n; *ret_n is 0 at the end. */
kith_status ki_file_read_some(int fd, const char *path, void *dst, size_t n, size_t *ret_n, kith_error *err);
/* Exactly n bytes from offset; KITH_EIO when the file ends before that. */
kith_status ki_file_read_at(int fd, const char *path, void *dst, size_t n, long long offset, kith_error *err);

/* The next name in a folder, except "." and ".."; NULL at its end. *ret_why is then 0, or the errno if the folder could
 * not be read to its end. A plain loop over readdir cannot tell the two apart. */
const char *ki_dir_next(DIR *dir, int *ret_why);

#endif
