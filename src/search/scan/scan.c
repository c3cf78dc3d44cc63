/* The search: queries in groups, lists in turn, pools of candidates, and the second look.
 *
 * Queries of a group visit their nearest list first, which gives them a threshold, and then all lists in the order of their
 * numbers, so that the codes of a list are read once for all queries of the group that visit it. */
#include "search/scan/scan.h"

#include <string.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "search/scan/failure.h"
#include "search/scan/look.h"
#include "search/scan/probe.h"

enum {
    GROUP = 256,           /* queries together: their tables stay in the second-level cache */
    GROUP_LISTS = 1 << 20, /* visits of a group at most */
    GRAIN = 16,            /* queries that are worth a thread */
    LOOK_COST = 40,        /* a look takes as long as the estimates of so many rows, from memory … */
    SPARE_LOOKS = 16,      /* beyond k, at least: an estimate errs */
    FAR_LOOKS = 8,         /* times as many looks for a query far from all allowed rows */
    READ_COST = 200,       /* … and through a function */
};

typedef struct search {
    const ki_scan_set *set;
    const ki_scan_options *options;
    const float *query;
    int64_t k;
    int64_t n_looks, most_looks; /* the latter for queries far from all allowed rows */
    ki_probes probes;
    bool is_exact; /* few rows are allowed: look at each */
    kith_neighbor *neighbors;
    ki_failure failure;
} search;

/* What a thread has. */
typedef struct worker {
    const search *s;
    const ki_scan_kernel *kernel;
    int64_t room; /* queries of a group */
    ki_scan_query *query;
    ki_best *best;
    float *turned;
    uint8_t *entry;
    ki_key *keys; /* pools, and one more for scratch */
    ki_key *scratch;
    kith_neighbor *heap;
    uint32_t *visit;       /* [room, most] */
    ki_visits *visits;     /* [room] */
    uint32_t *begin, *who; /* visits by list */
    ki_prober prober;
    ki_looker looker;
} worker;

static void worker_release(worker *w) {
    void *const owned[] = {w->query, w->best,  w->turned, w->entry, w->keys,
                           w->heap,  w->visit, w->visits, w->begin, w->who};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) ki_free(owned[i]);
    ki_prober_release(&w->prober);
    ki_looker_release(&w->looker);
}

static kith_status worker_init(worker *w, const search *s, int64_t n, kith_error *err) {
    const ki_coder *c = s->set->coder;
    *w = (worker){.s = s, .kernel = ki_scan_kernel_best()};
    KI_TRY(ki_looker_init(&w->looker, c, &s->set->rows, err));
    KI_TRY(ki_prober_init(&w->prober, s->set, &s->probes, n < 4 ? n : 4, err));
    int64_t room = GROUP_LISTS / w->prober.most;
    room = room < 1 ? 1 : room < GROUP ? room : GROUP;
    w->room = room < n ? room : n;
    const size_t q = (size_t)w->room, padded = (size_t)c->padded;
    const int64_t pool = ki_scan_pool_room(s->most_looks);
    KI_TRY(ki_zalloc_or(&w->query, q, sizeof *w->query, "queries", err));
    KI_TRY(ki_alloc_or(&w->best, q, sizeof *w->best, "queries", err));
    KI_TRY(ki_alloc_or(&w->turned, q, padded * sizeof(float), "queries", err));
    KI_TRY(ki_alloc_or(&w->entry, q, padded * 4, "queries", err));
    KI_TRY(ki_alloc_or(&w->keys, q + 1, (size_t)pool * sizeof(ki_key), "candidates", err));
    KI_TRY(ki_alloc_or(&w->heap, q, (size_t)s->k * sizeof *w->heap, "neighbours", err));
    KI_TRY(ki_alloc_or(&w->visit, q, (size_t)w->prober.most * sizeof *w->visit, "visits", err));
    KI_TRY(ki_zalloc_or(&w->visits, q, sizeof *w->visits, "visits", err));
    if (w->room > 1) {
        KI_TRY(ki_alloc_or(&w->begin, (size_t)c->n_lists + 2, sizeof *w->begin, "visits", err));
        KI_TRY(ki_alloc_or(&w->who, q, (size_t)w->prober.most * sizeof *w->who, "visits", err));
    }
    w->scratch = w->keys + w->room * pool;
    for (int64_t i = 0; i < w->room; i++) {
        w->query[i].turned = w->turned + i * c->padded;
        w->query[i].entry = w->entry + i * c->padded * 4;
    }
    return KITH_OK;
}

