/* Servers as stores: opening, changing, committing, asking. */
#include "search/remote/remote.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/plugin.h"
#include "search/files/segment.h"
#include "search/files/snapshot.h"

static bool claims(const char *path) {
    return strncmp(path, "postgresql://", strlen("postgresql://")) == 0 ||
           strncmp(path, "postgres://", strlen("postgres://")) == 0;
}

void ki_candidates_release(ki_candidates *c) {
    ki_free(c->id);
    ki_free(c->rows);
    *c = (ki_candidates){0};
}

/* ---- opening ---- */

static void close_store(ki_store *store) {
    ki_remote *r = ki_remote_of(store);
    r->type->close(r->link);
    ki_manifest_release(&r->now);
    ki_manifest_release(&r->next);
    if (r->has_lock) pthread_mutex_destroy(&r->lock);
    ki_free(r);
}

static kith_status connect(const char *address, bool writes, ki_remote **ret, kith_error *err) {
    kith_status status = KITH_OK;
    ki_remote *r = NULL;
    const void *type = NULL;
    static const ki_plugin_ask ask = {.name = "postgres",
                                      .what = "an index on PostgreSQL",
                                      .makes = "libpq is (libpq-dev)",
                                      .needs = "libpq (Debian and Ubuntu: libpq5)",
                                      .instead = "keep the index in a folder"};
    KI_TRY(ki_plugin_open(&ask, &type, err));
    KI_TRY(ki_zalloc_or(&r, 1, sizeof *r, "an index", err));
    r->type = type;
    r->store =
        (ki_store){.type = &ki_remote_store, .committed = &r->now, .pending = writes ? &r->next : NULL};
    if (pthread_mutex_init(&r->lock, NULL) != 0) {
        status = ki_fail_memory(err, sizeof r->lock, "a lock");
        goto done;
    }
    r->has_lock = true;
    KI_CHECK(r->type->open(address, writes, &r->link, err));
    *ret = r;
    r = NULL;
done:
    if (r) close_store(&r->store);
    return status;
}

/* What the server has committed becomes what the handle sees. */
static kith_status take_state(ki_remote *r, kith_error *err) {
    kith_status status = KITH_OK;
    ki_remote_state state = {0};
    ki_manifest now = {0}, next = {0};
    KI_CHECK(r->type->state(r->link, &state, err));
    KI_CHECK(ki_manifest_parse(state.manifest, strlen(state.manifest), ki_remote_name(r), &now, err));
    if (now.n_segments > 0) {
        status = ki_fail(err, KITH_EFORMAT, "%s names files, which a server has none of", ki_remote_name(r));
        goto done;
    }
    if (r->store.pending) KI_CHECK(ki_manifest_copy(&now, &next, err));
    if (next.next_id < state.next_id) next.next_id = state.next_id;
    ki_manifest_release(&r->now);
    ki_manifest_release(&r->next);
    r->now = now;
    r->next = next;
    now = next = (ki_manifest){0};
    r->state = state;
    r->state.manifest = NULL;
    r->n_items = state.n_items;
    r->store.is_changed = r->excludes = false;
done:
    ki_manifest_release(&now);
    ki_manifest_release(&next);
    ki_free(state.manifest);
    return status;
}

static kith_status open_store(const char *address, bool writes, ki_store **ret, kith_error *err) {
    ki_remote *r = NULL;
    KI_TRY(connect(address, writes, &r, err));
    const kith_status status = take_state(r, err);
    if (status == KITH_OK)
        *ret = &r->store;
    else
        close_store(&r->store);
    return status;
}

static kith_status create(const char *address, const ki_manifest *manifest, ki_store **ret, kith_error *err) {
    kith_status status = KITH_OK;
    ki_remote *r = NULL;
    if (manifest->first > 0) {
        ki_fail(err, KITH_EUNSUPPORTED, "candidates by the first %lld values are for an index in a folder",
                (long long)manifest->first);
        return ki_hint(err, KITH_EUNSUPPORTED, "leave first out: a server finds them by its own means");
    }
    KI_CHECK(connect(address, true, &r, err));
    KI_CHECK(r->type->create(r->link, manifest, err));
    KI_CHECK(take_state(r, err));
    r->store.is_changed = true; /* it is not there before the first commit */
    *ret = &r->store;
    r = NULL;
done:
    if (r) close_store(&r->store);
    return status;
}

