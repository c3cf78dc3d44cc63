/* Status codes and error text.
 *
 * Every fallible function returns a kith_status and takes a caller-owned `kith_error *` as its last argument
 * (NULL is fine). On failure the error contains one factual line, and often a hint that says what to do; on
 * success it is unchanged. The library has no global error state, does not print and does not exit. */
#ifndef KITH_STATUS_H
#define KITH_STATUS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define KITH_API __attribute__((visibility("default")))
#define KITH_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define KITH_API
#define KITH_PRINTF(fmt, args)
#endif

/* The one list: enum value, name and text are all made from it. Values are never renumbered. */
#define KITH_STATUS_LIST(X)                                 \
    X(OK, 0, "success")                                     \
    X(EINVAL, 1, "invalid argument or value")               \
    X(ENOMEM, 2, "out of memory")                           \
    X(EIO, 3, "a file could not be read or written")        \
    X(EFORMAT, 4, "malformed file")                         \
    X(ESHAPE, 5, "shapes do not fit together")              \
    X(ENOTFOUND, 6, "no such name")                         \
    X(EUNSUPPORTED, 7, "not supported here")                \
    X(ENUMERIC, 8, "a value is not a finite number")        \
    X(ECANCELED, 9, "stopped on request")                   \
    X(EBACKEND, 10, "a compute library reported a failure") \
    X(EINTERNAL, 11, "a bug in kith")

typedef enum kith_status {
#define KITH_STATUS_ENUM(name, value, text) KITH_##name = (value),
    KITH_STATUS_LIST(KITH_STATUS_ENUM)
#undef KITH_STATUS_ENUM
} kith_status;

typedef struct kith_error {
    kith_status status;
    char message[480]; /* one line: what was found, what was wanted */
    char hint[256];    /* one sentence: what to do; may be empty */
} kith_error;

/* "KITH_EINVAL" for KITH_EINVAL; "KITH_?" for a value that is not a status. */
KITH_API const char *kith_status_name(kith_status status);
/* The list's text for the status. */
KITH_API const char *kith_status_text(kith_status status);

/* Declare options and give every field its default:
 *
 *     KITH_OPTIONS(kith_model_options, options);
 *     options.weights = "birds.safetensors";
 *
 * It calls kith_model_options_init(&options, sizeof options), which bindings can use, too. The size tells the library
 * which fields a program knows; a newer library gives its additional fields their defaults. Options that no _init has
 * set up (size 0) are KITH_EINVAL. A NULL pointer to options means the defaults. */
#define KITH_OPTIONS(type, name) \
    type name;                   \
    type##_init(&name, sizeof(type))

/* Long work calls this now and then, from one thread; a non-zero result stops the work with KITH_ECANCELED. */
typedef int (*kith_progress_fn)(void *user, int64_t n_done, int64_t n_all);

#ifdef __cplusplus
}
#endif
#endif
