#include "train/judge.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "data/loader/loader.h"
#include "train/embedder.h"

struct ki_judge {
    ki_judge_settings settings;
    int64_t k[KITH_MOST_K];
    ki_embedder *embedder;
    const char *tap; /* the embedder's */
    ki_batch_format format;
};

kith_status ki_judge_new(const ki_judge_settings *settings, ki_judge **ret_judge, kith_error *err) {
    ki_judge *judge = NULL;
    KI_TRY(ki_zalloc_or(&judge, 1, sizeof *judge, "a judge", err));
    judge->settings = *settings;
    memcpy(judge->k, settings->k, (size_t)settings->n_k * sizeof *judge->k);
    judge->settings.k = judge->k;
    judge->format = ki_feed_format(settings->backend, &settings->transform);
    *ret_judge = judge;
    return KITH_OK;
}

int64_t ki_judge_batch(const ki_judge *judge) { return judge->settings.batch; }

void ki_judge_free(ki_judge *judge) {
    if (!judge) return;
    ki_embedder_free(judge->embedder);
    ki_free(judge);
}

void ki_embedded_release(ki_embedded *e) {
    ki_free(e->x);
    ki_free(e->label);
    ki_free(e->item);
    *e = (ki_embedded){0};
}

kith_status ki_embedded_make(int64_t n, int64_t dim, ki_embedded *ret, kith_error *err) {
    kith_status status;
    ki_embedded e = {.dim = dim};
    KI_CHECK(ki_alloc_or(&e.x, (size_t)n, (size_t)dim * sizeof *e.x, "embeddings", err));
    KI_CHECK(ki_alloc_or(&e.label, (size_t)n, sizeof *e.label, "labels", err));
    KI_CHECK(ki_alloc_or(&e.item, (size_t)n, sizeof *e.item, "items", err));
    *ret = e;
    return KITH_OK;
done:
    ki_embedded_release(&e);
    return status;
}

static kith_status make_embedder(ki_judge *judge, const char *tap, kith_error *err) {
    if (judge->embedder && strcmp(judge->tap, tap) == 0) return KITH_OK;
    ki_embedder_free(judge->embedder);
    judge->embedder = NULL;
    const ki_judge_settings *s = &judge->settings;
    int node = 0;
    KI_TRY(ki_graph_find_tap(s->net->graph, tap, &node, err));
    judge->tap = ki_graph_node(s->net->graph, node)->tap;
    const ki_embedder_settings settings = {.backend = s->backend,
                                           .net = s->net,
                                           .params = s->params,
                                           .tap = tap,
                                           .batch = s->batch,
                                           .format = judge->format,
                                           .transform = &s->transform};
    return ki_embedder_new(&settings, &judge->embedder, err);
}

static kith_status start_loader(const ki_judge *judge, const int64_t *items, int64_t n, ki_loader **ret,
                                kith_error *err) {
    const ki_judge_settings *s = &judge->settings;
    kith_status status;
    int32_t *labels = NULL;
    ki_sampler *sampler = NULL;
    ki_sampler_settings batches;
    ki_options_default(ki_sampler_options, &batches);
    batches.sampler = KI_SAMPLER_ROW_sequential;
    batches.size = s->batch;
    KI_CHECK(ki_zalloc_or(&labels, (size_t)n, sizeof *labels, "labels", err));
    KI_CHECK(ki_sampler_new(&batches, 0, items, labels, n, &sampler, err));
    const ki_loader_settings loading = {.transform = s->transform,
                                        .format = judge->format,
                                        .memory = ki_feed_memory(s->backend),
                                        .bad = KI_BAD_SKIP,
                                        .n_workers = s->n_workers,
                                        .n_epochs = 1,
                                        .most_bad = s->most_bad};
    status = ki_loader_new(s->set, sampler, s->batch, &loading, ret, err);
done:
    ki_free(labels);
    return status;
}

kith_status ki_judge_each(ki_judge *judge, const int64_t *items, int64_t n, ki_judge_fn fn, void *user,
                          kith_error *err) {
    const ki_judge_settings *s = &judge->settings;
    kith_status status;
    ki_loader *loader = NULL;
    if (n < 1) return ki_fail(err, KITH_EINVAL, "there are no images to judge");
    KI_CHECK(start_loader(judge, items, n, &loader, err));
    for (;;) {
        ki_loader_batch batch;
        if (s->must_stop && s->must_stop(s->user)) {
            status = ki_fail(err, KITH_ECANCELED, "stopped on request");
            goto done;
        }
        KI_CHECK(ki_loader_next(loader, &batch, err));
        if (batch.n == 0) break;
        KI_CHECK(fn(user, &batch, err));
    }
done:
    ki_loader_free(loader);
    return status;
}

typedef struct embedding {
    ki_judge *judge;
    ki_embedded *e;
} embedding;

static kith_status embed_batch(void *user, const ki_loader_batch *batch, kith_error *err) {
    const embedding *to = user;
    ki_embedded *e = to->e;
    const ki_embedder_batch input = {.n = batch->n, .data = batch->data, .window = batch->window};
    KI_TRY(ki_embedder_add(to->judge->embedder, &input, e->x + e->n * e->dim, err));
    for (int64_t i = 0; i < batch->n; i++, e->n++) {
        e->label[e->n] = batch->label[i];
        e->item[e->n] = batch->item[i];
    }
    return KITH_OK;
}

