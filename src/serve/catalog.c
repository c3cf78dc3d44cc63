/* Opening, sharing and renewing the index that is served. */
#include "serve/catalog.h"

#include <pthread.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/log.h"
#include "core/path.h"
#include "core/text.h"
#include "search/index_handle.h"
#include "serve/facts.h"
#include "serve/samples.h"

/* A catalog with the number of those who use it. The model is shared by the catalogs it fits. */
typedef struct entry {
    ki_catalog catalog; /* first, so that a pointer to it is one to the entry */
    int64_t n_users;
    struct model *model;
} entry;

typedef struct model {
    kith_embedder *embedder;
    int64_t n_users;
} model;

struct ki_catalogs {
    const char *path;
    kith_embedder_options options;
    pthread_mutex_t lock;
    entry *now;
};

/* ---- users ---- */

/* With the lock held. */
static void drop_entry(entry *e) {
    if (--e->n_users > 0) return;
    if (e->model && --e->model->n_users == 0) {
        kith_embedder_free(e->model->embedder);
        ki_free(e->model);
    }
    ki_facts_free(e->catalog.facts, e->catalog.n_facts);
    kith_index_free(e->catalog.index);
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
    const char *file = kith_index_note(catalog->index, "model");
    if (c->options.model) file = c->options.model;
    if (!file) return;
    const bool is_known = c->now && *c->now->catalog.missing_model;
    if (!is_known)
        ki_log(KITH_LOG_WARNING,
               "the index's model cannot be opened, so images cannot be searched with: %s (say where it lies "
               "now: --model RUN)",
               catalog->no_embedder.message);
    const ki_roots none = {0};
    ki_snprintf(catalog->missing_model, sizeof catalog->missing_model, "%s", ki_roots_shown(&none, file));
    ki_fail(&catalog->no_embedder, KITH_ENOTFOUND, "the index's model %s cannot be opened",
            catalog->missing_model);
    ki_hint(&catalog->no_embedder, KITH_ENOTFOUND,
            "start the server with --model RUN, where the model lies now");
}

/* The model of the entry before, if it made this index, too; else one that is opened. */
static kith_status find_model(ki_catalogs *c, entry *e, kith_error *err) {
    model *before = c->now ? c->now->model : NULL;
    kith_error *why = &e->catalog.no_embedder;
    if (before && kith_index_expect(e->catalog.index, kith_embedder_hash(before->embedder),
                                    kith_embedder_preprocess(before->embedder), NULL) == KITH_OK) {
        pthread_mutex_lock(&c->lock);
        before->n_users++;
        pthread_mutex_unlock(&c->lock);
        e->model = before;
    } else {
        kith_embedder *embedder = NULL;
        const kith_status status = kith_embedder_open_index(e->catalog.index, &c->options, &embedder, why);
        if (status != KITH_OK && c->options.model && !c->now) { /* what was asked for cannot be done */
            if (err) *err = *why;
            return status;
        }
        if (status != KITH_OK) {
            miss_model(c, &e->catalog);
            return KITH_OK;
        }
        if (ki_zalloc_or(&e->model, 1, sizeof *e->model, "a model", err) != KITH_OK) {
            kith_embedder_free(embedder);
            return KITH_ENOMEM;
        }
        *e->model = (model){embedder, 1};
    }
    e->catalog.embedder = e->model->embedder;
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
    KI_CHECK(kith_index_open(c->path, KITH_INDEX_READ, &e->catalog.index, err));
    KI_CHECK(ki_index_show_paths(e->catalog.index, err));
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

kith_status ki_catalogs_new(const char *path, const kith_embedder_options *options, ki_catalogs **ret,
                            kith_error *err) {
    ki_catalogs *c = NULL;
    KI_TRY(ki_zalloc_or(&c, 1, sizeof *c, "an index", err));
    c->path = path;
    c->options = *options;
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

const char *ki_catalog_picture(const ki_catalog *catalog, const char *path, char *buf, size_t buf_bytes) {
    const char *folder = kith_index_note(catalog->index, "folder");
    if (!path) return NULL;
    const int n = path[0] == '/' || !folder ? ki_snprintf(buf, buf_bytes, "%s", path)
                                            : ki_snprintf(buf, buf_bytes, "%s/%s", folder, path);
    return n > 0 && (size_t)n < buf_bytes && ki_is_file("%s", buf) ? buf : NULL;
}
