/* What public functions do first with their arguments: refuse NULL, and read options of any size.
 *
 * An options struct begins with its size. A program that was compiled with fewer fields than this library has gets the
 * defaults for the others; one with more fields may run too, as long as those are 0. */
#ifndef KI_ARGUMENT_H
#define KI_ARGUMENT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Defines TYPE_init, with the defaults as a list of designated initialisers (0: none). */
#define KI_OPTIONS_INIT(type, ...)                                  \
    void type##_init(type *options, size_t size) {                  \
        const type defaults = {__VA_ARGS__};                        \
        ki_options_init(options, size, &defaults, sizeof defaults); \
    }
void ki_options_init(void *options, size_t size, const void *defaults, size_t bytes);

/* Declares `name`, a complete struct with the values of `given` (NULL: the defaults). Returns KITH_EINVAL from the
 * function when `given` cannot be read. */
#define KI_OPTIONS_TAKE(type, name, given, err) \
    KITH_OPTIONS(type, name);                   \
    KI_TRY(ki_options_take((given), &name, sizeof name, #type, err))
kith_status ki_options_take(const void *given, void *options, size_t bytes, const char *type,
                            kith_error *err);

/* Returns KITH_EINVAL from the function, and names the argument, when one of the pointers is NULL. */
#define KI_NEED(err, ...)                                                                       \
    KI_TRY(ki_need((const void *const[]){__VA_ARGS__},                                          \
                   sizeof((const void *const[]){__VA_ARGS__}) / sizeof(const void *), __func__, \
                   #__VA_ARGS__, err))
kith_status ki_need(const void *const *pointers, size_t n, const char *function, const char *names,
                    kith_error *err);

/* A list of n strings, none of them NULL. */
kith_status ki_need_strings(const char *const *strings, int64_t n, const char *name, kith_error *err);

/* The same for a count that is negative. */
#define KI_NEED_COUNT(err, n) KI_TRY(ki_need_count((n), __func__, #n, err))
kith_status ki_need_count(int64_t n, const char *function, const char *name, kith_error *err);

#endif
