/* New and changed files through the network, and into the index. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "collection/decisions.h"
#include "collection/sync_facts.h"
#include "collection/sync_parts.h"
#include "search/index_handle.h"

enum { PART = 512 };                      /* images embedded and added at a time: what a stop loses at most */
static const double COMMIT_EVERY_S = 300; /* a killed program loses at most so much work */
/* With `eager`: the first part, in whole batches, and then at most so many seconds. */
enum { FIRST_PART = 96, WHOLE = 32 };
static const double EAGER_EVERY_S = 15;

static int show(void *user, int64_t n_done, int64_t n_all) {
    const ki_sync *s = user;
    const kith_sync_options *o = s->task->options;
    const int64_t n_before = o->counts_all ? s->n - s->n_todo : 0;
    (void)n_all;
    return o->progress ? o->progress(o->user, n_before + s->n_done + n_done, n_before + s->n_todo) : 0;
}

static kith_status name_bad(ki_sync *s, const kith_vectors *vectors, kith_error *err) {
    const int64_t before = s->report->n_bad;
    for (int64_t i = 0; kith_vectors_bad(vectors, i); i++)
        KI_TRY(ki_sync_name(s, kith_vectors_bad(vectors, i), err));
    s->report->n_bad = before + kith_vectors_n_bad(vectors); /* more than are named */
    return KITH_OK;
}

/* Photos that were changed, and whose name somebody decided: the new items have it, too. */
typedef struct kept_names {
    kith_index_item *before; /* [n] */
    int64_t *row;            /* [n] of the new item among those that are added */
    int64_t n;
} kept_names;

static kith_status keep_name(kept_names *k, const ki_sync *s, int64_t id, int64_t row, kith_index_item *item,
                             kith_error *err) {
    if (!ki_decisions_has(s->decided, s->n_decided, id)) return KITH_OK;
    kith_index_item *before = &k->before[k->n];
    KI_TRY(kith_index_item_get(s->index, id, before, err));
    k->row[k->n++] = row;
    item->label = before->label;
    s->report->n_names_kept++;
    return KITH_OK;
}

