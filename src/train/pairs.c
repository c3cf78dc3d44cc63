/* pairs.json: the distances of pairs of test images, and the weights that the loss gives to pairs of training
 * images. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/rng.h"
#include "kith/experimental/json.h"
#include "objective/check.h"
#include "train/run.h"

enum { MOST_PAIRS = 200000 };

static void count_in(ki_pair_histogram *h, bool is_positive, double value) {
    const double place = (value - h->low) / (h->high - h->low) * KI_HISTOGRAM_BINS;
    int bin = place > 0 ? (int)place : 0;
    if (bin >= KI_HISTOGRAM_BINS) bin = KI_HISTOGRAM_BINS - 1;
    if (is_positive)
        h->positive[bin]++;
    else
        h->negative[bin]++;
}

/* ---- weights ---- */

/* Only loss and miner: regularizers may read taps that are not available here. */
static kith_status loss_alone(const ki_train_state *run, ki_arena *arena, ki_objective **ret,
                              kith_error *err) {
    ki_value *section = ki_value_new(arena, KI_VALUE_MAP, NULL);
    static const char *const keys[] = {"loss", "miner"};
    for (int i = 0; i < 2 && section; i++) {
        const ki_value *from = ki_value_get(run->recipe->objective, keys[i]);
        ki_value *copy = ki_value_new(arena, KI_VALUE_MAP, NULL);
        if (!copy || !from) return ki_fail_memory(err, sizeof *copy, "a recipe");
        *copy = *from;
        ki_value_append(section, keys[i], copy);
    }
    if (!section) return ki_fail_memory(err, sizeof *section, "a recipe");
    ki_sizes sizes = {.n_classes = run->n_classes, .embedding = run->net.embedding, .heads = run->net.heads};
    const ki_state *proxies = ki_objective_param_named(run->objective, "proxies");
    if (proxies && proxies->n_whole) ki_train_share_out(run, &sizes);
    KI_TRY(ki_objective_new(section, &sizes, (uint64_t)run->recipe->seed, ret, err));
    ki_state *param;
    KI_TRY(ki_learner_pull(run->learner, err));
    for (size_t i = 0; (param = ki_objective_param(*ret, i)); i++) {
        const ki_state *trained = ki_objective_param_named(run->objective, param->name);
        if (trained && trained->count == param->count)
            memcpy(param->value, trained->value, (size_t)param->count * sizeof *param->value);
    }
    return KITH_OK;
}

static double most_of(const ki_real *weight, int64_t n) {
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs((double)weight[i]));
    return most;
}

static void count_weights(ki_pair_histogram *h, const ki_objective *objective, const ki_real *weight,
                          const int32_t *label, int64_t m, int64_t n, double most) {
    const bool has_proxies = ki_objective_centers(objective) > 0;
    *h = (ki_pair_histogram){.is_there = most > 0, .low = 0, .high = most};
    for (int64_t j = 0; most > 0 && j < n; j++) {
        const int64_t other = has_proxies ? ki_objective_column_class(objective, j) : label[j];
        for (int64_t i = 0; i < m; i++) {
            const double w = (double)weight[i * n + j];
            if (w == 0) continue; /* the pair does not count */
            count_in(h, label[i] == other, fabs(w));
        }
    }
}

/* Each rank has the pairs of its own proxies. */
static kith_status largest_over_ranks(ki_comm *comm, double *most, kith_error *err) {
    double all[KI_MOST_RANKS];
    KI_TRY(ki_comm_gather_each(comm, most, sizeof *most, all, err));
    for (int r = 0; r < comm->size; r++) *most = fmax(*most, all[r]);
    return KITH_OK;
}

static kith_status add_over_ranks(ki_comm *comm, int64_t *counts, kith_error *err) {
    int64_t all[KI_MOST_RANKS];
    for (int i = 0; i < KI_HISTOGRAM_BINS; i++) {
        KI_TRY(ki_comm_gather_counts(comm, counts[i], all, err));
        counts[i] = 0;
        for (int r = 0; r < comm->size; r++) counts[i] += all[r];
    }
    return KITH_OK;
}

/* Each image of the batch once: as tests see it, its views are the same. */
static int64_t take_once(const ki_sampler_batch *batch, int64_t views, int64_t *to) {
    if (views < 1) views = 1;
    for (int64_t i = 0; i < batch->n / views; i++) to[i] = batch->item[i * views];
    return batch->n / views;
}