/* Candidates of one call's blocks, whose first place is `place`. */
static void collect(worker *w, ki_scan_query *q, const ki_scan_segment *segment, int64_t place,
                    int64_t n_blocks, const float *score, const uint32_t *mask, float base) {
    const uint64_t *allowed = w->s->options->allowed;
    for (int64_t b = 0; b < n_blocks; b++) {
        for (uint32_t bits = mask[b]; bits; bits &= bits - 1) {
            const int64_t at = b * KI_SCAN_BLOCK + __builtin_ctz(bits);
            const float sum = score[at] + base;
            if (sum < q->pool.least) continue;
            const int64_t row = segment->first + segment->codes->row[place + at];
            if (row == q->self || !ki_scan_is_allowed(allowed, row)) continue;
            ki_scan_pool_add(&q->pool, sum, row, w->scratch);
        }
    }
}

static void scan_list(worker *w, ki_scan_query *q, int64_t list) {
    const ki_scan_set *set = w->s->set;
    const int64_t bytes = ki_scan_block_bytes(q->table.n_groups, q->table.bits);
    const float base = ki_scan_query_about(q, set->coder, w->kernel, list);
    float score[KI_SCAN_CALL * KI_SCAN_BLOCK];
    uint32_t mask[KI_SCAN_CALL];
    for (int64_t s = 0; s < set->n_segments; s++) {
        const ki_scan_segment *segment = set->segments + s;
        if (!segment->codes) continue;
        const int64_t begin = segment->codes->begin[list], end = segment->codes->begin[list + 1];
        if (begin == end) continue;
        const int64_t last = (end - 1) / KI_SCAN_BLOCK;
        for (int64_t b = begin / KI_SCAN_BLOCK; b <= last; b += KI_SCAN_CALL) {
            const int64_t n = last + 1 - b < KI_SCAN_CALL ? last + 1 - b : KI_SCAN_CALL;
            /* Lower by the rounding of the sums, so that which candidates come through to the pool does not depend on the
             * threshold's value of the moment. */
            const float least = q->pool.least - base - (fabsf(q->pool.least) + fabsf(base)) * 0x1p-22F;
            w->kernel->estimate(&q->table, segment->codes->blocks + b * bytes, n, least, score, mask);
            /* The first and the last block may hold places of other lists. */
            if (b == begin / KI_SCAN_BLOCK) mask[0] &= UINT32_MAX << begin % KI_SCAN_BLOCK;
            if (b + n > last) mask[n - 1] &= UINT32_MAX >> (KI_SCAN_BLOCK - 1 - (end - 1) % KI_SCAN_BLOCK);
            collect(w, q, segment, b * KI_SCAN_BLOCK, n, score, mask, base);
        }
    }
}

/* The codes of a list will be read soon. */
static void expect(const ki_scan_set *set, int64_t list) {
    enum { LINES = 48 };
    const ki_coder *c = set->coder;
    const int64_t bytes = ki_scan_block_bytes(c->coded / KI_SCAN_GROUP, c->bits);
    for (int64_t s = 0; s < set->n_segments; s++) {
        const ki_codes *codes = set->segments[s].codes;
        if (!codes || codes->begin[list] == codes->begin[list + 1]) continue;
        const uint8_t *at = codes->blocks + codes->begin[list] / KI_SCAN_BLOCK * bytes;
        for (int64_t i = 0; i < LINES && i * 64 < bytes * 8; i++) __builtin_prefetch(at + i * 64);
    }
    const char *centroid = (const char *)(c->centroid + list * c->padded);
    for (int64_t i = 0; i < LINES && i * 16 < c->padded; i++) __builtin_prefetch(centroid + i * 64);
}

static void scan_one(worker *w) {
    for (int64_t i = 0; i < w->visits[0].n_lists; i++) {
        if (i + 1 < w->visits[0].n_lists) expect(w->s->set, w->visit[i + 1]);
        scan_list(w, w->query, w->visit[i]);
    }
}

