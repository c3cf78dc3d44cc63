/* A file that one process at a time can hold. It is released when it is closed or when the process ends for any reason. */
#ifndef KI_IO_LOCK_H
#define KI_IO_LOCK_H

#include <stdbool.h>

#include "base/error.h"

/* Creates the file if necessary. *ret_is_mine false: another process holds it. *ret_fd is open either way, for the caller to
 * close; -1 on failure. */
kith_status ki_lock_try(const char *path, int *ret_fd, bool *ret_is_mine, kith_error *err);

#endif
