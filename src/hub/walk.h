/* Going through the folders of the cache. */
#ifndef KI_HUB_WALK_H
#define KI_HUB_WALK_H

#include <sys/stat.h>

#include "base/error.h"
#include "base/path.h"

/* Called for every name in a folder. `info` is of what a link leads to when `follows`, else of the link itself; what has gone
 * meanwhile is left out. */
typedef kith_status ki_hub_visit_fn(void *user, const char *path, const char *name, const struct stat *info,
                                    kith_error *err);

/* A folder that is not there is empty. Names come sorted. */
kith_status ki_hub_walk(const char *folder, bool follows, ki_hub_visit_fn *visit, void *user,
                        kith_error *err);

#endif
