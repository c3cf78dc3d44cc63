/* What a store does: the one interface between the public functions (index*.c) and whatever keeps an index.
 *
 * A folder (local/) and a server (remote/) implement it. The public functions check arguments, parse filters, and translate paths of
 * an index that was moved; then they call the store of the handle. They never ask which kind of store it is: what differs is a
 * function or a field here.
 *
 * Arguments have been checked: pointers, counts, that the handle writes where it must, that rows are finite float32 of the right
 * dimension, that values fit their columns. Functions that ask answer from the last commit; a store may show a writer its pending
 * changes. Several threads may ask a reader at once; a writer belongs to one thread. Ids count up from 0, are never given twice and
 * come in ascending order. Errors about an id that is not there are ki_store_fail_id. */
#ifndef KI_SEARCH_STORE_TYPE_H
#define KI_SEARCH_STORE_TYPE_H

#include "search/files/manifest.h"
#include "search/files/records.h"
#include "search/files/updates.h"
#include "search/filter.h"
#include "search/tally.h"

typedef struct ki_store_type ki_store_type;

/* What every store has: the struct of a store begins with it, and the store keeps it true. */
typedef struct ki_store {
    const ki_store_type *type;
    const ki_manifest *committed; /* of the last commit that the handle sees */
    ki_manifest *pending;         /* the same with pending changes, for the next commit; NULL: a reader */
    bool is_changed;              /* there are pending changes; the public functions set it, too */
    bool is_broken;               /* a change failed: the store can only be closed */
} ki_store;

/* What compares an item with a file. */
typedef struct ki_item_stamp {
    int64_t id, bytes, mtime_ns;
    const char *path; /* NULL: none */
} ki_item_stamp;

/* n items have this value, which lives as long as the call. */
typedef kith_status ki_count_fn(void *user, const kith_value *value, int64_t n, kith_error *err);

struct ki_store_type {
    bool wants_utf8; /* texts must be UTF-8; false: any bytes */
    bool is_far;     /* opening one takes a connection, and is not done only to see what is there */

    /* ---- opening ---- */

    /* Does this type serve the path? The last row of table.def that says so does. */
    bool (*claims)(const char *path);
    /* Make an empty index with this manifest, and open it for writing. KITH_EINVAL when something is there. */
    kith_status (*create)(const char *path, const ki_manifest *manifest, ki_store **ret_store,
                          kith_error *err);
    /* Open the last commit. KITH_EINVAL when it writes and another process does. */
    kith_status (*open)(const char *path, bool writes, ki_store **ret_store, kith_error *err);
    void (*close)(ki_store *store); /* drops what was not committed; never NULL */

    /* ---- what it is ---- */

    /* For messages; never a password. Lives until the next commit. */
    const char *(*name)(const ki_store *store);
    /* The folder it lies in, so that it may have been moved together with its files (place.h). NULL function: in none. */
    const char *(*folder)(const ki_store *store);
    /* Fills in what the manifest does not say: items, removed, segments, bytes, memory, tier, bits, lists, recall. The rest
     * is filled in, what it leaves is 0. */
    void (*info)(ki_store *store, kith_index_info *info);
    /* kith_index_is_current. NULL function: nobody else can commit. */
    kith_status (*is_current)(ki_store *store, bool *ret_is_current, kith_error *err);
    /* kith_index_keep. NULL function: it keeps no vectors in memory. */
    void (*keep)(ki_store *store, int64_t most_bytes);

    /* ---- changing ---- */

    /* items [n] or NULL. The ids count up from *ret_first_id. */
    kith_status (*add)(ki_store *store, const float *rows, int64_t n, const kith_index_item *items,
                       int64_t *ret_first_id, kith_error *err);
    /* KITH_ENOTFOUND for the first id that is not there; then none is removed. An id may be in the list twice. excludes: their
     * paths and hashes join the list of excluded files, until a path is added again. */
    kith_status (*remove)(ki_store *store, const int64_t *ids, int64_t n, bool excludes, kith_error *err);
    /* The item of move->id has this path and label, size and date. */
    kith_status (*move)(ki_store *store, const ki_file_record *move, int64_t bytes, int64_t mtime_ns,
                        kith_error *err);
    kith_status (*restamp)(ki_store *store, int64_t id, int64_t bytes, int64_t mtime_ns, kith_error *err);
    /* Values and labels of items. KITH_ENOTFOUND for the first id that is not there; then nothing changes. */
    kith_status (*set)(ki_store *store, const ki_new_values *values, kith_error *err);
    /* One more excluded file; or, with the id of one there is, that one under another path. */
    kith_status (*exclude_file)(ki_store *store, const ki_file_record *file, kith_error *err);
    kith_status (*column_add)(ki_store *store, const char *name, kith_value_type type, kith_error *err);
    /* Pending changes become the last commit; compact: also write everything anew. Without either, nothing happens. tally tells
     * whoever waits. */
    kith_status (*commit)(ki_store *store, bool compact, ki_tally *tally, kith_error *err);

    /* ---- asking ---- */

    /* The excluded files, by id, behind those of ret_excluded. */
    kith_status (*excluded)(ki_store *store, ki_records *ret_excluded, kith_error *err);
    /* where NULL: all. *ret_ids is given back with ki_free. */
    kith_status (*ids)(ki_store *store, const ki_where *where, int64_t **ret_ids, int64_t *ret_n,
                       kith_error *err);
    /* ret_cells [KI_COLUMN_FIRST + committed columns], zeroed before; texts are given back with ki_free, also after a failure. */
    kith_status (*item)(ki_store *store, int64_t id, kith_value *ret_cells, kith_error *err);
    /* Tell `fn` the values of a column, by number, that items have which `where` holds for, in any order; a value may come several times.
     * Its failure ends the walk. *ret_n_allowed: how many items those are. NULL function: they are asked one by one. */
    kith_status (*count)(ki_store *store, const ki_where *where, int64_t column, ki_count_fn *fn, void *user,
                         int64_t *ret_n_allowed, kith_error *err);
    /* ret_rows [n, dim], in the order of ids. KITH_ENOTFOUND for the first id that is not there. */
    kith_status (*vectors)(ki_store *store, const int64_t *ids, int64_t n, float *ret_rows, kith_error *err);
    /* ret_labels [n]; NULL: none, or no such item. They live as long as the arena and the commit. */
    kith_status (*labels)(ki_store *store, const int64_t *ids, int64_t n, ki_arena *arena,
                          const char **ret_labels, kith_error *err);
    /* All items, ascending; given back with ki_free. Paths live as long as the arena and the commit. */
    kith_status (*stamps)(ki_store *store, ki_arena *arena, ki_item_stamp **ret_stamps, int64_t *ret_n,
                          kith_error *err);
    /* kith_index_search, with all queries at once; options->where is not read, `where` (NULL: all) is. */
    kith_status (*search)(ki_store *store, const kith_array *query, const ki_where *where,
                          const kith_search_options *options, kith_hits *ret_hits, kith_error *err);
    /* kith_index_check. */
    kith_status (*check)(ki_store *store, const kith_work_options *options, int64_t *ret_bytes,
                         kith_error *err);
};

/* Who serves this path (store_types.c, table.def); never NULL. */
const ki_store_type *ki_store_type_for(const char *path);

/* KITH_ENOTFOUND: there is no such item. */
kith_status ki_store_fail_id(const ki_store *store, int64_t id, kith_error *err);

#endif
