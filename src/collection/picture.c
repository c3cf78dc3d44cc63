/* Pictures of a collection: where they lie, and which are the same. */
#include <string.h>

#include "base/argument.h"
#include "base/path.h"
#include "base/text.h"
#include "collection/ask.h"
#include "io/tar_file.h"
#include "search/notes.h"

/* Where paths that are not absolute begin; NULL: nowhere. */
static const char *folder_of(const kith_collection *c) { return ki_index_note(c->index, KI_NOTE_FOLDER); }

/* Or a member of a tar file. */
static bool is_file(const char *path) {
    return ki_is_file("%s", path) || (strstr(path, ".tar/") && ki_member_look(path, NULL, NULL));
}

const char *ki_collection_picture_file(const kith_collection *c, const char *path, char *buf,
                                       size_t buf_bytes) {
    if (!path) return NULL;
    const char *folder = path[0] == '/' ? NULL : folder_of(c);
    if (!folder) return is_file(path) ? path : NULL;
    const int n = ki_snprintf(buf, buf_bytes, "%s/%s", folder, path);
    return n > 0 && (size_t)n < buf_bytes && is_file(buf) ? buf : NULL;
}

kith_status kith_collection_picture(const kith_collection *collection, int64_t id, char *ret_path,
                                    size_t path_bytes, kith_error *err) {
    KI_NEED(err, collection, ret_path);
    char path[4096];
    kith_index_item item = {0};
    KI_TRY(ki_collection_has_index(collection, err));
    kith_status status = kith_index_item_get(collection->index, id, &item, err);
    if (status == KITH_ENOTFOUND) return ki_fail(err, status, "there is no item %lld", (long long)id);
    if (status != KITH_OK) return status;
    const char *file = ki_collection_picture_file(collection, item.path, path, sizeof path);
    if (!item.path)
        status = ki_fail(err, KITH_ENOTFOUND, "item %lld has no path; wanted its image", (long long)id);
    else if (!file)
        status = ki_fail(err, KITH_ENOTFOUND, "there is no picture of item %lld", (long long)id);
    else if (strlen(file) >= path_bytes)
        status = ki_fail(err, KITH_EINVAL, "the path of item %lld has %zu bytes; there is room for %zu",
                         (long long)id, strlen(file) + 1, path_bytes);
    else
        memcpy(ret_path, file, strlen(file) + 1);
    kith_index_item_release(&item);
    return status;
}

kith_status kith_collection_duplicates(const kith_collection *collection,
                                       const kith_duplicates_options *options,
                                       kith_duplicates *ret_duplicates, kith_error *err) {
    KI_NEED(err, collection, ret_duplicates);
    KI_OPTIONS_TAKE(kith_duplicates_options, o, options, err);
    KI_TRY(ki_collection_has_index(collection, err));
    o.folder = folder_of(collection);
    return kith_duplicates_find(collection->index, &o, ret_duplicates, err);
}

kith_status ki_ask_duplicates(ki_asking *a, const kith_duplicates **ret, kith_error *err) {
    kith_collection *c = a->collection;
    *ret = a->o.duplicates;
    if (*ret) return KITH_OK;
    if (c->duplicates_of != a->info.generation) {
        KITH_OPTIONS(kith_duplicates_options, options);
        options.progress = a->o.progress;
        options.user = a->o.user;
        kith_duplicates_release(&c->duplicates);
        c->duplicates_of = -1;
        KI_TRY(kith_collection_duplicates(c, &options, &c->duplicates, err));
        c->duplicates_of = a->info.generation;
    }
    *ret = &c->duplicates;
    return KITH_OK;
}
