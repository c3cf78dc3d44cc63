/* The names in a folder that are wanted, in their order. */
#ifndef KI_IO_NAMES_H
#define KI_IO_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "kith/status.h"

typedef struct ki_names {
    char **item;
    size_t n, capacity;
} ki_names;

typedef bool (*ki_names_fn)(const void *user, const char *name);

/* Names for which `is_wanted` holds, sorted; none where there is no such folder. `ret` begins with zeros, and the caller releases it
 * also after a failure. KITH_EIO: the folder cannot be read to its end. */
kith_status ki_names_read(const char *folder, ki_names_fn is_wanted, const void *user, ki_names *ret,
                          kith_error *err);
void ki_names_release(ki_names *names);

#endif
