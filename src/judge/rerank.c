/* Judging re-ranked lists: the scores of retrieval again, with expanded queries or with lists in their new order. */
#include "judge/rerank.h"

#include <stdatomic.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/clock.h"
#include "base/parallel.h"
#include "judge/sides.h"

KI_OPTIONS_INIT(kith_rerank_options, .method = KITH_RERANK_RECIPROCAL, .n_candidates = 200)

/* ---- what the methods share ---- */

kith_status ki_rerank_rows(const kith_array *query, const kith_array *gallery, ki_rows *ret_query,
                           ki_rows *ret_gallery, kith_error *err) {
    KI_TRY(ki_rows_init(query, "query", ret_query, err));
    KI_TRY(ki_rows_init(gallery, "gallery", ret_gallery, err));
    if (ret_query->dim != ret_gallery->dim)
        return ki_fail(err, KITH_ESHAPE, "query rows have %lld values, gallery rows %lld",
                       (long long)ret_query->dim, (long long)ret_gallery->dim);
    return KITH_OK;
}

kith_status ki_rerank_check_lists(const kith_neighbor *lists, int64_t n, int64_t list_size, int64_t n_gallery,
                                  kith_error *err) {
    for (int64_t i = 0; i < n * list_size; i++) {
        if (lists[i].index < -1 || lists[i].index >= n_gallery)
            return ki_fail(err, KITH_EINVAL, "entry %lld of list %lld is row %lld; the gallery has %lld",
                           (long long)(i % list_size), (long long)(i / list_size), (long long)lists[i].index,
                           (long long)n_gallery);
    }
    return KITH_OK;
}

typedef struct turns {
    int64_t n;
    ki_rerank_fn fn;
    void *context;
    atomic_int_least64_t next;
} turns;

enum { TURN = 32 };

static void take_turns(void *context, int64_t begin, int64_t end) {
    (void)end; /* slots, not ranges: rows differ in what they cost */
    turns *t = context;
    for (;;) {
        const int64_t first = atomic_fetch_add(&t->next, TURN);
        if (first >= t->n) return;
        for (int64_t i = first; i < t->n && i < first + TURN; i++) t->fn(t->context, (int)begin, i);
    }
}

void ki_rerank_each(int64_t n, ki_rerank_fn fn, void *context) {
    turns t = {.n = n, .fn = fn, .context = context};
    ki_parallel_for(ki_threads(), 1, take_turns, &t);
}

/* ---- judging ---- */

typedef struct task {
    const ki_judge_input *in;
    const kith_retrieval_options *retrieval;
    ki_sides sides;
    kith_array query, gallery; /* views */
    int64_t *self;             /* [queries] */
    kith_gallery *search;
    int64_t list_size;
    kith_neighbor *lists; /* [queries, list_size] */
} task;

static kith_array view_of(const ki_rows *rows) {
    return (kith_array){rows->dtype, 2, {rows->n, rows->dim}, (void *)(uintptr_t)rows->data};
}

/* Lists as long as the gallery has rows, at most. */
static kith_status find_lists(task *t, int64_t wanted, kith_error *err) {
    const bool is_square = !t->in->query && !t->in->gallery;
    const int64_t n = t->sides.n_query, most = t->sides.n_gallery;
    const kith_knn_options options = {.size = sizeof options,
                                      .metric = KITH_COSINE,
                                      .exact = true,
                                      .progress = t->retrieval->progress,
                                      .user = t->retrieval->user,
                                      .device = t->in->device ? NULL : t->retrieval->device};
    size_t bytes;
    t->list_size = wanted < most ? wanted : most;
    if (!ki_mul_size((size_t)t->list_size, sizeof *t->lists, &bytes))
        return ki_fail_memory(err, SIZE_MAX, "lists");
    KI_TRY(ki_alloc_or(&t->lists, (size_t)n, bytes, "lists", err));
    KI_TRY(ki_alloc_or(&t->self, (size_t)n, sizeof *t->self, "queries' rows", err));
    for (int64_t i = 0; i < n; i++) t->self[i] = t->sides.self[i];
    KI_TRY(kith_gallery_new(&t->gallery, &options, &t->search, err));
    if (is_square) return kith_gallery_self(t->search, t->list_size, t->lists, err);
    return kith_gallery_search(t->search, &t->query, t->self, t->list_size, t->lists, err);
}

