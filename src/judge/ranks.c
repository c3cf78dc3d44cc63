/* Ranks of the relevant items of every query, exactly, in one pass over all pairs. */
#include "judge/ranks.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/parallel.h"

typedef struct relevant {
    double score;
    int32_t index;
    int32_t n_before; /* irrelevant items between this one and the relevant one before it */
} relevant;

typedef struct members {
    int64_t *begin; /* [n_classes + 1] */
    int32_t *item;  /* [n_gallery], by class, then by index */
} members;

typedef struct ranking {
    const ki_ranks_input *in;
    const ki_knn_kernel *kernel;
    ki_panels query; /* a view of the group of queries at hand */
    int64_t first;   /* its first query */
    bool is_square;
    const members *members;
    int64_t *begin; /* [n_query + 1] places in list, of the group */
    relevant *list;
    float *least;      /* [padded]: below this nothing needs placing */
    atomic_char *tied; /* [n_query] */
    int64_t *rank;
    ki_device_rows *loaded; /* the gallery, when a device makes the scores */
} ranking;

static kith_status members_init(const int32_t *class_of, int64_t n, int32_t n_classes, members *ret,
                                kith_error *err) {
    KI_TRY(ki_zalloc_or(&ret->begin, (size_t)n_classes + 2, sizeof *ret->begin, "class sizes", err));
    KI_TRY(ki_alloc_or(&ret->item, (size_t)n, sizeof *ret->item, "class members", err));
    int64_t *next = ret->begin + 1; /* shifted by one: becomes begin by filling */
    for (int64_t i = 0; i < n; i++) next[class_of[i] + 1]++;
    for (int32_t c = 0; c < n_classes; c++) next[c + 1] += next[c];
    for (int64_t i = 0; i < n; i++) ret->item[next[class_of[i]]++] = (int32_t)i;
    return KITH_OK;
}

static int64_t self_of(const ranking *r, int64_t query) {
    return r->is_square ? query : r->in->self ? r->in->self[query] : -1;
}

static int64_t count_relevant(const ranking *r, int64_t query) {
    const int32_t c = r->in->query_class[query];
    const int64_t self = self_of(r, query);
    const bool is_own = self >= 0 && r->in->gallery_class[self] == c;
    return r->members->begin[c + 1] - r->members->begin[c] - is_own;
}

