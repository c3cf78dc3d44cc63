/* The user's own folders: home, folders made below it, caches. */
#ifndef KI_IO_USER_FOLDER_H
#define KI_IO_USER_FOLDER_H

#include <sys/stat.h>

#include "base/path.h"

/* The value of an environment variable; NULL where it is empty, too. */
const char *ki_variable(const char *name);

/* $HOME, else what the system's list of users says; NULL: there is none. Lives until the next call. */
const char *ki_user_home(void);

/* mkdir -p, with this mode for folders that are made; `path` is changed while it works. */
kith_status ki_folders_make(ki_path *path, mode_t mode, kith_error *err);

/* Say in a folder that it is a cache: backup programs then leave it out. Nothing is said where that cannot be written. */
void ki_cache_tag(const char *folder);

#endif