static kith_status judge_again(const task *t, const ki_judge_input *in, kith_scores *ret, kith_error *err) {
    kith_retrieval after = {0};
    KI_TRY(ki_retrieval_run(in, t->retrieval, &after, err));
    *ret = after.mean;
    kith_retrieval_release(&after);
    return KITH_OK;
}

static kith_status expand(task *t, const kith_expansion_options *o, kith_scores *ret_after, kith_error *err) {
    kith_status status;
    kith_array moved = {0};
    ki_rows rows;
    kith_expansion_options some = *o;
    KI_CHECK(find_lists(t, o->k, err));
    if (some.k > t->list_size) some.k = t->list_size;
    KI_CHECK(kith_query_expand(&t->query, &t->gallery, t->lists, t->list_size, &some, &moved, err));
    KI_CHECK(ki_rows_init(&moved, "expanded queries", &rows, err));
    ki_judge_input in = *t->in;
    in.moved_queries = &rows;
    KI_CHECK(judge_again(t, &in, ret_after, err));
done:
    kith_array_release(&moved);
    return status;
}

static kith_status reciprocate(task *t, const kith_reciprocal_options *o, int64_t n_candidates,
                               kith_scores *ret_after, kith_error *err) {
    kith_status status;
    kith_reciprocal *sets = NULL;
    kith_neighbor *own = NULL;
    const bool is_square = !t->in->query && !t->in->gallery;
    int64_t wanted = o->k1 > o->k2 - 1 ? o->k1 : o->k2 - 1;
    if (wanted > t->sides.n_gallery) wanted = t->sides.n_gallery;
    KI_CHECK(find_lists(t, n_candidates > wanted ? n_candidates : wanted, err));
    if (!is_square) {
        KI_CHECK(ki_alloc_or(&own, (size_t)t->sides.n_gallery, (size_t)wanted * sizeof *own, "lists", err));
        KI_CHECK(kith_gallery_self(t->search, wanted, own, err));
    }
    KI_CHECK(
        kith_reciprocal_new(&t->gallery, own ? own : t->lists, own ? wanted : t->list_size, o, &sets, err));
    KI_CHECK(kith_reciprocal_rerank(sets, &t->query, t->self, t->lists, t->list_size, err));
    ki_judge_input in = *t->in;
    in.lists = t->lists;
    in.list_size = t->list_size;
    KI_CHECK(judge_again(t, &in, ret_after, err));
done:
    kith_reciprocal_free(sets);
    ki_free(own);
    return status;
}

kith_status ki_rerank_judge(const ki_judge_input *input, const kith_retrieval_options *retrieval,
                            const kith_rerank_options *options, const kith_scores *before,
                            kith_reranking *ret, kith_error *err) {
    kith_status status;
    const double began = ki_seconds_now();
    task t = {.in = input, .retrieval = retrieval};
    KI_OPTIONS_TAKE(kith_expansion_options, expansion, options->expansion, err);
    KI_OPTIONS_TAKE(kith_reciprocal_options, reciprocal, options->reciprocal, err);
    if (retrieval->metric != KITH_COSINE)
        return ki_fail(err, KITH_EINVAL, "re-ranking goes by cosine; the metric is %s",
                       kith_metric_name(retrieval->metric));
    if (options->method != KITH_RERANK_EXPANSION && options->method != KITH_RERANK_RECIPROCAL)
        return ki_fail(err, KITH_EINVAL, "the way of re-ranking is %d; wanted expansion or k-reciprocal",
                       (int)options->method);
    if (options->n_candidates < 1)
        return ki_fail(err, KITH_EINVAL, "%lld candidates; wanted at least 1",
                       (long long)options->n_candidates);
    kith_reranking r = {.method = options->method,
                        .k = expansion.k,
                        .alpha = expansion.alpha,
                        .k1 = reciprocal.k1,
                        .k2 = reciprocal.k2,
                        .lambda = reciprocal.lambda,
                        .before = *before};
    KI_CHECK(ki_sides_init(input, &t.sides, err));
    t.query = view_of(&t.sides.query);
    t.gallery = view_of(&t.sides.gallery);
    if (options->method == KITH_RERANK_EXPANSION)
        KI_CHECK(expand(&t, &expansion, &r.after, err));
    else
        KI_CHECK(reciprocate(&t, &reciprocal, options->n_candidates, &r.after, err));
    r.n_candidates = t.list_size;
    r.seconds = ki_seconds_now() - began;
    *ret = r;
done:
    kith_gallery_free(t.search);
    ki_free(t.lists);
    ki_free(t.self);
    ki_sides_release(&t.sides);
    return status;
}