static int compare_relevant(const void *a, const void *b) {
    const relevant *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static void score_relevant(void *context, int64_t begin, int64_t end) {
    ranking *r = context;
    for (int64_t q = begin; q < end; q++) {
        const int64_t query = r->first + q, self = self_of(r, query);
        const int32_t c = r->in->query_class[query];
        relevant *to = r->list + r->begin[q];
        int64_t n = 0;
        for (int64_t m = r->members->begin[c]; m < r->members->begin[c + 1]; m++) {
            const int32_t j = r->members->item[m];
            if (j == self) continue;
            to[n++] = (relevant){ki_panels_score(&r->query, q, r->in->gallery, j), j, 0};
        }
        r->least[q] = INFINITY;
        if (n == 0) continue;
        qsort(to, (size_t)n, sizeof *to, compare_relevant);
        const double least = to[n - 1].score - ki_panels_bound(&r->query, q, r->in->gallery, -1);
        r->least[q] = nextafterf((float)least, -INFINITY);
    }
}

/* The first place whose relevant item scores at most x. */
static int64_t first_at_most(const relevant *list, int64_t n, double x) {
    int64_t low = 0, high = n;
    while (low < high) {
        const int64_t mid = (low + high) / 2;
        if (list[mid].score > x)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* In float64, equal scores to the lower index; the list's length when it falls behind all. */
static int64_t exact_place(ranking *r, int64_t q, int64_t j) {
    const relevant *list = r->list + r->begin[q];
    const int64_t n = r->begin[q + 1] - r->begin[q];
    const double exact = ki_panels_score(&r->query, q, r->in->gallery, j);
    int64_t at = first_at_most(list, n, exact);
    for (; at < n && list[at].score == exact; at++) {
        atomic_store_explicit(&r->tied[r->first + q], 1, memory_order_relaxed);
        if (j < list[at].index) break;
    }
    return at;
}

static void place(ranking *r, int64_t q, int64_t j, double score) {
    relevant *list = r->list + r->begin[q];
    const int64_t n = r->begin[q + 1] - r->begin[q];
    const double bound = ki_panels_bound(&r->query, q, r->in->gallery, j);
    int64_t at = first_at_most(list, n, score + bound);
    if (at < n && list[at].score >= score - bound) at = exact_place(r, q, j);
    if (at < n) list[at].n_before++;
}

static void consume(void *context, const ki_stripe *stripe) {
    ranking *r = context;
    const int32_t *row_class = r->in->query_class + r->first, *col_class = r->in->gallery_class;
    uint64_t row_mask[KI_MASK_WORDS], col_mask[KI_MASK_WORDS];
    const int n_words = (stripe->n_cols + 63) / 64;
    const uint64_t last = stripe->n_cols % 64 ? (UINT64_C(1) << stripe->n_cols % 64) - 1 : UINT64_MAX;
    for (int k = 0; k < stripe->n_rows; k++) {
        const int64_t q = stripe->row + k;
        const float *s = stripe->s + k * KI_BLOCK;
        if (stripe->both)
            r->kernel->compare(s, r->least[q], r->least + stripe->col, row_mask, col_mask);
        else
            r->kernel->compare_row(s, r->least[q], row_mask);
        for (int w = 0; w < n_words; w++) {
            const uint64_t valid = w == n_words - 1 ? last : UINT64_MAX;
            for (uint64_t bits = row_mask[w] & valid; bits; bits &= bits - 1) {
                const int c = w * 64 + __builtin_ctzll(bits);
                if (col_class[stripe->col + c] != row_class[q]) place(r, q, stripe->col + c, (double)s[c]);
            }
            if (!stripe->both) continue;
            for (uint64_t bits = col_mask[w] & valid; bits; bits &= bits - 1) {
                const int c = w * 64 + __builtin_ctzll(bits);
                if (col_class[stripe->col + c] != row_class[q]) place(r, stripe->col + c, q, (double)s[c]);
            }
        }
    }
}

void ki_ranks_part(const ki_comm *comm, int rank, int64_t n_query, int64_t *ret_first, int64_t *ret_n) {
    const int64_t n_blocks = (n_query + KI_BLOCK - 1) / KI_BLOCK;
    ki_comm_part(n_blocks, rank, comm ? comm->size : 1, ret_first, ret_n);
    *ret_first *= KI_BLOCK;
    *ret_n *= KI_BLOCK;
    if (*ret_first > n_query) *ret_first = n_query;
    if (*ret_n > n_query - *ret_first) *ret_n = n_query - *ret_first;
}

/* How many queries from r->first on fit into one group; fills begin. */
static int64_t group_size(ranking *r, int64_t n_query, int64_t most) {
    int64_t n = 0;
    r->begin[0] = 0;
    while (r->first + n < n_query) {
        const int64_t more = count_relevant(r, r->first + n);
        if (n > 0 && n % KI_BLOCK == 0 && r->begin[n] + KI_BLOCK * more > most) break;
        r->begin[n + 1] = r->begin[n] + more;
        n++;
    }
    return n;
}

typedef struct share {
    const ki_ranks_input *in;
    int64_t done, all;
} share;

static int report(void *user, int64_t done, int64_t all) {
    const share *s = user;
    return s->in->progress(s->in->user, s->done + done, s->all ? s->all : all);
}

/* Every irrelevant item of the group's queries is placed: by the host's tiles … */
static kith_status place_here(ranking *r, bool is_whole, kith_error *err) {
    const ki_panels *gallery = r->in->gallery;
    share shared = {r->in, r->first, is_whole ? 0 : r->in->query->rows.n};
    const bool is_tournament = r->is_square && is_whole;
    const ki_tiles tiles = {.rows = is_tournament ? gallery : &r->query,
                            .cols = gallery,
                            .kernel = r->kernel,
                            .consume = consume,
                            .context = r,
                            .progress = r->in->progress && is_whole ? report : NULL,
                            .user = &shared};
    return ki_tiles_run(&tiles, err);
}

typedef struct undecided {
    ranking *ranking;
    const uint64_t *pair;
} undecided;

static void place_undecided(void *context, int64_t begin, int64_t end) {
    const undecided *u = context;
    ranking *r = u->ranking;
    for (int64_t i = begin; i < end; i++) {
        const int64_t q = (int64_t)(u->pair[i] >> 32), j = (int64_t)(uint32_t)u->pair[i];
        const int64_t at = r->begin[q] + exact_place(r, q, j);
        if (at < r->begin[q + 1]) __atomic_fetch_add(&r->list[at].n_before, 1, __ATOMIC_RELAXED);
    }
}

static void settle(void *context, const uint64_t *pair, int64_t n) {
    undecided u = {context, pair};
    ki_parallel_for(n, 256, place_undecided, &u);
}

/* … or by a device, which leaves to us what its rounding cannot decide. */
static kith_status place_there(ranking *r, int64_t n, bool is_whole, kith_error *err) {
    kith_status status = KITH_OK;
    const ki_knn_device *d = r->in->device;
    ki_device_rows *query = NULL;
    const size_t n_relevant = (size_t)r->begin[n];
    double *score = NULL;
    int32_t *n_before = NULL;
    share shared = {r->in, r->first, is_whole ? 0 : r->in->query->rows.n};
    KI_CHECK(ki_alloc_or(&score, n_relevant, sizeof *score, "relevant scores", err));
    KI_CHECK(ki_zalloc_or(&n_before, n_relevant, sizeof *n_before, "counts", err));
    for (size_t t = 0; t < n_relevant; t++) score[t] = r->list[t].score;
    if (!r->loaded) KI_CHECK(d->type->load(d->backend, r->in->gallery, r->in->tile, &r->loaded, err));
    const bool is_same = r->is_square && is_whole;
    if (!is_same) KI_CHECK(d->type->load(d->backend, &r->query, r->in->tile, &query, err));
    const ki_device_places ask = {.rows = is_same ? r->loaded : query,
                                  .cols = r->loaded,
                                  .row_class = r->in->query_class + r->first,
                                  .col_class = r->in->gallery_class,
                                  .least = r->least,
                                  .begin = r->begin,
                                  .score = score,
                                  .ret_n_before = n_before,
                                  .unsettled = settle,
                                  .context = r,
                                  .progress = r->in->progress && is_whole ? report : NULL,
                                  .user = &shared};
    KI_CHECK(d->type->place(d->backend, &ask, err));
    for (size_t t = 0; t < n_relevant; t++) r->list[t].n_before += n_before[t];
done:
    d->type->unload(d->backend, query);
    ki_free(score);
    ki_free(n_before);
    return status;
}

static kith_status run_group(ranking *r, int64_t n, bool is_whole, ki_ranks_fn fn, void *context,
                             kith_error *err) {
    kith_status status = KITH_OK;
    KI_CHECK(ki_alloc_or(&r->list, (size_t)r->begin[n], sizeof *r->list, "relevant items", err));
    r->query = ki_panels_view(r->in->query, r->first, n);
    ki_parallel_for(n, 8, score_relevant, r);
    for (int64_t q = n; q < (int64_t)ki_round_up((size_t)n, KI_BLOCK); q++) r->least[q] = INFINITY;
    const bool is_here = !r->in->device || !r->in->device->type;
    KI_CHECK(is_here ? place_here(r, is_whole, err) : place_there(r, n, is_whole, err));
    for (int64_t q = 0; q < n; q++) {
        const int64_t n_relevant = r->begin[q + 1] - r->begin[q];
        const relevant *list = r->list + r->begin[q];
        int64_t n_before = 0;
        for (int64_t t = 0; t < n_relevant; t++) {
            n_before += list[t].n_before;
            r->rank[t] = t + n_before;
        }
        fn(context, r->first + q, r->rank, n_relevant, r->tied[r->first + q]);
    }
    if (!is_whole && r->in->progress && r->in->progress(r->in->user, r->first + n, r->in->query->rows.n))
        status = ki_fail(err, KITH_ECANCELED, "stopped after %lld queries", (long long)(r->first + n));
done:
    ki_free(r->list);
    r->list = NULL;
    return status;
}

kith_status ki_ranks_run(const ki_ranks_input *in, ki_ranks_fn fn, void *context, kith_error *err) {
    kith_status status = KITH_OK;
    const size_t n_query = (size_t)in->query->rows.n, n_gallery = (size_t)in->gallery->rows.n;
    const int64_t most = in->most_relevant > 0 ? in->most_relevant : INT64_C(1) << 26;
    members classes = {0};
    ranking r = {
        .in = in, .kernel = ki_knn_kernel_best(), .is_square = in->query == in->gallery, .members = &classes};
    KI_CHECK(members_init(in->gallery_class, (int64_t)n_gallery, in->n_classes, &classes, err));
    KI_CHECK(ki_alloc_or(&r.begin, n_query + 1, sizeof *r.begin, "relevant counts", err));
    KI_CHECK(ki_alloc_or(&r.least, ki_round_up(n_query, KI_BLOCK), sizeof *r.least, "thresholds", err));
    KI_CHECK(ki_zalloc_or(&r.tied, n_query, sizeof *r.tied, "tie marks", err));
    KI_CHECK(ki_alloc_or(&r.rank, n_gallery, sizeof *r.rank, "ranks", err));
    int64_t n_own = 0;
    ki_ranks_part(in->comm, in->comm ? in->comm->rank : 0, (int64_t)n_query, &r.first, &n_own);
    for (const int64_t end = r.first + n_own; r.first < end;) {
        const int64_t n = group_size(&r, end, most);
        KI_CHECK(run_group(&r, n, n == (int64_t)n_query, fn, context, err));
        r.first += n;
    }
done:
    if (r.loaded) in->device->type->unload(in->device->backend, r.loaded);
    ki_free(classes.begin);
    ki_free(classes.item);
    ki_free(r.begin);
    ki_free(r.least);
    ki_free(r.tied);
    ki_free(r.rank);
    return status;
}