kith_status ki_train_weigh_pairs(ki_train_state *run, kith_error *err) {
    kith_status status;
    ki_arena arena = {0};
    ki_objective *objective = NULL;
    ki_sampler *sampler = NULL;
    ki_sampler_batch items;
    ki_vectors e = {0};
    const float *x = NULL;
    int32_t *label = NULL;
    ki_real *weight = NULL;
    int64_t n = 0, *item = NULL;
    if (!ki_objective_loss(run->objective)) return KITH_OK;
    KI_CHECK(loss_alone(run, &arena, &objective, err));
    const bool has_parts = ki_learner_has_parts(run->learner);
    KI_CHECK(ki_train_make_sampler(run, &sampler, err));
    KI_CHECK(ki_sampler_next(sampler, &items, err));
    KI_CHECK(ki_alloc_or(&item, (size_t)items.n, sizeof *item, "a batch", err));
    n = take_once(&items, run->recipe->batch.views, item);
    KI_CHECK(ki_train_embed(run, item, n, "embedding", NULL, &e, err));
    KI_CHECK(ki_vectors_host(&e, &x, err));
    KI_CHECK(ki_alloc_or(&label, (size_t)e.n, sizeof *label, "labels", err));
    for (int64_t i = 0; i < e.n; i++) label[i] = run->class_of[e.label[i]];
    const ki_batch batch = {.m = e.n,
                            .label = label,
                            .tap[KI_TAP_EMBEDDING] = {.data = x, .rows = e.n, .cols = e.dim},
                            .step = (uint64_t)run->at.step,
                            .comm = has_parts ? run->comm : NULL};
    KI_CHECK(ki_objective_weights(objective, &batch, &weight, NULL, &n, err));
    const int64_t m = ki_batch_labelled(&batch);
    double most = most_of(weight, m * n);
    if (has_parts) KI_CHECK(largest_over_ranks(run->comm, &most, err));
    count_weights(&run->weights, objective, weight, label, m, n, most);
    if (has_parts) {
        KI_CHECK(add_over_ranks(run->comm, run->weights.positive, err));
        KI_CHECK(add_over_ranks(run->comm, run->weights.negative, err));
    }
done:
    ki_free(item);
    ki_free(weight);
    ki_free(label);
    ki_vectors_release(&e);
    ki_sampler_free(sampler);
    ki_objective_free(objective);
    ki_arena_release(&arena);
    return status;
}

/* ---- distances ---- */

static double cosine_distance(const float *a, const float *b, int64_t dim) {
    double ab = 0, aa = 0, bb = 0;
    for (int64_t k = 0; k < dim; k++) {
        ab += (double)a[k] * (double)b[k];
        aa += (double)a[k] * (double)a[k];
        bb += (double)b[k] * (double)b[k];
    }
    return aa > 0 && bb > 0 ? 1 - ab / sqrt(aa * bb) : 1;
}

/* Random pairs of either kind: a random row, then a random one of its class or of another. */
static void count_distances(ki_pair_histogram *h, const ki_vectors *e, const float *x, uint64_t seed) {
    *h = (ki_pair_histogram){.is_there = true, .low = 0, .high = 2};
    ki_rng rng = ki_rng_at(seed, KI_RNG_BOOTSTRAP, 0x9a145, 0);
    const uint32_t n = (uint32_t)e->n;
    const int64_t n_tries = (int64_t)n * n < MOST_PAIRS ? (int64_t)n * n : MOST_PAIRS;
    for (int64_t t = 0; t < n_tries; t++) {
        const uint32_t i = ki_rng_below(&rng, n), j = ki_rng_below(&rng, n);
        if (e->label[i] != e->label[j])
            count_in(h, false, cosine_distance(x + i * e->dim, x + j * e->dim, e->dim));
    }
    /* In every layout the items of a class are next to each other; if they are not, fewer pairs are found. */
    for (int64_t t = 0; t < n_tries; t++) {
        const uint32_t i = ki_rng_below(&rng, n);
        uint32_t first = i, last = i;
        while (first > 0 && e->label[first - 1] == e->label[i]) first--;
        while (last + 1 < n && e->label[last + 1] == e->label[i]) last++;
        const uint32_t j = first + ki_rng_below(&rng, last - first + 1);
        if (i != j) count_in(h, true, cosine_distance(x + i * e->dim, x + j * e->dim, e->dim));
    }
}

/* ---- the file ---- */

static void put_counts(kith_json *json, const char *key, const int64_t *counts) {
    kith_json_key(json, key);
    kith_json_array_begin(json);
    for (int i = 0; i < KI_HISTOGRAM_BINS; i++) kith_json_int(json, counts[i]);
    kith_json_array_end(json);
}

static void put_histogram(kith_json *json, const char *key, const ki_pair_histogram *h) {
    if (!h->is_there) return;
    kith_json_key(json, key);
    kith_json_object_begin(json);
    put_counts(json, "positive", h->positive);
    put_counts(json, "negative", h->negative);
    kith_json_key(json, "edges");
    kith_json_array_begin(json);
    for (int i = 0; i <= KI_HISTOGRAM_BINS; i++)
        kith_json_real(json, h->low + (h->high - h->low) * i / KI_HISTOGRAM_BINS);
    kith_json_array_end(json);
    kith_json_object_end(json);
}

kith_status ki_train_write_pairs(ki_train_state *run, ki_vectors *test, kith_error *err) {
    kith_status status;
    kith_json *json = NULL;
    const char *text = NULL;
    ki_path path;
    ki_pair_histogram distance = {0};
    const float *x = NULL;
    if (test) {
        KI_CHECK(ki_vectors_host(test, &x, err));
        count_distances(&distance, test, x, (uint64_t)run->recipe->seed);
    }
    KI_CHECK(kith_json_new(&json, err));
    kith_json_object_begin(json);
    put_histogram(json, "distance", &distance);
    put_histogram(json, "weight", &run->weights);
    kith_json_object_end(json);
    KI_CHECK(kith_json_finish(json, &text, err));
    KI_CHECK(ki_folder_at(&run->folder, &path, err, "pairs.json"));
    KI_CHECK(ki_file_write(path.s, text, strlen(text), err));
done:
    kith_json_free(json);
    return status;
}