static kith_status check_finite(const ki_judge *judge, const ki_embedded *e, kith_error *err) {
    for (int64_t i = 0; i < e->n * e->dim; i++) {
        if (!isfinite(e->x[i]))
            return ki_fail(err, KITH_ENUMERIC, "the %s of %s holds %g; wanted finite numbers", judge->tap,
                           judge->settings.set->item[e->item[i / e->dim]].path, (double)e->x[i]);
    }
    return KITH_OK;
}

kith_status ki_judge_embed(ki_judge *judge, const int64_t *items, int64_t n, const char *tap,
                           ki_embedded *ret_embedded, kith_error *err) {
    kith_status status;
    ki_embedded e = {0};
    if (n < 1) return ki_fail(err, KITH_EINVAL, "there are no images to judge");
    KI_CHECK(make_embedder(judge, tap, err));
    e.dim = ki_embedder_dim(judge->embedder);
    KI_CHECK(ki_embedded_make(n, e.dim, &e, err));
    KI_CHECK(ki_judge_each(judge, items, n, embed_batch, &(embedding){judge, &e}, err));
    KI_CHECK(ki_embedder_finish(judge->embedder, err));
    KI_CHECK(check_finite(judge, &e, err));
    *ret_embedded = e;
    e = (ki_embedded){0};
done:
    if (status != KITH_OK) { /* rows may still be on their way to memory that goes now */
        ki_embedder_free(judge->embedder);
        judge->embedder = NULL;
    }
    ki_embedded_release(&e);
    return status;
}

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

/* Rows by role; NULL lists when every item is both. */
static kith_status split_roles(const ki_judge *judge, const ki_embedded *e, int64_t **ret_query,
                               int64_t *ret_n_query, int64_t **ret_gallery, int64_t *ret_n_gallery,
                               kith_error *err) {
    bool has_roles = false;
    for (int64_t i = 0; i < e->n; i++)
        has_roles |= judge->settings.set->item[e->item[i]].role != KITH_ROLE_BOTH;
    if (!has_roles) return KITH_OK;
    KI_TRY(ki_alloc_or(ret_query, (size_t)e->n, sizeof **ret_query, "queries", err));
    KI_TRY(ki_alloc_or(ret_gallery, (size_t)e->n, sizeof **ret_gallery, "gallery", err));
    for (int64_t i = 0; i < e->n; i++) {
        const kith_role role = (kith_role)judge->settings.set->item[e->item[i]].role;
        if (role != KITH_ROLE_GALLERY) (*ret_query)[(*ret_n_query)++] = i;
        if (role != KITH_ROLE_QUERY) (*ret_gallery)[(*ret_n_gallery)++] = i;
    }
    return KITH_OK;
}

kith_status ki_judge_score(const ki_judge *judge, const ki_embedded *e, ki_scores *ret_scores,
                           kith_intervals *ret_intervals, kith_error *err) {
    kith_status status;
    kith_retrieval retrieval = {0};
    int64_t *query = NULL, *gallery = NULL, n_query = 0, n_gallery = 0;
    const double began = ki_seconds_now();
    const kith_array x = {KITH_F32, 2, {e->n, e->dim}, e->x};
    kith_retrieval_options options = kith_retrieval_defaults();
    options.n_k = (int)judge->settings.n_k;
    memcpy(options.k, judge->k, sizeof options.k);
    KI_CHECK(split_roles(judge, e, &query, &n_query, &gallery, &n_gallery, err));
    const kith_retrieval_input input = {.embedding = &x,
                                        .labels = e->label,
                                        .n_labels = e->n,
                                        .query = query,
                                        .n_query = n_query,
                                        .gallery = gallery,
                                        .n_gallery = n_gallery};
    KI_CHECK(kith_retrieval_run(&input, &options, &retrieval, err));
    *ret_scores = (ki_scores){.is_there = true,
                              .map_at_r = retrieval.mean.map_at_r,
                              .r_precision = retrieval.mean.r_precision,
                              .n_query = retrieval.n_query,
                              .n_classes = retrieval.n_classes,
                              .n_lone = retrieval.n_lone,
                              .alike = ki_alike(e->x, e->n, e->dim),
                              .seconds = ki_seconds_now() - began};
    memcpy(ret_scores->recall, retrieval.mean.recall, sizeof ret_scores->recall);
    const kith_bootstrap_options bootstrap = kith_bootstrap_defaults();
    if (ret_intervals) KI_CHECK(kith_retrieval_bootstrap(&retrieval, &bootstrap, ret_intervals, err));
done:
    kith_retrieval_release(&retrieval);
    ki_free(query);
    ki_free(gallery);
    return status;
}

kith_status ki_judge_cluster(const ki_embedded *e, ki_clustered *ret, kith_error *err) {
    kith_status status;
    kith_kmeans_result found = {0};
    kith_clustering same;
    int64_t *cluster = NULL;
    const double began = ki_seconds_now();
    const kith_array x = {KITH_F32, 2, {e->n, e->dim}, e->x};
    KI_CHECK(ki_alloc_or(&cluster, (size_t)e->n, sizeof *cluster, "clusters", err));
    KI_CHECK(kith_clustering_compare(e->label, e->label, e->n, &same, err)); /* counts the classes */
    ki_clustered clustered = {.is_there = true, .settings = kith_kmeans_defaults(same.n_classes)};
    KI_CHECK(kith_kmeans(&x, &clustered.settings, &found, err));
    for (int64_t i = 0; i < e->n; i++) cluster[i] = found.cluster[i];
    KI_CHECK(kith_clustering_compare(cluster, e->label, e->n, &clustered.scores, err));
    clustered.seconds = ki_seconds_now() - began;
    *ret = clustered;
done:
    kith_kmeans_result_release(&found);
    ki_free(cluster);
    return status;
}
