/* From ranks to metrics. Sums run over queries and classes in order, in float64. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "judge/judge.h"
#include "judge/per_query.h"
#include "judge/ranks.h"
#include "judge/sides.h"

KI_OPTIONS_INIT(kith_retrieval_options, .metric = KITH_COSINE, .n_k = 4, .k = {1, 2, 4, 8})

/* The fields of kith_scores that are not R@K, so that sums and means need no list of names. */
enum { N_PLAIN = 5 };
static double *plain(kith_scores *s, int i) {
    double *const field[N_PLAIN] = {&s->precision_at_1, &s->r_precision, &s->map_at_r, &s->map, &s->mrr};
    return field[i];
}
static void scores_add(kith_scores *to, const kith_scores *more, int64_t n_k) {
    kith_scores copy = *more;
    for (int i = 0; i < n_k; i++) to->recall[i] += copy.recall[i];
    for (int i = 0; i < N_PLAIN; i++) *plain(to, i) += *plain(&copy, i);
}
static void scores_divide(kith_scores *s, double by, int64_t n_k) {
    for (int i = 0; i < n_k; i++) s->recall[i] = by > 0 ? s->recall[i] / by : NAN;
    for (int i = 0; i < N_PLAIN; i++) *plain(s, i) = by > 0 ? *plain(s, i) / by : NAN;
}

static void score_query(void *context, int64_t query, const int64_t *rank, int64_t n, bool is_tied) {
    kith_retrieval *r = context;
    kith_scores s = {0};
    r->n_tied += is_tied;
    if (n == 0) {
        r->n_lone++;
        scores_divide(&s, 0, r->n_k);
        r->query[query] = s;
        return;
    }
    for (int i = 0; i < r->n_k; i++) s.recall[i] = rank[0] < r->k[i];
    s.precision_at_1 = rank[0] == 0;
    s.mrr = 1.0 / (double)(rank[0] + 1);
    for (int64_t t = 0; t < n; t++) {
        const double precision = (double)(t + 1) / (double)(rank[t] + 1);
        s.map += precision;
        if (rank[t] >= n) continue;
        s.map_at_r += precision;
        s.r_precision += 1;
    }
    s.map /= (double)n;
    s.map_at_r /= (double)n;
    s.r_precision /= (double)n;
    r->query[query] = s;
}

/* Ranks after re-ranking: those of the list first, and what lies behind it as it was. */
typedef struct relisted {
    kith_retrieval *retrieval;
    const ki_judge_input *in;
    const ki_sides *sides;
    int64_t *rank; /* [n_gallery] */
} relisted;

static void score_relisted(void *context, int64_t query, const int64_t *rank, int64_t n, bool is_tied) {
    const relisted *r = context;
    const kith_neighbor *list = r->in->lists + query * r->in->list_size;
    int64_t n_found = 0;
    for (int64_t p = 0; p < r->in->list_size && list[p].index >= 0; p++) {
        if (r->sides->gallery_class[list[p].index] == r->sides->query_class[query]) r->rank[n_found++] = p;
    }
    for (; n_found < n; n_found++) r->rank[n_found] = rank[n_found];
    score_query(r->retrieval, query, r->rank, n, is_tied);
}

static kith_status check_options(const kith_retrieval_options *options, kith_error *err) {
    if (options->n_k < 0 || options->n_k > KITH_MOST_K)
        return ki_fail(err, KITH_EINVAL, "%lld values of K; wanted 0 to %d", (long long)options->n_k,
                       KITH_MOST_K);
    for (int i = 0; i < options->n_k; i++) {
        if (options->k[i] < 1)
            return ki_fail(err, KITH_EINVAL, "K is %lld; wanted at least 1", (long long)options->k[i]);
        if (i > 0 && options->k[i] <= options->k[i - 1])
            return ki_fail(err, KITH_EINVAL, "K %lld comes after %lld; wanted rising values",
                           (long long)options->k[i], (long long)options->k[i - 1]);
    }
    return KITH_OK;
}

static void average(kith_retrieval *r, const ki_sides *s) {
    for (int64_t c = 0; c < r->n_classes; c++) r->per_class[c].label = s->label[c];
    for (int64_t i = 0; i < s->n_gallery; i++) r->per_class[s->gallery_class[i]].n_gallery++;
    for (int64_t i = 0; i < r->n_query; i++) {
        kith_class_scores *c = r->per_class + s->query_class[i];
        const bool is_lone = isnan(r->query[i].mrr);
        c->n_query++;
        c->n_lone += is_lone;
        r->query_label[i] = c->label;
        if (is_lone) continue;
        scores_add(&c->mean, r->query + i, r->n_k);
        scores_add(&r->mean, r->query + i, r->n_k);
    }
    int64_t n_counted = 0;
    for (int64_t c = 0; c < r->n_classes; c++) {
        kith_class_scores *p = r->per_class + c;
        const int64_t n = p->n_query - p->n_lone;
        scores_divide(&p->mean, (double)n, r->n_k);
        if (n == 0) continue;
        n_counted++;
        scores_add(&r->class_mean, &p->mean, r->n_k);
    }
    scores_divide(&r->class_mean, (double)n_counted, r->n_k);
    scores_divide(&r->mean, (double)(r->n_query - r->n_lone), r->n_k);
}

/* Everything that is compared. */
typedef struct compared {
    ki_sides sides;
    ki_panels query, gallery;
    ki_knn_device opened;
    int64_t *order; /* ki_judge_input.lists: ranks [n_gallery] */
} compared;