static const char *name(const ki_store *store) { return ki_remote_name((const ki_remote *)store); }

static kith_status is_current(ki_store *store, bool *ret_is_current, kith_error *err) {
    ki_remote *r = ki_remote_of(store);
    int64_t generation = 0;
    pthread_mutex_lock(&r->lock);
    const kith_status status = r->type->generation(r->link, &generation, err);
    pthread_mutex_unlock(&r->lock);
    if (status == KITH_OK) *ret_is_current = generation == r->now.generation;
    return status;
}

static void info(ki_store *store, kith_index_info *to) {
    const ki_remote_state *state = &ki_remote_of(store)->state;
    to->n_items = state->n_items;
    to->file_bytes = state->bytes;
    to->tier = state->has_graph ? KITH_TIER_GRAPH : KITH_TIER_EXACT;
    to->recall = state->has_graph ? NAN : 1; /* the server does not measure it */
}

/* ---- changing ---- */

/* What failed at the server is undone there: the handle is of no use any more. */
static kith_status settle(ki_remote *r, kith_status status) {
    pthread_mutex_unlock(&r->lock);
    if (status != KITH_OK && status != KITH_EINVAL && status != KITH_ENOTFOUND) r->store.is_broken = true;
    return status;
}

static kith_status add(ki_store *store, const float *rows, int64_t n, const kith_index_item *items,
                       int64_t *ret_first_id, kith_error *err) {
    ki_remote *r = ki_remote_of(store);
    const int64_t first = r->next.next_id;
    for (int64_t i = 0; r->next.metric == KITH_COSINE && i < n; i++) {
        const double length = ki_remote_norm(rows + i * r->next.dim, r->next.dim);
        if (length == 0 || (length >= KI_REMOTE_LEAST_NORM && length <= KI_REMOTE_MOST_NORM)) continue;
        ki_fail(err, KITH_EINVAL, "row %lld has length %g; by the cosine the server compares 0, or %g to %g",
                (long long)i, length, KI_REMOTE_LEAST_NORM, KI_REMOTE_MOST_NORM);
        return ki_hint(err, KITH_EINVAL, "scale the rows: their cosines stay the same");
    }
    if (n > KI_MOST_ROWS - r->n_items)
        return ki_fail(err, KITH_EINVAL, "%lld rows and %lld more are too many for an index",
                       (long long)r->n_items, (long long)n);
    pthread_mutex_lock(&r->lock);
    kith_status status = r->type->add(r->link, &r->next, rows, n, items, first, err);
    if (status == KITH_OK && (r->next.n_excluded > 0 || r->excludes)) {
        r->excludes = true;
        status = r->type->include(r->link, first, err);
    }
    if (status == KITH_OK) {
        r->next.next_id += n;
        r->n_items += n;
        r->store.is_changed = true;
        *ret_first_id = first;
    }
    return settle(r, status);
}

static kith_status remove_items(ki_store *store, const int64_t *ids, int64_t n, bool excludes,
                                kith_error *err) {
    ki_remote *r = ki_remote_of(store);
    int64_t n_removed = 0, missing = -1;
    kith_status status = KITH_OK;
    pthread_mutex_lock(&r->lock);
    if (excludes) status = r->type->exclude(r->link, ids, n, err);
    if (status == KITH_OK) status = r->type->remove(r->link, ids, n, &n_removed, &missing, err);
    r->excludes |= excludes;
    if (status == KITH_OK) {
        r->n_items -= n_removed;
        r->store.is_changed = true;
    }
    if (status == KITH_ENOTFOUND) ki_store_fail_id(store, missing, err);
    return settle(r, status);
}

