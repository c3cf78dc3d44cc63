/* Galleries over the rows of a snapshot: one that is kept, or part after part. */
#include "search/local/exact.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "knn/kernel.h"
#include "search/exact_list.h"

/* Parts begin at whole blocks, so that the bitmap of a part is a piece of the whole one. */
static int64_t part_rows(const ki_snapshot *s) {
    const int64_t rows = KI_EXACT_NUMBERS / s->manifest.dim / KI_BLOCK * KI_BLOCK;
    return rows > 0 ? rows : KI_BLOCK;
}

int64_t ki_exact_words(const ki_snapshot *s) { return (s->n_rows + KI_BLOCK - 1) / KI_BLOCK * KI_MASK_WORDS; }

/* Are scores looked at again in float64? Then the rows must stay beside the kernel's copy. */
static bool keeps_rows(const ki_snapshot *s) { return s->manifest.metric == KITH_SQEUCLIDEAN; }

int64_t ki_exact_memory(const ki_snapshot *s) {
    const int64_t n = ki_exact_fits(s) ? s->n_rows : part_rows(s);
    return n * s->manifest.dim * (int64_t)sizeof(float) * (keeps_rows(s) ? 2 : 1);
}

kith_status ki_exact_init(ki_exact *e, const ki_snapshot *snapshot, kith_error *err) {
    *e = (ki_exact){.snapshot = snapshot};
    if (pthread_mutex_init(&e->lock, NULL) != 0) return ki_fail_memory(err, sizeof e->lock, "a lock");
    e->has_lock = true;
    return KITH_OK;
}

static void part_release(ki_exact_part *p) {
    kith_gallery_free(p->gallery);
    ki_free(p->rows);
    ki_free(p->row);
    *p = (ki_exact_part){0};
}

void ki_exact_release(ki_exact *e) {
    part_release(&e->whole);
    part_release(&e->there);
    if (e->has_lock) pthread_mutex_destroy(&e->lock);
    *e = (ki_exact){0};
}

/* ---- rows as a gallery ---- */

/* Keep the rows that may be found, and note which they are. */
static kith_status choose(const ki_snapshot *s, const uint64_t *allowed, float *rows, ki_exact_part *p,
                          kith_error *err) {
    const int64_t dim = s->manifest.dim, n = p->n;
    KI_TRY(ki_alloc_or(&p->row, (size_t)n, sizeof *p->row, "the rows of the index", err));
    p->n = 0;
    for (int64_t i = 0; i < n; i++) {
        if (allowed && !ki_bit(allowed, p->first + i)) continue;
        memmove(rows + p->n * dim, rows + i * dim, (size_t)dim * sizeof *rows);
        p->row[p->n++] = p->first + i;
    }
    return KITH_OK;
}

/* Rows first … first + n - 1; on a device only those of `allowed` (NULL: all). Release it, also after a failure. */
static kith_status part_make(const ki_snapshot *s, int64_t first, int64_t n, const uint64_t *allowed,
                             const char *device, ki_exact_part *ret, kith_error *err) {
    kith_status status = KITH_OK;
    float *rows = NULL;
    const size_t row_bytes = (size_t)s->manifest.dim * sizeof *rows;
    *ret = (ki_exact_part){.first = first, .n = n};
    KI_CHECK(ki_alloc_or(&rows, (size_t)n, row_bytes, "the rows of the index", err));
    KI_CHECK(ki_snapshot_span(s, first, n, rows, err));
    if (device) KI_CHECK(choose(s, allowed, rows, ret, err));
    if (ret->n == 0) goto done;
    const kith_array array = {KITH_F32, 2, {ret->n, s->manifest.dim}, rows};
    KITH_OPTIONS(kith_knn_options, options);
    options.metric = s->manifest.metric;
    options.device = device;
    KI_CHECK(kith_gallery_new(&array, &options, &ret->gallery, err));
    if (keeps_rows(s)) {
        ret->rows = rows;
        rows = NULL;
    }
done:
    ki_free(rows);
    return status;
}

/* The part that is kept for later searches, made by the first. */
static kith_status take_whole(ki_exact *e, const char *device, const ki_exact_part **ret, kith_error *err) {
    kith_status status = KITH_OK;
    const ki_snapshot *s = e->snapshot;
    ki_exact_part *p = device ? &e->there : &e->whole;
    if (device && strlen(device) >= sizeof e->device)
        return ki_fail(err, KITH_ENOTFOUND, "the device's name has %zu letters; wanted fewer than %zu",
                       strlen(device), sizeof e->device);
    pthread_mutex_lock(&e->lock);
    if (!p->gallery) {
        status = part_make(s, 0, s->n_rows, s->alive, device, p, err);
        if (status != KITH_OK) part_release(p);
        if (device) ki_snprintf(e->device, sizeof e->device, "%s", status == KITH_OK ? device : "");
    } else if (device && strcmp(device, e->device) != 0) {
        status = ki_fail(err, KITH_EINVAL, "the index is searched on %s already; wanted the same, found %s",
                         e->device, device);
    }
    pthread_mutex_unlock(&e->lock);
    *ret = p;
    return status;
}