static void compared_release(compared *c) {
    ki_free(c->order);
    ki_panels_release(&c->query);
    ki_panels_release(&c->gallery);
    ki_knn_device_close(&c->opened);
    ki_sides_release(&c->sides);
}

/* This rank's part of r->query, and how many of them are lone or tied. */
static kith_status score_queries(const ki_judge_input *input, const kith_retrieval_options *options,
                                 compared *c, kith_retrieval *r, kith_error *err) {
    ki_sides *s = &c->sides;
    const ki_knn_device *device = input->device ? input->device : &c->opened;
    KI_TRY(ki_sides_init(input, s, err));
    const bool is_square = !input->query && !input->gallery && !input->moved_queries;
    if (input->moved_queries) s->query = *input->moved_queries;
    KI_TRY(ki_panels_init(&s->gallery, options->metric, NULL, &c->gallery, err));
    if (!is_square) KI_TRY(ki_panels_init(&s->query, options->metric, &c->gallery, &c->query, err));
    if (!input->device) KI_TRY(ki_knn_device_open(options->device, &c->opened, err));
    if (device->type) {
        ki_panels_any_order(&c->gallery);
        ki_panels_any_order(&c->query);
    }
    r->n_query = s->n_query;
    r->n_gallery = s->n_gallery;
    r->n_classes = s->n_classes;
    if (options->metric == KITH_COSINE) r->n_zero_rows = c->gallery.n_zero + c->query.n_zero;
    KI_TRY(ki_zalloc_or(&r->query, (size_t)r->n_query, sizeof *r->query, "query scores", err));
    KI_TRY(ki_zalloc_or(&r->query_label, (size_t)r->n_query, sizeof *r->query_label, "query labels", err));
    KI_TRY(ki_zalloc_or(&r->per_class, (size_t)r->n_classes, sizeof *r->per_class, "class scores", err));
    const ki_ranks_input ranks = {.query = is_square ? &c->gallery : &c->query,
                                  .gallery = &c->gallery,
                                  .query_class = s->query_class,
                                  .gallery_class = s->gallery_class,
                                  .n_classes = (int32_t)s->n_classes,
                                  .self = s->self,
                                  .device = device,
                                  .progress = options->progress,
                                  .user = options->user,
                                  .comm = input->comm};
    if (!input->lists) return ki_ranks_run(&ranks, score_query, r, err);
    KI_TRY(ki_alloc_or(&c->order, (size_t)r->n_gallery, sizeof *c->order, "ranks", err));
    relisted again = {r, input, s, c->order};
    return ki_ranks_run(&ranks, score_relisted, &again, err);
}

/* The queries of all ranks. */
static kith_status join_queries(ki_comm *comm, kith_retrieval *r, kith_error *err) {
    int64_t counts[KI_MOST_RANKS], first = 0, at = 0, all[KI_MOST_RANKS];
    int64_t *const sums[] = {&r->n_lone, &r->n_tied};
    if (ki_comm_is_alone(comm)) return KITH_OK;
    for (int k = 0; k < comm->size; k++) {
        ki_ranks_part(comm, k, r->n_query, &first, &counts[k]);
        if (k == comm->rank) at = first;
    }
    KI_TRY(ki_comm_gather(comm, r->query + at, counts, sizeof *r->query, r->query, err));
    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++) {
        KI_TRY(ki_comm_gather_counts(comm, *sums[i], all, err));
        *sums[i] = 0;
        for (int k = 0; k < comm->size; k++) *sums[i] += all[k];
    }
    return KITH_OK;
}

kith_status ki_retrieval_run(const ki_judge_input *input, const kith_retrieval_options *options,
                             kith_retrieval *ret_retrieval, kith_error *err) {
    kith_status status = KITH_OK;
    kith_retrieval r = {.n_k = options->n_k};
    compared c = {0};
    KI_TRY(check_options(options, err));
    memcpy(r.k, options->k, sizeof r.k);
    KI_CHECK(ki_comm_agree(input->comm, score_queries(input, options, &c, &r, err), err));
    KI_CHECK(join_queries(input->comm, &r, err));
    average(&r, &c.sides);
    KI_CHECK(ki_queries_hash(&c.sides, r.queries_sha256, err));
    if (r.n_lone == r.n_query) {
        status = ki_fail(err, KITH_EINVAL, "none of the %lld queries has another item of its class to find",
                         (long long)r.n_query);
        ki_hint(err, status, "check that labels and rows are in the same order");
        goto done;
    }
    *ret_retrieval = r;
    memset(&r, 0, sizeof r);
done:
    kith_retrieval_release(&r);
    compared_release(&c);
    return status;
}

kith_status kith_retrieval_run(const kith_retrieval_input *in, const kith_retrieval_options *options,
                               kith_retrieval *ret_retrieval, kith_error *err) {
    KI_NEED(err, in, ret_retrieval);
    ki_judge_input input;
    KI_OPTIONS_TAKE(kith_retrieval_options, o, options, err);
    KI_TRY(check_options(&o, err));
    KI_TRY(ki_judge_input_of(in, &input, err));
    return ki_retrieval_run(&input, &o, ret_retrieval, err);
}

void kith_retrieval_release(kith_retrieval *r) {
    if (!r) return;
    ki_free(r->query);
    ki_free(r->query_label);
    ki_free(r->per_class);
    *r = (kith_retrieval){0};
}
