/* The names in a folder that are wanted; see names.h. */
#include "io/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "io/file.h"

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

kith_status ki_names_read(const char *folder, ki_names_fn is_wanted, const void *user, ki_names *ret,
                          kith_error *err) {
    kith_status status = KITH_OK;
    DIR *dir = opendir(folder);
    if (!dir && errno == ENOENT) return KITH_OK;
    if (!dir) return ki_fail(err, KITH_EIO, "cannot read folder %s: %s", folder, strerror(errno));
    int why = 0;
    for (const char *name; (name = ki_dir_next(dir, &why));) {
        if (!is_wanted(user, name)) continue;
        KI_CHECK(ki_grow(&ret->item, &ret->capacity, ret->n + 1, sizeof *ret->item, "names", err));
        ret->item[ret->n] = ki_strdup(name);
        if (!ret->item[ret->n]) KI_CHECK(ki_fail_memory(err, strlen(name), "a name"));
        ret->n++;
    }
    if (why) KI_CHECK(ki_fail(err, KITH_EIO, "cannot read folder %s: %s", folder, strerror(why)));
    if (ret->n > 0) qsort(ret->item, ret->n, sizeof *ret->item, by_name);
done:
    closedir(dir);
    return status;
}

void ki_names_release(ki_names *names) {
    for (size_t i = 0; i < names->n; i++) ki_free(names->item[i]);
    ki_free(names->item);
    *names = (ki_names){0};
}
