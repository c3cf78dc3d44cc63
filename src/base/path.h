/* Paths in fixed buffers, and what kind of file a path names. */
#ifndef KI_PATH_H
#define KI_PATH_H

#include <stdbool.h>

#include "base/error.h"

/* A path in a fixed buffer; KITH_EINVAL when it is too long. */
typedef struct ki_path {
    char s[4096];
} ki_path;

kith_status ki_path_print(ki_path *ret_path, kith_error *err, const char *fmt, ...) KITH_PRINTF(3, 4);
bool ki_is_file(const char *fmt, ...) KITH_PRINTF(1, 2);
bool ki_is_folder(const char *fmt, ...) KITH_PRINTF(1, 2);
/* Is it the folder, or does it lie below it, by the names alone? */
bool ki_path_is_below(const char *path, const char *folder);

#endif
