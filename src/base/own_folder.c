/* The folder that this code was loaded from. */
#include "base/own_folder.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static const char here; /* an address in this code */

bool ki_own_folder(ki_path *ret) {
    Dl_info info;
    char resolved[sizeof ret->s];
    if (!dladdr((const void *)&here, &info) || !info.dli_fname) return false;
    /* For a program this is the name it was called by; /proc knows where it is. */
    const char *path = strchr(info.dli_fname, '/') && realpath(info.dli_fname, resolved) ? resolved : NULL;
    if (!path) path = realpath("/proc/self/exe", resolved);
    if (!path || !strrchr(path, '/')) return false;
    return ki_path_print(ret, NULL, "%.*s", (int)(strrchr(path, '/') - path), path) == KITH_OK;
}
