/* A file that one process at a time holds; given up when it is closed, or when the process ends however it ends. */
#ifndef KI_IO_LOCK_H
#define KI_IO_LOCK_H

#include <stdbool.h>

#include "core/error.h"

/* Makes the file if need be. *ret_is_mine false: another process holds it. *ret_fd is open either way, for the caller to
 * close; -1 on failure. */
kith_status ki_lock_try(const char *path, int *ret_fd, bool *ret_is_mine, kith_error *err);

#endif
