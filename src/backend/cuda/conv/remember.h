/* Which way was chosen for which pass: lines of text, in memory and in one file per device and library
 * version, so that the next run need not time anything.
 *
 * The file is a convenience. If it cannot be read or written, is of another device or version, or is damaged,
 * it is ignored, with a log line. It is replaced as a whole (base/atomic.h), with the lines other processes
 * have added meanwhile. */
#ifndef KI_CUDA_CONV_REMEMBER_H
#define KI_CUDA_CONV_REMEMBER_H

#include <stdbool.h>

#include "base/error.h"

typedef struct ki_remembered ki_remembered;

/* folder NULL: $XDG_CACHE_HOME/kith, else ~/.cache/kith. `made_for` names device and versions. Fails only for
 * lack of memory. */
kith_status ki_remembered_open(const char *folder, const char *made_for, ki_remembered **ret_remembered,
                               kith_error *err);
void ki_remembered_free(ki_remembered *remembered); /* saves what is new; NULL is fine */

/* What is remembered for a key, or NULL; valid until the next set. */
const char *ki_remembered_get(const ki_remembered *remembered, const char *key);
/* Neither may contain a tab or a newline. */
kith_status ki_remembered_set(ki_remembered *remembered, const char *key, const char *value, kith_error *err);
void ki_remembered_save(ki_remembered *remembered);
/* Add what others have saved since; what is known here stays. */
void ki_remembered_refresh(ki_remembered *remembered);
/* Is there a file that can be written? */
bool ki_remembered_is_kept(const ki_remembered *remembered);

#endif
