/* Text helpers for programs: the nearest name for a misspelt one, numbers without the locale, whole
 * files at once. */
#ifndef KITH_TEXT_H
#define KITH_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The name nearest to `word`, or NULL when none is similar enough to suggest. */
KITH_API const char *kith_nearest(const char *word, const char *const *names, int64_t n_names);

/* Whole-string parses, the same in every locale: false, and *ret untouched, for anything but one
 * number. */
KITH_API bool kith_parse_real(const char *text, double *ret);
KITH_API bool kith_parse_int(const char *text, int64_t *ret);

/* Write n bytes of text as a file: to a temporary file, which is synced and renamed. */
KITH_API kith_status kith_text_write(const char *path, const char *text, size_t n, kith_error *err);

/* Take the password out of the address of a server, "postgresql://me:secret@host/db" or "…?password=secret", in place, so that nothing prints it.
 * *ret_password is without its %XX, to be freed with kith_string_free; NULL: there is none, or the text is no address. KITH_EINVAL: it
 * cannot be said where the password ends, or what follows a ':' is neither a port nor a password. */
KITH_API kith_status kith_address_take_password(char *address, char **ret_password, kith_error *err);

/* Free a string that the library made. NULL is fine. */
KITH_API void kith_string_free(char *text);

#ifdef __cplusplus
}
#endif
#endif
