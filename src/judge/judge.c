/* Retrieval, intervals and clustering of vectors, on the device that holds them or on the host. */
#include "judge/judge.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/clock.h"
#include "base/text.h"
#include "judge/per_query.h"
#include "judge/rerank.h"
#include "judge/verification.h"
#include "judge/worst.h"
#include "kith/data.h"
#include "knn/kmeans.h"

KI_OPTIONS_INIT(kith_judge_options, .has_retrieval = true, .has_intervals = true, .has_clustering = true)

kith_status ki_judge_options_take(const kith_judge_options *given, ki_judge_options *ret, kith_error *err) {
    KI_OPTIONS_TAKE(kith_judge_options, o, given, err);
    KI_OPTIONS_TAKE(kith_retrieval_options, retrieval, o.retrieval, err);
    KI_OPTIONS_TAKE(kith_bootstrap_options, bootstrap, o.bootstrap, err);
    KI_OPTIONS_TAKE(kith_kmeans_options, kmeans, o.kmeans, err);
    KI_OPTIONS_TAKE(kith_verification_options, verification, o.verification, err);
    KI_OPTIONS_TAKE(kith_rerank_options, rerank, o.rerank, err);
    *ret = (ki_judge_options){.has_retrieval = o.has_retrieval,
                              .has_intervals = o.has_intervals,
                              .has_clustering = o.has_clustering,
                              .retrieval = retrieval,
                              .bootstrap = bootstrap,
                              .kmeans = kmeans,
                              .has_verification = o.has_verification,
                              .verification = verification,
                              .has_rerank = o.has_rerank,
                              .rerank = rerank};
    return KITH_OK;
}

void kith_judgement_release(kith_judgement *judgement) {
    if (!judgement) return;
    kith_retrieval_release(&judgement->retrieval);
    *judgement = (kith_judgement){0};
}

/* ---- clustering ---- */

/* The rows that take part: all, or those of query and gallery, each once. */
static kith_status mark_rows(const ki_judge_input *in, bool **ret_is_in, int64_t *ret_n, kith_error *err) {
    const int64_t n = in->rows.n;
    KI_TRY(ki_alloc_or(ret_is_in, (size_t)n, sizeof **ret_is_in, "rows", err));
    memset(*ret_is_in, !in->query || !in->gallery, (size_t)n);
    for (int64_t i = 0; i < in->n_query; i++) (*ret_is_in)[in->query[i]] = true;
    for (int64_t i = 0; i < in->n_gallery; i++) (*ret_is_in)[in->gallery[i]] = true;
    *ret_n = 0;
    for (int64_t i = 0; i < n; i++) *ret_n += (*ret_is_in)[i];
    return KITH_OK;
}

typedef struct members {
    ki_rows rows;
    void *copy; /* of some of them; NULL: all are in */
    int64_t *label;
} members;

static kith_status pick_members(const ki_judge_input *in, members *ret, kith_error *err) {
    kith_status status;
    bool *is_in = NULL;
    int64_t n = 0, at = 0;
    const size_t bytes = (size_t)in->rows.dim * kith_dtype_bytes(in->rows.dtype);
    ret->rows = in->rows;
    KI_CHECK(mark_rows(in, &is_in, &n, err));
    KI_CHECK(ki_alloc_or(&ret->label, (size_t)n, sizeof *ret->label, "labels", err));
    if (n < in->rows.n) {
        KI_CHECK(ki_alloc_or(&ret->copy, (size_t)n, bytes, "picked rows", err));
        ret->rows = (ki_rows){in->rows.dtype, n, in->rows.dim, ret->copy, NULL};
    }
    for (int64_t i = 0; i < in->rows.n; i++) {
        if (!is_in[i]) continue;
        if (ret->copy)
            memcpy((char *)ret->copy + (size_t)at * bytes, (const char *)in->rows.data + (size_t)i * bytes,
                   bytes);
        ret->label[at++] = in->labels[i];
    }
done:
    ki_free(is_in);
    return status;
}