static kith_status restamp(ki_store *store, int64_t id, int64_t bytes, int64_t mtime_ns, kith_error *err) {
    ki_remote *r = ki_remote_of(store);
    bool is_there = false;
    pthread_mutex_lock(&r->lock);
    kith_status status = r->type->restamp(r->link, id, bytes, mtime_ns, &is_there, err);
    if (status == KITH_OK && !is_there) status = ki_store_fail_id(store, id, err);
    if (status == KITH_OK) r->store.is_changed = true;
    return settle(r, status);
}

static kith_status move(ki_store *store, const ki_file_record *move, int64_t bytes, int64_t mtime_ns,
                        kith_error *err) {
    ki_remote *r = ki_remote_of(store);
    bool is_there = false;
    pthread_mutex_lock(&r->lock);
    kith_status status = r->type->move(r->link, move, bytes, mtime_ns, &is_there, err);
    if (status == KITH_OK && !is_there) status = ki_store_fail_id(store, move->id, err);
    if (status == KITH_OK) r->store.is_changed = true;
    return settle(r, status);
}

static kith_status set(ki_store *store, const ki_new_values *values, kith_error *err) {
    ki_remote *r = ki_remote_of(store);
    int64_t missing = -1;
    pthread_mutex_lock(&r->lock);
    kith_status status = r->type->set(r->link, &r->next, values, &missing, err);
    if (status == KITH_ENOTFOUND) ki_store_fail_id(store, missing, err);
    if (status == KITH_OK) r->store.is_changed = true;
    return settle(r, status);
}

static kith_status exclude_file(ki_store *store, const ki_file_record *file, kith_error *err) {
    ki_remote *r = ki_remote_of(store);
    pthread_mutex_lock(&r->lock);
    const kith_status status = r->type->exclude_file(r->link, file, err);
    if (status == KITH_OK) r->store.is_changed = r->excludes = true;
    return settle(r, status);
}

static kith_status excluded(ki_store *store, ki_records *ret_excluded, kith_error *err) {
    ki_remote *r = ki_remote_of(store);
    pthread_mutex_lock(&r->lock);
    const kith_status status = r->type->excluded(r->link, ret_excluded, err);
    pthread_mutex_unlock(&r->lock);
    return status;
}

static kith_status commit(ki_store *store, bool compact, ki_tally *tally, kith_error *err) {
    ki_remote *r = ki_remote_of(store);
    if (!r->store.is_changed && !compact) return KITH_OK;
    const bool is_large = r->n_items > r->next.exact_numbers / r->next.dim;
    pthread_mutex_lock(&r->lock);
    r->next.generation = r->now.generation + 1;
    const ki_remote_commit commit = {.manifest = &r->next,
                                     .n_items = r->n_items,
                                     .wants_graph = is_large,
                                     .compacts = compact,
                                     .tally = tally};
    kith_status status = KITH_OK;
    if (r->excludes) status = r->type->count_excluded(r->link, &r->next.n_excluded, err);
    if (status == KITH_OK) status = r->type->commit(r->link, &commit, err);
    if (status == KITH_OK) status = take_state(r, err);
    if (status != KITH_OK) r->store.is_broken = true; /* also when it was stopped, as for a folder */
    return settle(r, status);
}

/* ---- asking ---- */

static kith_status ids(ki_store *store, const ki_where *where, int64_t **ret_ids, int64_t *ret_n,
                       kith_error *err) {
    ki_remote *r = ki_remote_of(store);
    pthread_mutex_lock(&r->lock);
    const kith_status status = r->type->ids(r->link, &r->now, where, ret_ids, ret_n, err);
    pthread_mutex_unlock(&r->lock);
    return status;
}

static kith_status count(ki_store *store, const ki_where *where, int64_t column, ki_count_fn *fn, void *user,
                         int64_t *ret_n_allowed, kith_error *err) {
    ki_remote *r = ki_remote_of(store);
    pthread_mutex_lock(&r->lock);
    kith_status status = r->type->count(r->link, &r->now, where, ret_n_allowed, err);
    if (status == KITH_OK) status = r->type->values(r->link, &r->now, where, column, fn, user, err);
    pthread_mutex_unlock(&r->lock);
    return status;
}

