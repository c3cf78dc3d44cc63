/* The entries of a zip archive in memory that are stored as they are: what torch.save writes. Packed and encrypted entries,
 * and archives of 4 GiB and more, are refused. */
#ifndef KI_ZIP_H
#define KI_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct ki_zip_entry {
    const char *name; /* not NUL-terminated */
    size_t name_length;
    const void *data; /* inside the archive's bytes */
    size_t n;
} ki_zip_entry;

typedef struct ki_zip {
    const unsigned char *bytes;
    size_t n;
    const char *name;                /* of the file, for errors */
    size_t directory, directory_end; /* of the list of entries */
    int64_t n_entries;
} ki_zip;

bool ki_zip_is(const void *bytes, size_t n); /* does it begin as a zip archive? */
/* Find the list of entries. Bytes and name are borrowed. */
kith_status ki_zip_open(const void *bytes, size_t n, const char *name, ki_zip *ret_zip, kith_error *err);
/* The entry at *at, which starts at 0 and is moved to the next one. *ret_more is false after the last. */
kith_status ki_zip_next(const ki_zip *zip, size_t *at, ki_zip_entry *ret_entry, bool *ret_more,
                        kith_error *err);

#endif
