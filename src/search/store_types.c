/* Which store serves a path, by the rows of table.def. */
#include "search/store_type.h"

#define X(name) extern const ki_store_type ki_##name##_store;
#include "search/table.def"
#undef X

static const ki_store_type *const types[] = {
#define X(name) &ki_##name##_store,
#include "search/table.def"
#undef X
};

const ki_store_type *ki_store_type_for(const char *path) {
    size_t i = sizeof types / sizeof types[0] - 1;
    while (i > 0 && !types[i]->claims(path)) i--;
    return types[i];
}

kith_status ki_store_fail_id(const ki_store *store, int64_t id, kith_error *err) {
    return ki_fail(err, KITH_ENOTFOUND, "%s has no item with id %lld", store->type->name(store),
                   (long long)id);
}