static int by_id(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Who decided them, as values of the new items: values [n, *n_columns], or none yet. */
static kith_status keep_deciders(const kept_names *k, const ki_sync *s, int64_t n, kith_value **values,
                                 int64_t *n_columns, kith_error *err) {
    if (k->n == 0) return KITH_OK;
    if (!*values) {
        *n_columns = ki_index_manifest(s->index)->n_columns;
        KI_TRY(ki_zalloc_or(values, (size_t)n, (size_t)*n_columns * sizeof **values, "values", err));
    }
    for (int64_t i = 0; i < k->n; i++) {
        const ki_name_state state = ki_name_state_of(s->index, &k->before[i]);
        kith_value *to = *values + k->row[i] * *n_columns;
        for (int64_t c = 0; c < *n_columns; c++) {
            const char *name = ki_index_manifest(s->index)->columns[c].name;
            const char *text = strcmp(name, KI_NAMED_BY) == 0     ? state.by
                               : strcmp(name, KI_NAMED_KIND) == 0 ? state.kind
                                                                  : NULL;
            if (text) to[c] = (kith_value){.type = KITH_VALUE_TEXT, .text = text};
        }
    }
    return KITH_OK;
}

/* Decisions about them are about the new items. */
static kith_status follow_names(const kept_names *k, ki_sync *s, const int64_t *ids, kith_error *err) {
    int64_t *pairs = NULL, n = k->n;
    kith_status status;
    if (n == 0) return KITH_OK;
    KI_TRY(ki_alloc_or(&pairs, (size_t)n, 4 * sizeof *pairs, "ids", err));
    int64_t *from = pairs + 2 * n, *to = pairs + 3 * n;
    for (int64_t i = 0; i < n; i++) {
        pairs[2 * i] = k->before[i].id;
        pairs[2 * i + 1] = ids[k->row[i]];
    }
    qsort(pairs, (size_t)n, 2 * sizeof *pairs, by_id);
    for (int64_t i = 0; i < n; i++) {
        from[i] = pairs[2 * i];
        to[i] = pairs[2 * i + 1];
    }
    status = ki_decisions_follow(s->index, from, to, n, err);
    ki_free(pairs);
    return status;
}

static void drop_names(kept_names *k) {
    for (int64_t i = 0; k->before && i < k->n; i++) kith_index_item_release(&k->before[i]);
    ki_free(k->before);
    ki_free(k->row);
}

/* Add what could be read; what these files were before goes, also where one cannot be read any more. */
static kith_status replace(ki_sync *s, const int64_t *part, int64_t n, kith_vectors *vectors,
                           kith_error *err) {
    kith_status status = KITH_OK;
    const int64_t n_read = kith_vectors_count(vectors), *number = kith_vectors_items(vectors);
    kith_index_item *items = NULL;
    int64_t *ids = NULL;
    kept_names kept = {0};
    kith_array rows;
    ki_arena arena = {0};
    kith_value *values = NULL;
    int64_t *files = NULL, n_columns = 0;
    KI_CHECK(ki_alloc_or(&items, (size_t)n_read, sizeof *items, "items", err));
    KI_CHECK(ki_alloc_or(&ids, (size_t)n_read, sizeof *ids, "items", err));
    KI_CHECK(ki_zalloc_or(&kept.before, (size_t)n_read, sizeof *kept.before, "items", err));
    KI_CHECK(ki_zalloc_or(&kept.row, (size_t)n_read, sizeof *kept.row, "items", err));
    KI_CHECK(ki_alloc_or(&files, (size_t)n_read, sizeof *files, "files", err));
    for (int64_t k = 0, at = 0; k < n_read; k++, at++) {
        while (s->file[part[at]].item != number[k]) at++; /* those between could not be read */
        files[k] = part[at];
        items[k] = ki_sync_item(s, part[at]);
        KI_CHECK(keep_name(&kept, s, s->file[part[at]].old, k, &items[k], err));
        s->report->n_changed += s->file[part[at]].old >= 0;
        s->report->n_added += s->file[part[at]].old < 0;
    }
    for (int64_t k = 0; k < n; k++) {
        const int64_t old = s->file[part[k]].old;
        if (old >= 0) KI_CHECK(kith_index_remove(s->index, &old, 1, err));
    }
    if (n_read == 0) goto done;
    KI_CHECK(ki_sync_facts_new(s, files, n_read, &arena, &values, &n_columns, err));
    KI_CHECK(keep_deciders(&kept, s, n_read, &values, &n_columns, err));
    for (int64_t k = 0; values && k < n_read; k++) items[k].values = values + k * n_columns;
    KI_CHECK(kith_vectors_array(vectors, &rows, err));
    rows.dim[1] = kith_model_dim(s->model); /* of any tap's shape */
    rows.n_dims = 2;
    KI_CHECK(kith_index_add(s->index, &rows, items, ids, err));
    status = follow_names(&kept, s, ids, err);
done:
    drop_names(&kept);
    ki_free(ids);
    ki_free(items);
    ki_free(files);
    ki_free(values);
    ki_arena_release(&arena);
    return status;
}

static kith_status embed_part(ki_sync *s, const int64_t *part, int64_t n, kith_error *err) {
    kith_status status;
    int64_t *items = NULL;
    kith_vectors *vectors = NULL;
    KITH_OPTIONS(kith_embed_options, how);
    how.most_bad = -1;
    how.progress = show;
    how.user = s;
    KI_CHECK(ki_alloc_or(&items, (size_t)n, sizeof *items, "items", err));
    for (int64_t k = 0; k < n; k++) items[k] = s->file[part[k]].item;
    ki_sync_hash(s, part, n);
    KI_CHECK(kith_model_embed_items(s->model, s->task->set, items, n, &how, &vectors, err));
    KI_CHECK(replace(s, part, n, vectors, err));
    KI_CHECK(name_bad(s, vectors, err));
    s->n_done += n;
done:
    kith_vectors_free(vectors);
    ki_free(items);
    return status;
}

/* Images to be committed next: half as many as there are. */
static int64_t eager_part(const ki_sync *s) {
    kith_index_info info = {0};
    kith_index_info_get(s->index, &info);
    const int64_t half = (info.n_items / 2 + WHOLE - 1) / WHOLE * WHOLE;
    return half > FIRST_PART ? half : FIRST_PART;
}

static bool is_due(const ki_sync *s, int64_t n_wanted) {
    const double seconds = ki_seconds_now() - s->committed;
    if (!s->task->options->eager) return seconds >= COMMIT_EVERY_S;
    return s->n_pending >= n_wanted || seconds >= EAGER_EVERY_S;
}

kith_status ki_sync_embed(ki_sync *s, kith_error *err) {
    int64_t n_wanted = s->task->options->eager ? eager_part(s) : PART;
    s->committed = ki_seconds_now();
    while (s->n_done < s->n_todo) {
        const int64_t left = s->n_todo - s->n_done, most = n_wanted < PART ? n_wanted : PART;
        const int64_t n = left < most ? left : most;
        KI_TRY(embed_part(s, s->todo + s->n_done, n, err));
        s->n_pending += n;
        if (s->n_done == s->n_todo || !is_due(s, n_wanted)) continue;
        KI_TRY(kith_index_commit(s->index, NULL, err));
        s->committed = ki_seconds_now();
        s->n_pending = 0;
        if (s->task->options->eager) n_wanted = eager_part(s);
    }
    return KITH_OK;
}
