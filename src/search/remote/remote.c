/* Handles of indexes that a server keeps: opening, changing, committing, asking. */
#include "search/remote/remote.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/plugin.h"
#include "search/store/segment.h"
#include "search/store/snapshot.h"

bool ki_is_address(const char *path) {
    return strncmp(path, "postgresql://", strlen("postgresql://")) == 0 ||
           strncmp(path, "postgres://", strlen("postgres://")) == 0;
}

void ki_candidates_release(ki_candidates *c) {
    ki_free(c->id);
    ki_free(c->rows);
    *c = (ki_candidates){0};
}

/* ---- opening ---- */

static kith_status connect(const char *address, bool writes, ki_remote **ret, kith_error *err) {
    kith_status status = KITH_OK;
    ki_remote *r = NULL;
    const void *type = NULL;
    static const ki_plugin_ask ask = {.name = "postgres",
                                      .what = "an index on PostgreSQL",
                                      .makes = "libpq is (libpq-dev)",
                                      .instead = "keep the index in a folder"};
    KI_TRY(ki_plugin_open(&ask, &type, err));
    KI_TRY(ki_zalloc_or(&r, 1, sizeof *r, "an index", err));
    r->type = type;
    r->writes = writes;
    if (pthread_mutex_init(&r->lock, NULL) != 0) {
        status = ki_fail_memory(err, sizeof r->lock, "a lock");
        goto done;
    }
    r->has_lock = true;
    KI_CHECK(r->type->open(address, writes, &r->link, err));
    *ret = r;
    r = NULL;
done:
    ki_remote_free(r);
    return status;
}

void ki_remote_free(ki_remote *r) {
    if (!r) return;
    r->type->close(r->link);
    ki_manifest_release(&r->now);
    ki_manifest_release(&r->next);
    if (r->has_lock) pthread_mutex_destroy(&r->lock);
    ki_free(r);
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
    if (r->writes) KI_CHECK(ki_manifest_copy(&now, &next, err));
    if (next.next_id < state.next_id) next.next_id = state.next_id;
    ki_manifest_release(&r->now);
    ki_manifest_release(&r->next);
    r->now = now;
    r->next = next;
    now = next = (ki_manifest){0};
    r->state = state;
    r->state.manifest = NULL;
    r->n_items = state.n_items;
    r->is_changed = r->excludes = false;
done:
    ki_manifest_release(&now);
    ki_manifest_release(&next);
    ki_free(state.manifest);
    return status;
}

kith_status ki_remote_open(const char *address, bool writes, ki_remote **ret, kith_error *err) {
    ki_remote *r = NULL;
    KI_TRY(connect(address, writes, &r, err));
    const kith_status status = take_state(r, err);
    if (status == KITH_OK)
        *ret = r;
    else
        ki_remote_free(r);
    return status;
}

kith_status ki_remote_create(const char *address, const ki_manifest *manifest, ki_remote **ret,
                             kith_error *err) {
    kith_status status = KITH_OK;
    ki_remote *r = NULL;
    KI_CHECK(connect(address, true, &r, err));
    KI_CHECK(r->type->create(r->link, manifest, err));
    KI_CHECK(take_state(r, err));
    r->is_changed = true; /* it is not there before the first commit */
    *ret = r;
    r = NULL;
done:
    ki_remote_free(r);
    return status;
}

kith_status ki_remote_is_current(ki_remote *r, bool *ret_is_current, kith_error *err) {
    int64_t generation = 0;
    pthread_mutex_lock(&r->lock);
    const kith_status status = r->type->generation(r->link, &generation, err);
    pthread_mutex_unlock(&r->lock);
    if (status == KITH_OK) *ret_is_current = generation == r->now.generation;
    return status;
}

void ki_remote_info(const ki_remote *r, kith_index_info *ret) {
    const ki_manifest *m = &r->now;
    *ret = (kith_index_info){.format = ki_manifest_format(m),
                             .generation = m->generation,
                             .n_items = r->state.n_items,
                             .n_columns = m->n_columns,
                             .dim = m->dim,
                             .metric = m->metric,
                             .model = m->model,
                             .preprocess = m->preprocess,
                             .file_bytes = r->state.bytes,
                             .tier = r->state.has_graph ? KITH_TIER_GRAPH : KITH_TIER_EXACT,
                             .recall_wanted = m->recall,
                             .recall = r->state.has_graph ? NAN : 1, /* the server does not measure it */
                             .is_calibrated = m->calibration != NULL,
                             .n_excluded = m->n_excluded};
}

/* ---- changing ---- */

/* What failed at the server is undone there: the handle is of no use any more. */
static kith_status settle(ki_remote *r, kith_status status) {
    pthread_mutex_unlock(&r->lock);
    if (status != KITH_OK && status != KITH_EINVAL && status != KITH_ENOTFOUND) r->is_broken = true;
    return status;
}

kith_status ki_remote_add(ki_remote *r, const float *rows, int64_t n, const kith_index_item *items,
                          int64_t *ret_first_id, kith_error *err) {
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
        r->is_changed = true;
        *ret_first_id = first;
    }
    return settle(r, status);
}