static void scan_group(worker *w, int64_t n) {
    const int64_t lists = w->s->set->coder->n_lists, most = w->prober.most;
    for (int64_t q = 0; q < n; q++) {
        if (w->visits[q].n_lists > 0) scan_list(w, w->query + q, w->visit[q * most]);
    }
    memset(w->begin, 0, (size_t)(lists + 2) * sizeof *w->begin);
    for (int64_t q = 0; q < n; q++) {
        for (int64_t i = 1; i < w->visits[q].n_lists; i++) w->begin[w->visit[q * most + i] + 2]++;
    }
    for (int64_t l = 0; l < lists; l++) w->begin[l + 2] += w->begin[l + 1];
    for (int64_t q = 0; q < n; q++) {
        for (int64_t i = 1; i < w->visits[q].n_lists; i++)
            w->who[w->begin[w->visit[q * most + i] + 1]++] = (uint32_t)q;
    }
    for (int64_t l = 0; l < lists; l++) {
        for (uint32_t i = w->begin[l]; i < w->begin[l + 1]; i++) scan_list(w, w->query + w->who[i], l);
    }
}

/* Allowed rows of a segment, all of them, for all queries of the group. */
static kith_status look_at_segment(worker *w, const ki_scan_segment *segment, int64_t n, kith_error *err) {
    const uint64_t *allowed = w->s->options->allowed;
    int64_t row[KI_LOOK_ROWS], n_rows = 0;
    for (int64_t i = segment->first; i < segment->first + segment->n; i++) {
        if (allowed && !allowed[i / 64]) {
            i |= 63; /* nothing in this word */
            continue;
        }
        if (ki_scan_is_allowed(allowed, i)) row[n_rows++] = i;
        if (n_rows < KI_LOOK_ROWS) continue;
        KI_TRY(ki_look_rows(&w->looker, row, n_rows, w->query, w->best, n, err));
        n_rows = 0;
    }
    return ki_look_rows(&w->looker, row, n_rows, w->query, w->best, n, err);
}

static kith_status search_group(worker *w, int64_t begin, int64_t n, kith_error *err) {
    const search *s = w->s;
    const ki_scan_set *set = s->set;
    const int64_t room = ki_scan_pool_room(s->most_looks);
    for (int64_t i = 0; i < n; i++) {
        ki_scan_query *q = w->query + i;
        KI_TRY(ki_scan_query_set(q, set->coder, s->query + (begin + i) * set->rows.dim, set->rows.dim,
                                 begin + i, err));
        q->self = s->options->self ? s->options->self[begin + i] : -1;
        w->best[i] = (ki_best){.heap = w->heap + i * s->k, .k = s->k};
    }
    for (int64_t i = 0; !s->is_exact && i < n; i += 4)
        ki_prober_choose(&w->prober, w->query[i].turned, n - i < 4 ? n - i : 4, w->visit + i * w->prober.most,
                         w->visits + i);
    for (int64_t i = 0; i < n; i++)
        ki_scan_pool_init(&w->query[i].pool, w->keys + i * room,
                          w->visits[i].is_far ? s->most_looks : s->n_looks);
    if (!s->is_exact && n == 1) scan_one(w);
    if (!s->is_exact && n > 1) scan_group(w, n);
    for (int64_t i = 0; !s->is_exact && i < n; i++) {
        ki_scan_pool_cut(&w->query[i].pool, w->scratch);
        KI_TRY(ki_look_pool(&w->looker, w->query + i, w->best + i, w->scratch, err));
    }
    for (int64_t i = 0; i < set->n_segments; i++) {
        if (s->is_exact || !set->segments[i].codes) KI_TRY(look_at_segment(w, set->segments + i, n, err));
    }
    for (int64_t i = 0; i < n; i++)
        ki_best_take(w->best + i, set->coder->metric, s->neighbors + (begin + i) * s->k);
    return KITH_OK;
}

