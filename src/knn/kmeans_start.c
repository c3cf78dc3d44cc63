/* k-means++ in batches, without changing its distribution.
 *
 * If centres are drawn one at a time, each costs a pass over all rows that cannot use a matrix product. Here
 * a batch of candidates is drawn from the weights as they were when the batch began, and one product gives
 * their distances to all rows. Then they are considered in turn: candidate c is kept with probability (its
 * weight now) / (its weight when the batch began). Weights only fall, so this is rejection sampling from the
 * present weights: exactly k-means++. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "knn/kmeans.h"

enum { BATCH = 2 * KI_GROUP };

typedef struct batch {
    int64_t n;
    float *distance; /* [BATCH, n] squared, from each candidate */
} batch;

static void keep_distances(void *context, const ki_stripe *stripe) {
    batch *b = context;
    for (int r = 0; r < stripe->n_rows; r++) {
        const int64_t i = stripe->row + r;
        for (int c = 0; c < stripe->n_cols; c++)
            b->distance[(stripe->col + c) * b->n + i] = fmaxf(0, -2 * stripe->s[r * KI_BLOCK + c]);
    }
}

static kith_status measure_there(const ki_kmeans_data *data, const ki_panels *candidates, batch *b,
                                 kith_error *err) {
    const ki_knn_device *d = &data->device;
    ki_device_rows *rows = NULL;
    KI_TRY(d->type->load(d->backend, candidates, (ki_device_tile){0}, &rows, err));
    const kith_status status = d->type->scores(d->backend, rows, data->loaded, b->distance, err);
    d->type->unload(d->backend, rows);
    for (int64_t i = 0; status == KITH_OK && i < candidates->rows.n * b->n; i++)
        b->distance[i] = fmaxf(0, -2 * b->distance[i]);
    return status;
}

static kith_status measure(const ki_kmeans_data *data, const int64_t *row, int n_rows, batch *b,
                           kith_error *err) {
    kith_status status = KITH_OK;
    float *picked = NULL;
    ki_panels panels = {0};
    const size_t bytes = (size_t)data->dim * sizeof(float);
    KI_CHECK(ki_alloc_or(&picked, (size_t)n_rows, bytes, "candidates", err));
    for (int i = 0; i < n_rows; i++) memcpy(picked + i * data->dim, data->x + row[i] * data->dim, bytes);
    const ki_rows rows = {KITH_F32, n_rows, data->dim, picked, NULL};
    KI_CHECK(ki_panels_init(&rows, KITH_SQEUCLIDEAN, &data->panels, &panels, err));
    if (data->device.type) {
        KI_CHECK(measure_there(data, &panels, b, err));
    } else {
        const ki_tiles tiles = {.rows = &data->panels,
                                .cols = &panels,
                                .kernel = ki_knn_kernel_best(),
                                .consume = keep_distances,
                                .context = b};
        KI_CHECK(ki_tiles_run(&tiles, err));
    }
    for (int i = 0; i < n_rows; i++) b->distance[i * b->n + row[i]] = 0; /* exactly, without rounding error */
done:
    ki_free(picked);
    ki_panels_release(&panels);
    return status;
}

/* The first place whose running sum exceeds x. */
static int64_t find(const double *running, int64_t n, double x) {
    int64_t low = 0, high = n - 1;
    while (low < high) {
        const int64_t mid = (low + high) / 2;
        if (running[mid] > x)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

/* When all rows coincide with a centre: any rows not yet taken, lowest first. */
static void fill_rest(int64_t *ret_rows, int64_t n_taken, int64_t n_clusters, bool *is_taken) {
    for (int64_t i = 0; n_taken < n_clusters; i++) {
        if (!is_taken[i]) ret_rows[n_taken++] = i;
    }
}

kith_status ki_kmeans_plus_plus(const ki_kmeans_data *data, int64_t n_clusters, uint64_t seed,
                                uint32_t restart, int64_t *ret_rows, kith_error *err) {
    kith_status status = KITH_OK;
    const int64_t n = data->n;
    batch b = {.n = n};
    float *weight = NULL;
    double *running = NULL;
    bool *is_taken = NULL;
    KI_CHECK(ki_alloc_or(&b.distance, (size_t)n, BATCH * sizeof(float), "distances", err));
    KI_CHECK(ki_alloc_or(&weight, (size_t)n, sizeof *weight, "weights", err));
    KI_CHECK(ki_alloc_or(&running, (size_t)n, sizeof *running, "running sums", err));
    KI_CHECK(ki_zalloc_or(&is_taken, (size_t)n, sizeof *is_taken, "taken rows", err));
    ki_rng rng = ki_rng_at(seed, KI_RNG_KMEANS, restart, 0);

    ret_rows[0] = ki_rng_below(&rng, (uint32_t)n);
    is_taken[ret_rows[0]] = true;
    KI_CHECK(measure(data, ret_rows, 1, &b, err));
    memcpy(weight, b.distance, (size_t)n * sizeof *weight);
    for (int64_t n_taken = 1; n_taken < n_clusters;) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++) running[i] = sum += (double)weight[i];
        if (!(sum > 0)) {
            fill_rest(ret_rows, n_taken, n_clusters, is_taken);
            break;
        }
        int64_t candidate[BATCH], kept[BATCH];
        int n_candidates = 0, n_kept = 0;
        while (n_candidates < BATCH && n_candidates < n_clusters - n_taken)
            candidate[n_candidates++] = find(running, n, ki_rng_double(&rng) * sum);
        KI_CHECK(measure(data, candidate, n_candidates, &b, err));
        for (int c = 0; c < n_candidates; c++) {
            float now = weight[candidate[c]];
            for (int k = 0; k < n_kept; k++) now = fminf(now, b.distance[kept[k] * n + candidate[c]]);
            if (ki_rng_double(&rng) * (double)weight[candidate[c]] >= (double)now) continue;
            kept[n_kept++] = c;
            is_taken[candidate[c]] = true;
            ret_rows[n_taken++] = candidate[c];
        }
        for (int k = 0; k < n_kept; k++) {
            const float *d = b.distance + kept[k] * n;
            for (int64_t i = 0; i < n; i++) weight[i] = fminf(weight[i], d[i]);
        }
    }
done:
    ki_free(b.distance);
    ki_free(weight);
    ki_free(running);
    ki_free(is_taken);
    return status;
}

kith_status ki_kmeans_random(int64_t n, int64_t n_clusters, uint64_t seed, uint32_t restart,
                             int64_t *ret_rows, kith_error *err) {
    int64_t *order = NULL;
    KI_TRY(ki_alloc_or(&order, (size_t)n, sizeof *order, "row order", err));
    for (int64_t i = 0; i < n; i++) order[i] = i;
    ki_rng rng = ki_rng_at(seed, KI_RNG_KMEANS, restart, 1);
    ki_rng_shuffle(&rng, order, n);
    memcpy(ret_rows, order, (size_t)n_clusters * sizeof *ret_rows);
    ki_free(order);
    return KITH_OK;
}
