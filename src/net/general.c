/* Looking for the model that came with kith: beside the code, never in the current folder. */
#include "net/general.h"

#include <stdlib.h>
#include <string.h>

#include "base/own_folder.h"
#include "base/path.h"

static const char file_name[] = KI_GENERAL ".safetensors";

static kith_status take(const ki_path *found, char *ret_file, size_t bytes, kith_error *err) {
    char whole[4096];
    const char *path = realpath(found->s, whole) ? whole : found->s;
    const size_t n = strlen(path);
    if (n >= bytes)
        return ki_fail(err, KITH_EINVAL, "the model's path is longer than %zu bytes: %.60s…", bytes - 1,
                       path);
    memcpy(ret_file, path, n + 1);
    return KITH_OK;
}

static kith_status fail_missing(const char *told, kith_error *err) {
    if (told)
        ki_fail(err, KITH_ENOTFOUND, "the model %s is not installed: there is no %.300s/%s (KITH_MODELS)",
                KI_GENERAL, told, file_name);
    else
        ki_fail(err, KITH_ENOTFOUND, "the model %s is not installed beside this kith", KI_GENERAL);
    return ki_hint(
        err, KITH_ENOTFOUND,
        "name another one: --model RUN, --model MODEL.safetensors, or --model hub:resnet50 after kith "
        "pull resnet50");
}

kith_status ki_general_find(char *ret_file, size_t bytes, kith_error *err) {
    /* As installed, from bin/ and lib/; from lib/ARCHITECTURE; of a build folder; of a folder in one. */
    static const char *const places[] = {"../share/kith/models", "../../share/kith/models", "../models",
                                         "../../models"};
    const char *told = secure_getenv("KITH_MODELS");
    ki_path folder, file;
    if (told && *told) {
        KI_TRY(ki_path_print(&file, err, "%s/%s", told, file_name));
        return ki_is_file("%s", file.s) ? take(&file, ret_file, bytes, err) : fail_missing(told, err);
    }
    for (size_t i = 0; ki_own_folder(&folder) && i < sizeof places / sizeof places[0]; i++) {
        if (ki_path_print(&file, NULL, "%s/%s/%s", folder.s, places[i], file_name) == KITH_OK &&
            ki_is_file("%s", file.s))
            return take(&file, ret_file, bytes, err);
    }
    return fail_missing(NULL, err);
}