static kith_status fail_id(const ki_remote *r, int64_t id, kith_error *err) {
    return ki_fail(err, KITH_ENOTFOUND, "%s has no item with id %lld", ki_remote_name(r), (long long)id);
}

kith_status ki_remote_remove(ki_remote *r, const int64_t *ids, int64_t n, bool excludes, kith_error *err) {
    int64_t n_removed = 0, missing = -1;
    kith_status status = KITH_OK;
    pthread_mutex_lock(&r->lock);
    if (excludes) status = r->type->exclude(r->link, ids, n, err);
    if (status == KITH_OK) status = r->type->remove(r->link, ids, n, &n_removed, &missing, err);
    r->excludes |= excludes;
    if (status == KITH_OK) {
        r->n_items -= n_removed;
        r->is_changed = true;
    }
    if (status == KITH_ENOTFOUND) fail_id(r, missing, err);
    return settle(r, status);
}

kith_status ki_remote_restamp(ki_remote *r, int64_t id, int64_t bytes, int64_t mtime_ns, kith_error *err) {
    bool is_there = false;
    pthread_mutex_lock(&r->lock);
    kith_status status = r->type->restamp(r->link, id, bytes, mtime_ns, &is_there, err);
    if (status == KITH_OK && !is_there) status = fail_id(r, id, err);
    if (status == KITH_OK) r->is_changed = true;
    return settle(r, status);
}

kith_status ki_remote_move(ki_remote *r, const ki_file_record *move, int64_t bytes, int64_t mtime_ns,
                           kith_error *err) {
    bool is_there = false;
    pthread_mutex_lock(&r->lock);
    kith_status status = r->type->move(r->link, move, bytes, mtime_ns, &is_there, err);
    if (status == KITH_OK && !is_there) status = fail_id(r, move->id, err);
    if (status == KITH_OK) r->is_changed = true;
    return settle(r, status);
}

kith_status ki_remote_exclude_file(ki_remote *r, const ki_file_record *file, kith_error *err) {
    pthread_mutex_lock(&r->lock);
    const kith_status status = r->type->exclude_file(r->link, file, err);
    if (status == KITH_OK) r->is_changed = r->excludes = true;
    return settle(r, status);
}

kith_status ki_remote_excluded(ki_remote *r, ki_records *ret_excluded, kith_error *err) {
    pthread_mutex_lock(&r->lock);
    const kith_status status = r->type->excluded(r->link, ret_excluded, err);
    pthread_mutex_unlock(&r->lock);
    return status;
}

kith_status ki_remote_commit_now(ki_remote *r, bool compact, ki_tally *tally, kith_error *err) {
    if (!r->is_changed && !compact) return KITH_OK;
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
    if (status != KITH_OK) r->is_broken = true; /* also when it was stopped, as for a folder */
    return settle(r, status);
}

/* ---- asking ---- */

kith_status ki_remote_ids(ki_remote *r, const char *where, int64_t **ret_ids, int64_t *ret_n,
                          kith_error *err) {
    ki_where *filter = NULL;
    if (where) KI_TRY(ki_where_parse(where, r->now.columns, r->now.n_columns, &filter, err));
    if (filter) ki_where_show(filter, r->shown);
    pthread_mutex_lock(&r->lock);
    const kith_status status = r->type->ids(r->link, &r->now, filter, ret_ids, ret_n, err);
    pthread_mutex_unlock(&r->lock);
    ki_where_free(filter);
    return status;
}

kith_status ki_remote_item(ki_remote *r, int64_t id, kith_value *ret_cells, kith_error *err) {
    bool is_there = false;
    pthread_mutex_lock(&r->lock);
    kith_status status = r->type->item(r->link, &r->now, id, ret_cells, &is_there, err);
    if (status == KITH_OK && !is_there) status = fail_id(r, id, err);
    pthread_mutex_unlock(&r->lock);
    return status;
}

kith_status ki_remote_vectors(ki_remote *r, const int64_t *ids, int64_t n, float *ret_rows, kith_error *err) {
    int64_t missing = -1;
    pthread_mutex_lock(&r->lock);
    const kith_status status = r->type->vectors(r->link, &r->now, ids, n, ret_rows, &missing, err);
    if (status == KITH_ENOTFOUND) fail_id(r, missing, err);
    pthread_mutex_unlock(&r->lock);
    return status;
}

kith_status ki_remote_labels(ki_remote *r, const int64_t *ids, int64_t n, ki_arena *arena,
                             const char **ret_labels, kith_error *err) {
    pthread_mutex_lock(&r->lock);
    const kith_status status = r->type->labels(r->link, ids, n, arena, ret_labels, err);
    pthread_mutex_unlock(&r->lock);
    return status;
}

kith_status ki_remote_stamps(ki_remote *r, ki_remote_stamp_fn *fn, void *user, kith_error *err) {
    pthread_mutex_lock(&r->lock);
    const kith_status status = r->type->stamps(r->link, fn, user, err);
    pthread_mutex_unlock(&r->lock);
    return status;
}
