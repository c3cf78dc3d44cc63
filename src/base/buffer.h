/* Bytes that grow, and text written into them: files made in memory before they are written whole.
 *
 * The first failure is kept in `status` and every later call does nothing, so the writer of a page checks
 * once, at the end. Zero-initialise it, set err (may be NULL), and release it with ki_buffer_release. Numbers
 * follow the thread's locale, as printf's do. */
#ifndef KI_BUFFER_H
#define KI_BUFFER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

typedef struct ki_buffer {
    char *data;
    size_t n, capacity;
    kith_status status;
    kith_error *err;
} ki_buffer;

void ki_buffer_release(ki_buffer *buffer);

void ki_buffer_add(ki_buffer *buffer, const void *bytes, size_t n);
void ki_buffer_put(ki_buffer *buffer, const char *fmt, ...) KITH_PRINTF(2, 3);
void ki_buffer_vput(ki_buffer *buffer, const char *fmt, va_list ap) KITH_PRINTF(2, 0);
/* Text inside HTML, SVG or an attribute's double quotes: & < > " ' as entities, control characters and bytes
 * that are not UTF-8 as U+FFFD. */
void ki_buffer_escaped(ki_buffer *buffer, const char *text);
void ki_buffer_base64(ki_buffer *buffer, const void *bytes, size_t n);

#endif
