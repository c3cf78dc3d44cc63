/* Log lines to the process's callback, one at a time. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/process.h"
#include "base/redact.h"
#include "base/text.h"

void kith_log_set(kith_log_fn fn, void *user, kith_log_level least) {
    ki_process *process = ki_process_now();
    process->log_fn = fn;
    process->log_user = user;
    process->log_least = least;
}

void ki_log(kith_log_level level, const char *fmt, ...) {
    ki_process *process = ki_process_now();
    if (!process->log_fn || level < process->log_least) return;
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    ki_vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    ki_redact(line);
    ki_make_line(line);
    pthread_mutex_lock(&process->log_lock);
    process->log_fn(process->log_user, level, line);
    pthread_mutex_unlock(&process->log_lock);
}
