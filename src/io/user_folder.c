/* Home, mkdir -p, and the tag of a cache. */
#include "io/user_folder.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"

const char *ki_variable(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

const char *ki_user_home(void) {
    const char *home = ki_variable("HOME");
    if (home) return home;
    const struct passwd *user = getpwuid(getuid());
    return user && user->pw_dir && *user->pw_dir ? user->pw_dir : NULL;
}

kith_status ki_folders_make(ki_path *path, mode_t mode, kith_error *err) {
    for (char *s = path->s + 1;; s++) {
        const char c = *s;
        if (c != '/' && c != '\0') continue;
        *s = '\0';
        const bool is_made = mkdir(path->s, mode) == 0 || errno == EEXIST || ki_is_folder("%s", path->s);
        const int why = errno;
        if (!is_made || !c) {
            if (!is_made || !ki_is_folder("%s", path->s))
                return ki_fail(err, KITH_EIO, "cannot make the folder %s: %s", path->s,
                               strerror(is_made ? ENOTDIR : why));
            return KITH_OK;
        }
        *s = c;
    }
}

void ki_cache_tag(const char *folder) {
    static const char text[] =
        "Signature: 8a477f597d28d172789f06886806bc55\n"
        "# This file is a cache directory tag, as https://bford.info/cachedir/ describes.\n";
    ki_path path;
    if (ki_path_print(&path, NULL, "%s/CACHEDIR.TAG", folder) != KITH_OK || ki_is_file("%s", path.s)) return;
    (void)ki_file_write(path.s, text, sizeof text - 1, NULL);
}
