/* Galleries over the rows of a snapshot: one that is kept, or part after part. */
#include "search/exact.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "knn/kernel.h"
#include "knn/rows.h"

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

void ki_exact_release(ki_exact *e) {
    kith_gallery_free(e->whole);
    ki_free(e->rows);
    if (e->has_lock) pthread_mutex_destroy(&e->lock);
    *e = (ki_exact){0};
}

static kith_status make_gallery(const ki_snapshot *s, int64_t first, int64_t n, float **ret_rows,
                                kith_gallery **ret_gallery, kith_error *err) {
    kith_status status = KITH_OK;
    float *rows = NULL;
    const size_t row_bytes = (size_t)s->manifest.dim * sizeof *rows;
    KI_CHECK(ki_alloc_or(&rows, (size_t)n, row_bytes, "the rows of the index", err));
    KI_CHECK(ki_snapshot_span(s, first, n, rows, err));
    const kith_array array = {KITH_F32, 2, {n, s->manifest.dim}, rows};
    KITH_OPTIONS(kith_knn_options, options);
    options.metric = s->manifest.metric;
    KI_CHECK(kith_gallery_new(&array, &options, ret_gallery, err));
    if (keeps_rows(s)) {
        *ret_rows = rows;
        rows = NULL;
    }
done:
    ki_free(rows);
    return status;
}

static kith_status take_whole(ki_exact *e, kith_error *err) {
    kith_status status = KITH_OK;
    pthread_mutex_lock(&e->lock);
    if (!e->whole) status = make_gallery(e->snapshot, 0, e->snapshot->n_rows, &e->rows, &e->whole, err);
    pthread_mutex_unlock(&e->lock);
    return status;
}

/* Squared distances of the rows that were found, in float64: the kernel's depend on the other rows of the gallery, by their
 * mean. Lists are in this order already. */
static kith_status measure(const ki_snapshot *s, const kith_array *query, const float *rows, int64_t n_rows,
                           int64_t k, kith_neighbor *lists, kith_error *err) {
    if (s->manifest.metric != KITH_SQEUCLIDEAN) return KITH_OK;
    const ki_rows there = {.dtype = KITH_F32, .n = n_rows, .dim = s->manifest.dim, .data = rows};
    ki_rows asked;
    KI_TRY(ki_rows_init(query, "query", &asked, err));
    for (int64_t i = 0; i < asked.n * k; i++) {
        if (lists[i].index >= 0) lists[i].score = ki_rows_sqdist(&asked, i / k, &there, lists[i].index);
    }
    return KITH_OK;
}

static void round_scores(kith_neighbor *lists, int64_t n) {
    for (int64_t i = 0; i < n; i++) lists[i].score = (float)lists[i].score;
}

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

typedef struct parts {
    const kith_array *query;
    int64_t n, k;
    kith_neighbor *found, *joined; /* [n, k] each */
    int64_t *self;
} parts;

static kith_status search_part(const ki_snapshot *s, int64_t first, int64_t n, const ki_gallery_ask *ask,
                               parts *p, kith_neighbor *lists, kith_error *err) {
    kith_status status = KITH_OK;
    float *rows = NULL;
    kith_gallery *gallery = NULL;
    ki_gallery_ask part = *ask;
    if (ask->allowed) {
        part.allowed = ask->allowed + first / 64;
        part.n_allowed = 0;
        for (int64_t i = 0; i < ki_bit_words(n); i++) part.n_allowed += __builtin_popcountll(part.allowed[i]);
        if (part.n_allowed == 0) return KITH_OK;
    }
    for (int64_t i = 0; ask->self && i < p->n; i++) {
        const bool is_here = ask->self[i] >= first && ask->self[i] < first + n;
        p->self[i] = is_here ? ask->self[i] - first : -1;
    }
    part.self = ask->self ? p->self : NULL;
    KI_CHECK(make_gallery(s, first, n, &rows, &gallery, err));
    KI_CHECK(ki_gallery_search(gallery, p->query, p->k, &part, p->found, err));
    KI_CHECK(measure(s, p->query, rows, n, p->k, p->found, err));
    const bool is_distance = s->manifest.metric == KITH_SQEUCLIDEAN;
    for (int64_t i = 0; i < p->n; i++) {
        kith_neighbor *found = p->found + i * p->k;
        for (int64_t j = 0; j < p->k; j++) found[j].index += found[j].index >= 0 ? first : 0;
        merge_lists(is_distance, lists + i * p->k, found, p->k, p->joined + i * p->k);
    }
    memcpy(lists, p->joined, (size_t)(p->n * p->k) * sizeof *lists);
done:
    kith_gallery_free(gallery);
    ki_free(rows);
    return status;
}

static kith_status search_parts(const ki_snapshot *s, const kith_array *query, int64_t k,
                                const ki_gallery_ask *ask, kith_neighbor *ret_neighbors, kith_error *err) {
    kith_status status = KITH_OK;
    parts p = {.query = query, .n = query->dim[0], .k = k};
    size_t row_bytes = 0;
    if (!ki_mul_size((size_t)k, sizeof *p.found, &row_bytes))
        return ki_fail_memory(err, SIZE_MAX, "neighbour lists");
    KI_CHECK(ki_alloc_or(&p.found, (size_t)p.n, row_bytes, "neighbour lists", err));
    KI_CHECK(ki_alloc_or(&p.joined, (size_t)p.n, row_bytes, "neighbour lists", err));
    KI_CHECK(ki_alloc_or(&p.self, (size_t)p.n, sizeof *p.self, "query rows", err));
    for (int64_t i = 0; i < p.n * k; i++) ret_neighbors[i] = (kith_neighbor){NAN, -1};
    ki_gallery_ask quiet = *ask;
    quiet.progress = NULL;
    const int64_t step = part_rows(s);
    for (int64_t first = 0; first < s->n_rows; first += step) {
        const int64_t n = s->n_rows - first < step ? s->n_rows - first : step;
        KI_CHECK(search_part(s, first, n, &quiet, &p, ret_neighbors, err));
        if (ask->progress && ask->progress(ask->user, first + n, s->n_rows) != 0) {
            status = ki_fail(err, KITH_ECANCELED, "stopped after %lld of %lld rows", (long long)(first + n),
                             (long long)s->n_rows);
            goto done;
        }
    }
    round_scores(ret_neighbors, p.n * k);
done:
    ki_free(p.self);
    ki_free(p.joined);
    ki_free(p.found);
    return status;
}

kith_status ki_exact_search(ki_exact *e, const kith_array *query, int64_t k, const ki_gallery_ask *ask,
                            kith_neighbor *ret_neighbors, kith_error *err) {
    if (!ki_exact_fits(e->snapshot)) return search_parts(e->snapshot, query, k, ask, ret_neighbors, err);
    KI_TRY(take_whole(e, err));
    KI_TRY(ki_gallery_search(e->whole, query, k, ask, ret_neighbors, err));
    KI_TRY(measure(e->snapshot, query, e->rows, e->snapshot->n_rows, k, ret_neighbors, err));
    round_scores(ret_neighbors, query->dim[0] * k);
    return KITH_OK;
}