static kith_status cluster(const ki_judge_input *in, kith_kmeans_options *options, kith_judgement *j,
                           kith_error *err) {
    kith_status status;
    members m = {0};
    kith_kmeans_result found = {0};
    kith_clustering same;
    int64_t *cluster = NULL;
    KI_CHECK(pick_members(in, &m, err));
    KI_CHECK(ki_alloc_or(&cluster, (size_t)m.rows.n, sizeof *cluster, "clusters", err));
    KI_CHECK(kith_clustering_compare(m.label, m.label, m.rows.n, &same, err)); /* counts the classes */
    if (options->n_clusters == 0) options->n_clusters = same.n_classes;
    KI_CHECK(ki_kmeans_run(&m.rows, in->device, options, &found, err));
    for (int64_t i = 0; i < m.rows.n; i++) cluster[i] = found.cluster[i];
    KI_CHECK(kith_clustering_compare(cluster, m.label, m.rows.n, &j->clustering, err));
    j->kmeans = (kith_kmeans_settings){.n_clusters = options->n_clusters,
                                       .n_iterations = options->n_iterations,
                                       .n_restarts = options->n_restarts,
                                       .seed = options->seed,
                                       .tolerance = options->tolerance,
                                       .normalize = options->normalize,
                                       .is_random_start = options->is_random_start};
    j->kmeans_objective = found.objective;
    j->has_clustering = true;
done:
    kith_kmeans_result_release(&found);
    ki_free(cluster);
    ki_free(m.copy);
    ki_free(m.label);
    return status;
}

/* ---- all of it ---- */

static kith_status judge(const ki_judge_input *in, const ki_judge_options *o, kith_judgement *j,
                         kith_error *err) {
    kith_kmeans_options kmeans = o->kmeans;
    double began = ki_seconds_now();
    if (o->has_retrieval) {
        KI_TRY(ki_retrieval_run(in, &o->retrieval, &j->retrieval, err));
        j->rank_seconds = ki_seconds_now() - began;
        j->metric = o->retrieval.metric;
        j->has_retrieval = true;
        j->has_intervals = o->has_intervals;
        j->bootstrap = (kith_bootstrap_settings){o->bootstrap.n_draws, o->bootstrap.level, o->bootstrap.seed,
                                                 o->bootstrap.by_class};
    }
    if (j->has_intervals) KI_TRY(kith_retrieval_bootstrap(&j->retrieval, &o->bootstrap, &j->intervals, err));
    if (o->has_rerank && j->has_retrieval) {
        KI_TRY(ki_rerank_judge(in, &o->retrieval, &o->rerank, &j->retrieval.mean, &j->rerank, err));
        j->has_rerank = true;
    }
    if (o->has_verification) {
        began = ki_seconds_now();
        KI_TRY(ki_verification_run(in, &o->verification, 0, &j->verification, err));
        j->verify_seconds = ki_seconds_now() - began;
        j->has_verification = true;
    }
    if (!o->has_clustering) return KITH_OK;
    began = ki_seconds_now();
    KI_TRY(cluster(in, &kmeans, j, err));
    j->cluster_seconds = ki_seconds_now() - began;
    return KITH_OK;
}

kith_status ki_judge_run(const ki_judge_input *input, const ki_judge_options *options, kith_judgement *ret,
                         kith_error *err) {
    const double began = ki_seconds_now();
    kith_judgement j = {0};
    kith_status status = judge(input, options, &j, err);
    if (status == KITH_ENOMEM && input->device && input->device->type) {
        ki_judge_input here = *input;
        here.rows.there = NULL;
        here.device = &(ki_knn_device){0};
        kith_judgement_release(&j);
        status = judge(&here, options, &j, err);
    }
    j.seconds = ki_seconds_now() - began;
    if (status == KITH_OK)
        *ret = j;
    else
        kith_judgement_release(&j);
    return status;
}

kith_status ki_judge_input_of(const kith_retrieval_input *given, ki_judge_input *ret, kith_error *err) {
    *ret = (ki_judge_input){.labels = given->labels,
                            .n_labels = given->n_labels,
                            .query = given->query,
                            .n_query = given->n_query,
                            .gallery = given->gallery,
                            .n_gallery = given->n_gallery};
    return ki_rows_init(given->embedding, "embedding", &ret->rows, err);
}

