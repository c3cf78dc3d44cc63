/* Opening, sharing and renewing the index that is served. */
#include "serve/search/catalog.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "collection/collection.h"
#include "search/index_handle.h"
#include "serve/search/facts.h"
#include "serve/search/samples.h"

/* A catalog with the number of those who use it. The model is shared by the catalogs it fits. */
typedef struct entry {
    ki_catalog catalog; /* first, so that a pointer to it is one to the entry */
    int64_t n_users;
    struct shared_model *shared;
} entry;

typedef struct shared_model {
    kith_model *model;
    int64_t n_users;
} shared_model;

struct ki_catalogs {
    const char *path;
    kith_model_options options;
    unsigned hidden; /* facts */
    pthread_mutex_t lock;
    entry *now;
};

/* ---- users ---- */

/* With the lock held. */
static void drop_entry(entry *e) {
    if (--e->n_users > 0) return;
    ki_facts_free(e->catalog.facts, e->catalog.n_facts);
    kith_collection_free(e->catalog.collection);
    if (e->shared && --e->shared->n_users == 0) {
        kith_model_free(e->shared->model);
        ki_free(e->shared);
    }
    ki_free(e);
}

ki_catalog *ki_catalog_take(ki_catalogs *c) {
    pthread_mutex_lock(&c->lock);
    entry *e = c->now;
    e->n_users++;
    pthread_mutex_unlock(&c->lock);
    return &e->catalog;
}

ki_catalog *ki_catalog_share(ki_catalogs *c, ki_catalog *catalog) {
    pthread_mutex_lock(&c->lock);
    ((entry *)(void *)catalog)->n_users++;
    pthread_mutex_unlock(&c->lock);
    return catalog;
}

void ki_catalog_give_back(ki_catalogs *c, ki_catalog *catalog) {
    if (!catalog) return;
    pthread_mutex_lock(&c->lock);
    drop_entry((entry *)(void *)catalog);
    pthread_mutex_unlock(&c->lock);
}

/* ---- opening ---- */

/* The index says which model made it, and that one cannot be opened. The log has the whole path; clients get its end. */
static void miss_model(const ki_catalogs *c, ki_catalog *catalog) {
    kith_collection_info info = {0};
    if (kith_collection_info_get(catalog->collection, &info, NULL) != KITH_OK) return;
    const char *file = c->options.weights ? c->options.weights : info.model;
    if (!file) return;
    const bool is_known = c->now && *c->now->catalog.missing_model;
    if (!is_known)
        ki_log(KITH_LOG_WARNING,
               "the index's model cannot be opened, so images cannot be searched with: %s (say where it lies "
               "now: --model RUN)",
               catalog->no_model.message);
    const ki_roots none = {0};
    ki_snprintf(catalog->missing_model, sizeof catalog->missing_model, "%s", ki_roots_shown(&none, file));
    ki_fail(&catalog->no_model, KITH_ENOTFOUND, "the index's model %s cannot be opened",
            catalog->missing_model);
    ki_hint(&catalog->no_model, KITH_ENOTFOUND,
            "start the server with --model RUN, where the model lies now");
}

/* The model of the entry before, if it made this index, too; else one that is opened. It outlives both. */
static kith_status find_model(ki_catalogs *c, entry *e, kith_error *err) {
    shared_model *before = c->now ? c->now->shared : NULL;
    kith_model *model = NULL;
    const kith_status status = kith_collection_model(e->catalog.collection, &model, &e->catalog.no_model);
    if (status != KITH_OK && c->options.weights && !c->now) { /* what was asked for cannot be done */
        if (err) *err = e->catalog.no_model;
        return status;
    }
    if (status != KITH_OK) {
        miss_model(c, &e->catalog);
        return KITH_OK;
    }
    if (before && model == before->model) {
        pthread_mutex_lock(&c->lock);
        before->n_users++;
        pthread_mutex_unlock(&c->lock);
        e->shared = before;
    } else {
        KI_TRY(ki_zalloc_or(&e->shared, 1, sizeof *e->shared, "a model", err));
        *e->shared = (shared_model){ki_collection_take_model(e->catalog.collection), 1};
    }
    e->catalog.model = e->shared->model;
    return KITH_OK;
}

/* The first search reads what is kept in memory: nobody should have to wait for that. */
static kith_status warm(const ki_catalog *catalog, kith_error *err) {
    kith_array row = {0};
    kith_hits hits = {0};
    KITH_OPTIONS(kith_search_options, options);
    options.k = 1;
    KI_TRY(kith_array_init(KITH_F32, 2, (int64_t[]){1, catalog->info.dim}, &row, err));
    ((float *)row.data)[0] = 1;
    const kith_status status = kith_index_search(catalog->index, &row, &options, &hits, err);
    kith_hits_release(&hits);
    kith_array_release(&row);
    return status;
}

static kith_status open_entry(ki_catalogs *c, entry **ret, kith_error *err) {
    kith_status status;
    entry *e = NULL;
    KI_TRY(ki_zalloc_or(&e, 1, sizeof *e, "an index", err));
    e->n_users = 1;
    KITH_OPTIONS(kith_collection_open_options, how);
    how.model = &c->options;
    how.shared = c->now && c->now->shared ? c->now->shared->model : NULL;
    KI_CHECK(kith_collection_open(c->path, &how, &e->catalog.collection, err));
    e->catalog.index = kith_collection_index(e->catalog.collection);
    KI_CHECK(ki_index_show_paths(e->catalog.index, err));
    ki_index_hide(e->catalog.index, c->hidden);
    kith_index_info_get(e->catalog.index, &e->catalog.info);
    KI_CHECK(find_model(c, e, err));
    KI_CHECK(ki_facts_find(e->catalog.index, &e->catalog.facts, &e->catalog.n_facts, err));
    KI_CHECK(ki_samples_choose(&e->catalog, err));
    KI_CHECK(warm(&e->catalog, err));
    *ret = e;
    e = NULL;
done:
    if (e) {
        pthread_mutex_lock(&c->lock);
        drop_entry(e);
        pthread_mutex_unlock(&c->lock);
    }
    return status;
}

kith_status ki_catalogs_new(const char *path, const kith_model_options *options, unsigned hidden,
                            ki_catalogs **ret, kith_error *err) {
    ki_catalogs *c = NULL;
    KI_TRY(ki_zalloc_or(&c, 1, sizeof *c, "an index", err));
    c->path = path;
    c->options = *options;
    c->hidden = hidden;
    pthread_mutex_init(&c->lock, NULL);
    const kith_status status = open_entry(c, &c->now, err);
    if (status == KITH_OK)
        *ret = c;
    else
        ki_catalogs_free(c);
    return status;
}

void ki_catalogs_free(ki_catalogs *c) {
    if (!c) return;
    if (c->now) drop_entry(c->now);
    pthread_mutex_destroy(&c->lock);
    ki_free(c);
}

kith_status ki_catalogs_refresh(ki_catalogs *c, bool *ret_is_new, kith_error *err) {
    bool is_current = true;
    entry *opened = NULL;
    *ret_is_new = false;
    KI_TRY(kith_index_is_current(c->now->catalog.index, &is_current, err));
    if (is_current) return KITH_OK;
    KI_TRY(open_entry(c, &opened, err));
    pthread_mutex_lock(&c->lock);
    entry *before = c->now;
    c->now = opened;
    drop_entry(before);
    pthread_mutex_unlock(&c->lock);
    *ret_is_new = true;
    return KITH_OK;
}

const char *ki_catalog_shown(const ki_catalog *catalog, const char *path) {
    return ki_index_shown(catalog->index, path);
}
