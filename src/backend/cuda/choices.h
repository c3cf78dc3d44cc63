/* What was chosen, by what it was chosen for: lines of text, in memory and in one file per device and
 * library version, so that the next run need not try again.
 *
 * The file is a convenience. One that cannot be read, is of another device or version, or is broken, is
 * ignored with a log line; one that cannot be written too. It is replaced as a whole
 * (core/atomic.h), with the lines other processes have added meanwhile. */
#ifndef KI_CUDA_CHOICES_H
#define KI_CUDA_CHOICES_H

#include <stdbool.h>

#include "core/error.h"

typedef struct ki_choices ki_choices;

/* folder NULL: $XDG_CACHE_HOME/kith, else ~/.cache/kith. `made_for` names device and versions. Fails
 * only for want of memory. */
kith_status ki_choices_open(const char *folder, const char *made_for, ki_choices **ret_choices,
                            kith_error *err);
void ki_choices_free(ki_choices *choices); /* saves what is new; NULL is fine */

/* The choice made for a key, or NULL; valid until the next set. */
const char *ki_choices_get(const ki_choices *choices, const char *key);
/* Neither may hold a tab or a line's end. */
kith_status ki_choices_set(ki_choices *choices, const char *key, const char *value, kith_error *err);
void ki_choices_save(ki_choices *choices);
/* Take in what others have saved since; what is known here stays. */
void ki_choices_refresh(ki_choices *choices);
/* Is there a file that can be written? */
bool ki_choices_are_kept(const ki_choices *choices);

#endif