static kith_status item(ki_store *store, int64_t id, kith_value *ret_cells, kith_error *err) {
    ki_remote *r = ki_remote_of(store);
    bool is_there = false;
    pthread_mutex_lock(&r->lock);
    kith_status status = r->type->item(r->link, &r->now, id, ret_cells, &is_there, err);
    if (status == KITH_OK && !is_there) status = ki_store_fail_id(store, id, err);
    pthread_mutex_unlock(&r->lock);
    return status;
}

static kith_status vectors(ki_store *store, const int64_t *ids, int64_t n, float *ret_rows, kith_error *err) {
    ki_remote *r = ki_remote_of(store);
    int64_t missing = -1;
    pthread_mutex_lock(&r->lock);
    const kith_status status = r->type->vectors(r->link, &r->now, ids, n, ret_rows, &missing, err);
    if (status == KITH_ENOTFOUND) ki_store_fail_id(store, missing, err);
    pthread_mutex_unlock(&r->lock);
    return status;
}

static kith_status labels(ki_store *store, const int64_t *ids, int64_t n, ki_arena *arena,
                          const char **ret_labels, kith_error *err) {
    ki_remote *r = ki_remote_of(store);
    pthread_mutex_lock(&r->lock);
    const kith_status status = r->type->labels(r->link, ids, n, arena, ret_labels, err);
    pthread_mutex_unlock(&r->lock);
    return status;
}

/* ---- stamps ---- */

typedef struct listing {
    ki_item_stamp *stamps;
    size_t n, capacity;
    ki_arena *texts;
    kith_status status;
} listing;

static void take_stamp(void *user, int64_t id, const char *path, int64_t bytes, int64_t mtime_ns) {
    listing *l = user;
    if (l->status != KITH_OK) return;
    l->status = ki_grow(&l->stamps, &l->capacity, l->n + 1, sizeof *l->stamps, "items", NULL);
    const char *copy = path && l->status == KITH_OK ? ki_arena_strdup(l->texts, path) : NULL;
    if (path && !copy) l->status = KITH_ENOMEM;
    if (l->status == KITH_OK) l->stamps[l->n++] = (ki_item_stamp){id, bytes, mtime_ns, copy};
}

static kith_status stamps(ki_store *store, ki_arena *arena, ki_item_stamp **ret_stamps, int64_t *ret_n,
                          kith_error *err) {
    ki_remote *r = ki_remote_of(store);
    listing l = {.texts = arena};
    pthread_mutex_lock(&r->lock);
    kith_status status = r->type->stamps(r->link, take_stamp, &l, err);
    pthread_mutex_unlock(&r->lock);
    if (status == KITH_OK && l.status != KITH_OK) status = ki_fail_memory(err, sizeof *l.stamps, "items");
    if (status != KITH_OK) {
        ki_free(l.stamps);
        return status;
    }
    *ret_stamps = l.stamps;
    *ret_n = (int64_t)l.n;
    return KITH_OK;
}

/* ---- the table ---- */

static kith_status column_add(ki_store *store, const char *column, kith_value_type type, kith_error *err) {
    store->is_changed = true;
    return ki_manifest_column_add(store->pending, column, type, err);
}

static kith_status check(ki_store *store, const kith_work_options *options, int64_t *ret_bytes,
                         kith_error *err) {
    (void)options;
    (void)ret_bytes;
    ki_fail(err, KITH_EUNSUPPORTED, "%s is kept by a server, which looks after its own files", name(store));
    return ki_hint(err, KITH_EUNSUPPORTED, "check it there, with pg_amcheck for instance");
}

const ki_store_type ki_remote_store = {
    .wants_utf8 = true,
    .is_far = true,
    .claims = claims,
    .create = create,
    .open = open_store,
    .close = close_store,
    .name = name,
    .info = info,
    .is_current = is_current,
    .add = add,
    .remove = remove_items,
    .move = move,
    .restamp = restamp,
    .set = set,
    .exclude_file = exclude_file,
    .column_add = column_add,
    .commit = commit,
    .excluded = excluded,
    .ids = ids,
    .count = count,
    .item = item,
    .vectors = vectors,
    .labels = labels,
    .stamps = stamps,
    .search = ki_remote_search,
    .check = check,
};