static void search_range(void *context, int64_t begin, int64_t end) {
    search *s = context;
    worker w = {0};
    kith_error error = {0};
    kith_status status = worker_init(&w, s, end - begin, &error);
    for (int64_t i = begin; status == KITH_OK && i < end && !ki_failure_is_set(&s->failure); i += w.room)
        status = search_group(&w, i, end - i < w.room ? end - i : w.room, &error);
    ki_failure_set(&s->failure, status, &error);
    worker_release(&w);
}

static int64_t count_bits(const uint64_t *bits, int64_t n) {
    int64_t count = 0;
    for (int64_t i = 0; i < n / 64; i++) count += __builtin_popcountll(bits[i]);
    if (n % 64) count += __builtin_popcountll(bits[n / 64] & ~(UINT64_MAX << n % 64));
    return count;
}

/* How many lists and looks; and whether estimates are worth it at all. */
static void settle(search *s) {
    const ki_scan_set *set = s->set;
    const ki_scan_effort *e = &s->options->effort;
    const int64_t lists = set->coder->n_lists;
    int64_t n_coded = 0;
    for (int64_t i = 0; i < set->n_segments; i++) n_coded += set->segments[i].codes ? set->segments[i].n : 0;
    s->probes.n_lists = e->n_probes > 0 ? e->n_probes : lists / 32 + 8;
    s->n_looks = e->n_looks > 0 ? e->n_looks : 8 * s->k + 64;
    if (e->k > 0 && s->k > e->k) {
        const double more = (double)s->k / (double)e->k;
        s->probes.n_lists = (int64_t)fmin(ceil((double)s->probes.n_lists * more), (double)lists);
        s->n_looks = (int64_t)fmin(ceil((double)s->n_looks * more), (double)INT32_MAX);
    }
    if (s->probes.n_lists > lists) s->probes.n_lists = lists;
    if (s->n_looks < s->k + SPARE_LOOKS) s->n_looks = s->k + SPARE_LOOKS;
    if (s->n_looks > n_coded) s->n_looks = n_coded > 0 ? n_coded : 1;
    const double met = (double)n_coded / (double)lists * (double)s->probes.n_lists;
    s->probes.n_wanted = (int64_t)ceil(fmax(met, (double)s->n_looks));
    if (n_coded <= s->n_looks) s->is_exact = true;
    s->most_looks = s->n_looks;
    if (!s->options->allowed) return;
    const int64_t n_allowed =
        s->options->n_allowed >= 0 ? s->options->n_allowed : count_bits(s->options->allowed, set->rows.n);
    const double look = set->rows.data ? LOOK_COST : READ_COST;
    const double part = n_coded > 0 ? (double)n_allowed / (double)n_coded : 0;
    const double scanned = part > 0 ? fmin((double)s->probes.n_wanted / part, (double)n_coded) : 0;
    s->is_exact |= (double)n_allowed * look <= scanned + (double)s->n_looks * look;
    if (s->is_exact) return;
    s->probes.allowed = s->options->allowed;
    s->probes.n_expected = (int64_t)((double)s->probes.n_lists * (double)n_allowed / (double)lists);
    /* Allowed rows are farther from the query, some of them much, and farther away estimates err more. Looks that turn out not to
     * be needed are not taken. */
    s->most_looks = s->n_looks * FAR_LOOKS < n_coded ? s->n_looks * FAR_LOOKS : n_coded;
    s->n_looks = 2 * s->n_looks < n_coded ? 2 * s->n_looks : n_coded;
}

kith_status ki_scan_search(const ki_scan_set *set, const float *query, int64_t n, int64_t k,
                           const ki_scan_options *options, kith_neighbor *ret_neighbors, kith_error *err) {
    static const ki_scan_options none = {0};
    if (k < 1) return ki_fail(err, KITH_EINVAL, "%lld neighbours; wanted at least 1", (long long)k);
    if (set->rows.dim < set->coder->dim)
        return ki_fail(err, KITH_EINVAL, "rows of %lld values for a coder of %lld", (long long)set->rows.dim,
                       (long long)set->coder->dim);
    search s = {
        .set = set, .options = options ? options : &none, .query = query, .k = k, .neighbors = ret_neighbors};
    settle(&s);
    ki_parallel_for(n, GRAIN, search_range, &s);
    return ki_failure_get(&s.failure, err);
}
