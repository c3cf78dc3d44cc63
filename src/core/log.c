/* The log's callback and level, and writing a line to it. */
#include "core/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

static kith_log_fn log_fn;
static void *log_user;
static kith_log_level log_least;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

void kith_log_set(kith_log_fn fn, void *user, kith_log_level least) {
    log_fn = fn;
    log_user = user;
    log_least = least;
}

void ki_log(kith_log_level level, const char *fmt, ...) {
    if (!log_fn || level < log_least) return;
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    pthread_mutex_lock(&log_lock);
    log_fn(log_user, level, line);
    pthread_mutex_unlock(&log_lock);
}
