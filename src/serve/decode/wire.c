/* Reading and writing whole messages. */
#include "serve/decode/wire.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

/* Wait until something can be read or written. */
static bool wait_for(int fd, short what, double until) {
    if (until <= 0) return true;
    const double left = until - ki_seconds_now();
    struct pollfd one = {.fd = fd, .events = what};
    if (left <= 0) return false;
    const int n = poll(&one, 1, (int)(left * 1000) + 1);
    return n > 0 || (n < 0 && errno == EINTR);
}

bool ki_wire_read(int fd, void *bytes, size_t n, double until) {
    char *at = bytes;
    while (n > 0) {
        if (!wait_for(fd, POLLIN, until)) return false;
        const ssize_t m = read(fd, at, n);
        if (m < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (m <= 0) return false;
        at += m;
        n -= (size_t)m;
    }
    return true;
}

bool ki_wire_write(int fd, const void *bytes, size_t n, double until) {
    const char *at = bytes;
    while (n > 0) {
        if (!wait_for(fd, POLLOUT, until)) return false;
        /* The other end may be gone: that is an error here, not a signal. */
        const ssize_t m = until > 0 ? send(fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT) : write(fd, at, n);
        if (m < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (m <= 0) return false;
        at += m;
        n -= (size_t)m;
    }
    return true;
}
