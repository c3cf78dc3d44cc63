/* New and changed files through the network, and into the index. */
#include "base/alloc.h"
#include "base/clock.h"
#include "collection/sync_facts.h"
#include "collection/sync_parts.h"

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

/* Add what could be read; what these files were before goes, also where one cannot be read any more. */
static kith_status replace(ki_sync *s, const int64_t *part, int64_t n, kith_vectors *vectors,
                           kith_error *err) {
    kith_status status = KITH_OK;
    const int64_t n_read = kith_vectors_count(vectors), *number = kith_vectors_items(vectors);
    kith_index_item *items = NULL;
    kith_array rows;
    ki_arena arena = {0};
    kith_value *values = NULL;
    int64_t *files = NULL, n_columns = 0;
    KI_CHECK(ki_alloc_or(&items, (size_t)n_read, sizeof *items, "items", err));
    KI_CHECK(ki_alloc_or(&files, (size_t)n_read, sizeof *files, "files", err));
    for (int64_t k = 0, at = 0; k < n_read; k++, at++) {
        while (s->file[part[at]].item != number[k]) at++; /* those between could not be read */
        files[k] = part[at];
        items[k] = ki_sync_item(s, part[at]);
        s->report->n_changed += s->file[part[at]].old >= 0;
        s->report->n_added += s->file[part[at]].old < 0;
    }
    for (int64_t k = 0; k < n; k++) {
        const int64_t old = s->file[part[k]].old;
        if (old >= 0) KI_CHECK(kith_index_remove(s->index, &old, 1, err));
    }
    if (n_read == 0) goto done;
    KI_CHECK(ki_sync_facts_new(s, files, n_read, &arena, &values, &n_columns, err));
    for (int64_t k = 0; values && k < n_read; k++) items[k].values = values + k * n_columns;
    KI_CHECK(kith_vectors_array(vectors, &rows, err));
    rows.dim[1] = kith_model_dim(s->model); /* of any tap's shape */
    rows.n_dims = 2;
    KI_CHECK(kith_index_add(s->index, &rows, items, NULL, err));
done:
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
