/* Locking a file. */
#include "io/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

kith_status ki_lock_try(const char *path, int *ret_fd, bool *ret_is_mine, kith_error *err) {
    *ret_is_mine = false;
    *ret_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (*ret_fd < 0) return ki_fail(err, KITH_EIO, "cannot write %s: %s", path, strerror(errno));
    *ret_is_mine = flock(*ret_fd, LOCK_EX | LOCK_NB) == 0;
    if (*ret_is_mine || errno == EWOULDBLOCK) return KITH_OK;
    const int why = errno;
    close(*ret_fd);
    *ret_fd = -1;
    return ki_fail(err, KITH_EIO, "cannot lock %s: %s", path, strerror(why));
}
