/* The kinds of store: the only file beside their own rooms that names them. */
#include "search/local/local.h"
#include "search/remote/remote.h"

/* A folder takes what the others leave. */
static const ki_store_type *const types[] = {&ki_remote_store, &ki_local_store};

const ki_store_type *ki_store_type_for(const char *path) {
    size_t i = 0;
    while (!types[i]->claims(path)) i++;
    return types[i];
}

kith_status ki_store_fail_id(const ki_store *store, int64_t id, kith_error *err) {
    return ki_fail(err, KITH_ENOTFOUND, "%s has no item with id %lld", store->type->name(store),
                   (long long)id);
}