kith_status kith_judge_run(const kith_retrieval_input *in, const kith_judge_options *options,
                           kith_judgement *ret, kith_error *err) {
    KI_NEED(err, in, ret);
    ki_judge_input input;
    ki_judge_options o;
    KI_TRY(ki_judge_options_take(options, &o, err));
    KI_TRY(ki_judge_input_of(in, &input, err));
    return ki_judge_run(&input, &o, ret, err);
}

/* ---- vectors ---- */

typedef struct roles {
    int64_t *query, *gallery, n_query, n_gallery;
} roles;

/* Rows by role; NULL lists when every row is both. */
static kith_status split_roles(const ki_vectors *v, roles *ret, kith_error *err) {
    if (!v->role) return KITH_OK;
    KI_TRY(ki_alloc_or(&ret->query, (size_t)v->n, sizeof *ret->query, "queries", err));
    KI_TRY(ki_alloc_or(&ret->gallery, (size_t)v->n, sizeof *ret->gallery, "gallery", err));
    for (int64_t i = 0; i < v->n; i++) {
        if (v->role[i] != KITH_ROLE_GALLERY) ret->query[ret->n_query++] = i;
        if (v->role[i] != KITH_ROLE_QUERY) ret->gallery[ret->n_gallery++] = i;
    }
    return KITH_OK;
}

kith_status ki_judge_rows(ki_vectors *v, const ki_knn_device *device, ki_rows *ret, kith_error *err) {
    const float *x = NULL;
    KI_TRY(ki_vectors_host(v, &x, err)); /* what rounding cannot decide is decided here */
    const kith_array array = {KITH_F32, 2, {v->n, v->dim}, (void *)(uintptr_t)x};
    KI_TRY(ki_rows_init(&array, "embedding", ret, err));
    if (device->type) ret->there = v->device;
    return KITH_OK;
}

static kith_status prepare(ki_vectors *v, ki_knn_device *device, ki_rows *ret_rows, roles *ret_roles,
                           kith_error *err) {
    if (v->backend) KI_TRY(ki_knn_device_beside(v->backend, device, err));
    KI_TRY(ki_judge_rows(v, device, ret_rows, err));
    return split_roles(v, ret_roles, err);
}

kith_status ki_judge_vectors(ki_vectors *v, const ki_judge_options *options, ki_comm *comm,
                             kith_judgement *ret, kith_error *err) {
    kith_status status;
    roles r = {0};
    ki_knn_device device = {0};
    const double began = ki_seconds_now();
    ki_judge_input input = {
        .labels = v->label, .n_labels = v->n, .device = v->backend ? &device : NULL, .comm = comm};
    KI_CHECK(ki_comm_agree(comm, prepare(v, &device, &input.rows, &r, err), err));
    input.query = r.query;
    input.n_query = r.n_query;
    input.gallery = r.gallery;
    input.n_gallery = r.n_gallery;
    KI_CHECK(ki_judge_run(&input, options, ret, err));
    ret->seconds = ki_seconds_now() - began; /* the copy to the host, too */
done:
    ki_knn_device_close(&device);
    ki_free(r.query);
    ki_free(r.gallery);
    return status;
}

kith_status ki_judge_worst(ki_vectors *v, const kith_worst_options *options, kith_worst *ret,
                           kith_error *err) {
    kith_status status;
    roles r = {0};
    ki_judge_input input = {.labels = v->label, .n_labels = v->n};
    KI_CHECK(ki_judge_rows(v, &(ki_knn_device){0}, &input.rows, err)); /* those on the host */
    KI_CHECK(split_roles(v, &r, err));
    input.query = r.query;
    input.n_query = r.n_query;
    input.gallery = r.gallery;
    input.n_gallery = r.n_gallery;
    status = ki_worst_find(&input, options, ret, err);
done:
    ki_free(r.query);
    ki_free(r.gallery);
    return status;
}