/* The place of a snapshot's row in a part; -1: not there. */
static int64_t place_of(const ki_exact_part *p, int64_t row) {
    if (!p->row) return row >= p->first && row < p->first + p->n ? row - p->first : -1;
    int64_t low = 0, high = p->n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (p->row[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low < p->n && p->row[low] == row ? low : -1;
}

/* ---- searching ---- */

/* The better k of two lists, nearest first; of equal scores those of `a`, whose rows are lower, come first. */
static void merge_lists(bool is_distance, const kith_neighbor *a, const kith_neighbor *b, int64_t k,
                        kith_neighbor *ret) {
    for (int64_t i = 0, x = 0, y = 0; i < k; i++) {
        const bool no_b = b[y].index < 0;
        const bool is_a =
            a[x].index >= 0 && (no_b || (is_distance ? a[x].score <= b[y].score : a[x].score >= b[y].score));
        ret[i] = is_a ? a[x++] : b[y];
        if (!is_a && !no_b) y++;
    }
}

/* The lists of one part, with rows of the snapshot; squared distances in float64. self: [queries], scratch. */
static kith_status search_part(const ki_snapshot *s, const ki_exact_part *p, const kith_array *query,
                               int64_t k, const ki_gallery_ask *ask, int64_t *self, kith_neighbor *ret,
                               kith_error *err) {
    const int64_t n = query->dim[0];
    ki_gallery_ask here = *ask;
    if (p->row) here.allowed = NULL; /* its rows were chosen */
    if (here.allowed) {
        here.allowed += p->first / 64;
        here.n_allowed = 0;
        for (int64_t i = 0; i < ki_bit_words(p->n); i++)
            here.n_allowed += __builtin_popcountll(here.allowed[i]);
    }
    if (!p->gallery || (here.allowed && here.n_allowed == 0)) {
        for (int64_t i = 0; i < n * k; i++) ret[i] = (kith_neighbor){NAN, -1};
        return KITH_OK;
    }
    for (int64_t i = 0; ask->self && i < n; i++) self[i] = place_of(p, ask->self[i]);
    if (ask->self) here.self = self;
    KI_TRY(ki_gallery_search(p->gallery, query, k, &here, ret, err));
    KI_TRY(ki_exact_measure(s->manifest.metric, query, p->rows, p->n, k, ret, err));
    for (int64_t i = 0; i < n * k; i++) {
        if (ret[i].index >= 0) ret[i].index = p->row ? p->row[ret[i].index] : p->first + ret[i].index;
    }
    return KITH_OK;
}

/* Lists [n, k] of one part and of those before it. */
typedef struct joining {
    int64_t n, k;
    kith_neighbor *found, *joined;
} joining;

static void join_part(const ki_snapshot *s, joining *j, kith_neighbor *lists) {
    const bool is_distance = s->manifest.metric == KITH_SQEUCLIDEAN;
    for (int64_t i = 0; i < j->n; i++)
        merge_lists(is_distance, lists + i * j->k, j->found + i * j->k, j->k, j->joined + i * j->k);
    memcpy(lists, j->joined, (size_t)(j->n * j->k) * sizeof *lists);
}

static kith_status search_parts(const ki_snapshot *s, const kith_array *query, int64_t k,
                                const ki_gallery_ask *ask, const char *device, int64_t *self,
                                kith_neighbor *ret_neighbors, kith_error *err) {
    kith_status status = KITH_OK;
    joining j = {.n = query->dim[0], .k = k};
    ki_exact_part part = {0};
    size_t row_bytes = 0;
    if (!ki_mul_size((size_t)k, sizeof *j.found, &row_bytes))
        return ki_fail_memory(err, SIZE_MAX, "neighbour lists");
    KI_CHECK(ki_alloc_or(&j.found, (size_t)j.n, row_bytes, "neighbour lists", err));
    KI_CHECK(ki_alloc_or(&j.joined, (size_t)j.n, row_bytes, "neighbour lists", err));
    for (int64_t i = 0; i < j.n * k; i++) ret_neighbors[i] = (kith_neighbor){NAN, -1};
    ki_gallery_ask quiet = *ask;
    quiet.progress = NULL;
    const int64_t step = part_rows(s);
    for (int64_t first = 0; first < s->n_rows; first += step) {
        const int64_t n = s->n_rows - first < step ? s->n_rows - first : step;
        part_release(&part);
        KI_CHECK(part_make(s, first, n, ask->allowed, device, &part, err));
        KI_CHECK(search_part(s, &part, query, k, &quiet, self, j.found, err));
        join_part(s, &j, ret_neighbors);
        if (ask->progress && ask->progress(ask->user, first + n, s->n_rows) != 0) {
            status = ki_fail(err, KITH_ECANCELED, "stopped after %lld of %lld rows", (long long)(first + n),
                             (long long)s->n_rows);
            goto done;
        }
    }
done:
    part_release(&part);
    ki_free(j.joined);
    ki_free(j.found);
    return status;
}

static bool is_host(const char *device) { return !device || strcmp(device, "cpu") == 0; }

kith_status ki_exact_search(ki_exact *e, const kith_array *query, int64_t k, const ki_gallery_ask *ask,
                            const char *device, kith_neighbor *ret_neighbors, kith_error *err) {
    kith_status status = KITH_OK;
    const ki_snapshot *s = e->snapshot;
    const ki_exact_part *whole = NULL;
    const char *where = is_host(device) ? NULL : device;
    const bool is_chosen = where && (!ask->allowed || ask->n_allowed < s->n_live);
    int64_t *self = NULL;
    if (ask->self) KI_CHECK(ki_alloc_or(&self, (size_t)query->dim[0], sizeof *self, "query rows", err));
    if (ki_exact_fits(s) && !is_chosen) {
        KI_CHECK(take_whole(e, where, &whole, err));
        KI_CHECK(search_part(s, whole, query, k, ask, self, ret_neighbors, err));
    } else {
        KI_CHECK(search_parts(s, query, k, ask, where, self, ret_neighbors, err));
    }
    ki_exact_round(ret_neighbors, query->dim[0] * k);
done:
    ki_free(self);
    return status;
}