/* ---- what training keeps ---- */

double ki_alike(const float *x, int64_t n, int64_t dim) {
    double sum = 0;
    if (n < 1) return 0;
    /* sum over k of (mean over rows of x[i, k] / |x_i|)^2, rows first to read memory in order. */
    double *mean = ki_zalloc((size_t)dim, sizeof *mean);
    if (!mean) return 0;
    for (int64_t i = 0; i < n; i++) {
        double norm = 0;
        for (int64_t k = 0; k < dim; k++) norm += (double)x[i * dim + k] * (double)x[i * dim + k];
        const double scale = norm > 0 ? 1 / (sqrt(norm) * (double)n) : 0;
        for (int64_t k = 0; k < dim; k++) mean[k] += (double)x[i * dim + k] * scale;
    }
    for (int64_t k = 0; k < dim; k++) sum += mean[k] * mean[k];
    ki_free(mean);
    return sum;
}

kith_status ki_judge_scores(ki_vectors *v, const int64_t *k, int64_t n_k, ki_comm *comm, ki_scores *ret,
                            kith_intervals *ret_intervals, kith_error *err) {
    return ki_judge_by_query(v, k, n_k, comm, ret, ret_intervals, NULL, err);
}

kith_status ki_judge_by_query(ki_vectors *v, const int64_t *k, int64_t n_k, ki_comm *comm, ki_scores *ret,
                              kith_intervals *ret_intervals, ki_per_query *ret_queries, kith_error *err) {
    kith_judgement j = {0};
    const float *x = NULL;
    ki_judge_options options;
    KI_TRY(ki_judge_options_take(NULL, &options, err));
    options.has_clustering = false;
    options.retrieval.n_k = n_k;
    memcpy(options.retrieval.k, k, (size_t)n_k * sizeof *k);
    options.has_intervals = ret_intervals != NULL;
    KI_TRY(ki_judge_vectors(v, &options, comm, &j, err));
    KI_TRY(ki_vectors_host(v, &x, err));
    const kith_retrieval *r = &j.retrieval;
    *ret = (ki_scores){.is_there = true,
                       .map_at_r = r->mean.map_at_r,
                       .r_precision = r->mean.r_precision,
                       .n_query = r->n_query,
                       .n_classes = r->n_classes,
                       .n_lone = r->n_lone,
                       .alike = ki_alike(x, v->n, v->dim),
                       .seconds = j.seconds};
    memcpy(ret->recall, r->mean.recall, sizeof ret->recall);
    if (ret_intervals) *ret_intervals = j.intervals;
    const kith_status status = ret_queries ? ki_per_query_pack(r, ret_queries, err) : KITH_OK;
    kith_judgement_release(&j);
    return status;
}

kith_status ki_judge_cluster(ki_vectors *v, ki_clustered *ret, kith_error *err) {
    kith_judgement j = {0};
    ki_judge_options options;
    KI_TRY(ki_judge_options_take(NULL, &options, err));
    options.has_retrieval = false;
    KI_TRY(ki_judge_vectors(v, &options, NULL, &j, err));
    *ret =
        (ki_clustered){.is_there = true, .settings = j.kmeans, .scores = j.clustering, .seconds = j.seconds};
    kith_judgement_release(&j);
    return KITH_OK;
}

kith_status ki_judge_calibrate(ki_vectors *v, const char *source, kith_calibration *ret, kith_error *err) {
    kith_judgement j = {0};
    ki_judge_options options;
    *ret = (kith_calibration){0};
    KI_TRY(ki_judge_options_take(NULL, &options, err));
    options.has_retrieval = options.has_clustering = false;
    options.has_verification = true;
    options.verification.has_intervals = false;
    const kith_status status = ki_judge_vectors(v, &options, NULL, &j, err);
    if (status == KITH_EINVAL) return KITH_OK; /* no pairs: there is nothing to tell */
    KI_TRY(status);
    *ret = j.verification.curve;
    ki_snprintf(ret->source, sizeof ret->source, "%s", source);
    return KITH_OK;
}
