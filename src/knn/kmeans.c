/* Lloyd's iterations that compare only what can have changed.
 *
 * A score of a row and a centroid has the same bits whenever it is computed, so a comparison made once
 * stays valid while the centroid stays. Every iteration:
 *   1. all rows are compared with the centroids that moved;
 *   2. a row whose own centroid moved away from it is also compared with those that did not move (they were no
 *      better than its own was; if its own is no worse now, they still are not).
 * The assignments are the same as if everything were compared with everything. Centroids whose members are the same do
 * not move, so the work shrinks with the number of changes.
 *
 * A device compares everything with everything. That costs it less than finding out what to leave out, and there, too,
 * products of one shape have the same bits every time. The device holds rows and centroids, and computes the means
 * with the same bits as this file. The host holds the assignments, and decides about empty clusters and when to stop. */
#include "knn/kmeans.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/parallel.h"

typedef struct best {
    float score;
    int32_t cluster; /* -1: none yet */
} best;

typedef struct lloyd {
    const ki_kmeans_data *data;
    const ki_knn_kernel *kernel;
    int64_t n_clusters;
    float *centroid;       /* [n_clusters, dim] */
    bool *has_moved;       /* [n_clusters] */
    bool *has_changed;     /* [n_clusters]: members differ from those of its centroid */
    best *own;             /* [n] */
    best *found;           /* [n]: in the present pass */
    float *own_now;        /* [n]: the score of the row's own centroid, if this pass compared them */
    int32_t *columns;      /* [n_clusters]: centroids of the pass */
    int32_t *rows;         /* [n]: rows of the pass, for passes over some */
    int32_t *place;        /* [n] members by cluster */
    int64_t *begin;        /* [n_clusters + 1] */
    int64_t *size;         /* [n_clusters] */
    ki_key *keys;          /* [n]: from a device */
    ki_device_rows *means; /* the centroids, on a device */
    bool is_partial;       /* the rows of a stripe are indices into `rows` */
    int64_t n_refilled;
} lloyd;

static inline bool is_better(float score, int32_t cluster, best than) {
    return than.cluster < 0 || score > than.score || (score == than.score && cluster < than.cluster);
}

static void meet(void *context, const ki_stripe *stripe) {
    lloyd *l = context;
    for (int r = 0; r < stripe->n_rows; r++) {
        const int64_t i = l->is_partial ? l->rows[stripe->row + r] : stripe->row + r;
        const float *s = stripe->s + r * KI_BLOCK;
        const int32_t *columns = l->columns + stripe->col;
        uint64_t mask[KI_MASK_WORDS];
        const best so_far = l->found[i];
        l->kernel->compare_row(s, so_far.cluster < 0 ? -INFINITY : so_far.score, mask);
        for (int w = 0; w * 64 < stripe->n_cols; w++) {
            for (uint64_t bits = mask[w]; bits; bits &= bits - 1) {
                const int c = w * 64 + __builtin_ctzll(bits);
                if (c < stripe->n_cols && is_better(s[c], columns[c], l->found[i]))
                    l->found[i] = (best){s[c], columns[c]};
            }
        }
        const int32_t own = l->own[i].cluster;
        if (own < 0 || own < columns[0] || own > columns[stripe->n_cols - 1]) continue;
        const int32_t *at = columns;
        int64_t low = 0, high = stripe->n_cols - 1;
        while (low < high) {
            const int64_t mid = (low + high) / 2;
            if (at[mid] < own)
                low = mid + 1;
            else
                high = mid;
        }
        if (at[low] == own) l->own_now[i] = s[low];
    }
}

/* Compare rows (all, or n_rows of l->rows) with the centroids listed in l->columns. */
static kith_status pass(lloyd *l, int64_t n_rows, int64_t n_columns, kith_error *err) {
    kith_status status = KITH_OK;
    const int64_t dim = l->data->dim;
    const size_t bytes = (size_t)dim * sizeof(float);
    float *picked_rows = NULL, *picked = NULL;
    ki_panels rows = {0}, columns = {0};
    if (n_rows == 0 || n_columns == 0) return KITH_OK;
    l->is_partial = n_rows < l->data->n;
    if (l->is_partial) {
        KI_CHECK(ki_alloc_or(&picked_rows, (size_t)n_rows, bytes, "rows to compare", err));
        for (int64_t i = 0; i < n_rows; i++)
            memcpy(picked_rows + i * dim, l->data->x + l->rows[i] * dim, bytes);
        const ki_rows some = {KITH_F32, n_rows, dim, picked_rows, NULL};
        KI_CHECK(ki_panels_init(&some, KITH_SQEUCLIDEAN, &l->data->panels, &rows, err));
    }
    KI_CHECK(ki_alloc_or(&picked, (size_t)n_columns, bytes, "centroids to compare", err));
    for (int64_t c = 0; c < n_columns; c++)
        memcpy(picked + c * dim, l->centroid + l->columns[c] * dim, bytes);
    const ki_rows some = {KITH_F32, n_columns, dim, picked, NULL};
    KI_CHECK(ki_panels_init(&some, KITH_SQEUCLIDEAN, &l->data->panels, &columns, err));
    const ki_tiles tiles = {.rows = l->is_partial ? &rows : &l->data->panels,
                            .cols = &columns,
                            .kernel = l->kernel,
                            .consume = meet,
                            .context = l};
    KI_CHECK(ki_tiles_run(&tiles, err));
done:
    ki_free(picked_rows);
    ki_free(picked);
    ki_panels_release(&rows);
    ki_panels_release(&columns);
    return status;
}

static int64_t list_centroids(lloyd *l, bool moved) {
    int64_t n = 0;
    for (int64_t c = 0; c < l->n_clusters; c++) {
        if (l->has_moved[c] == moved) l->columns[n++] = (int32_t)c;
    }
    return n;
}

static kith_status find_here(lloyd *l, kith_error *err) {
    const int64_t n = l->data->n;
    for (int64_t i = 0; i < n; i++) l->found[i] = (best){0, -1};
    const int64_t n_moved = list_centroids(l, true);
    KI_TRY(pass(l, n, n_moved, err));
    int64_t n_open = 0;
    for (int64_t i = 0; i < n; i++) {
        const best own = l->own[i];
        if (own.cluster < 0) continue;
        if (!l->has_moved[own.cluster]) {
            if (is_better(own.score, own.cluster, l->found[i])) l->found[i] = own;
        } else if (l->own_now[i] < own.score) {
            l->rows[n_open++] = (int32_t)i;
        }
    }
    return pass(l, n_open, list_centroids(l, false), err);
}

static kith_status find_there(lloyd *l, kith_error *err) {
    const ki_knn_device *d = &l->data->device;
    const ki_device_best ask = {.rows = l->data->loaded, .cols = l->means, .k = 1, .ret_keys = l->keys};
    KI_TRY(d->type->best(d->backend, &ask, err));
    for (int64_t i = 0; i < l->data->n; i++)
        l->found[i] = (best){ki_key_score(l->keys[i]), ki_key_index(l->keys[i])};
    return KITH_OK;
}

/* Assign every row to its nearest centroid; *ret_changes counts the rows that changed their cluster. */
static kith_status assign(lloyd *l, int64_t *ret_changes, kith_error *err) {
    KI_TRY(l->data->device.type ? find_there(l, err) : find_here(l, err));
    int64_t n_changes = 0;
    for (int64_t i = 0; i < l->data->n; i++) {
        const int32_t from = l->own[i].cluster, to = l->found[i].cluster;
        l->own[i] = l->found[i];
        if (from == to) continue;
        n_changes++;
        if (from >= 0) l->has_changed[from] = true;
        l->has_changed[to] = true;
    }
    *ret_changes = n_changes;
    return KITH_OK;
}

static void count_members(lloyd *l) {
    memset(l->size, 0, (size_t)l->n_clusters * sizeof *l->size);
    for (int64_t i = 0; i < l->data->n; i++) l->size[l->own[i].cluster]++;
}

typedef struct far {
    float score;
    int32_t row;
} far;

static int farthest_first(const void *a, const void *b) {
    const far *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* Each empty cluster takes the row that is farthest from its own centroid, from clusters that keep other
 * rows. */
static kith_status refill(lloyd *l, int64_t *changes, kith_error *err) {
    int64_t n_empty = 0;
    for (int64_t c = 0; c < l->n_clusters; c++) n_empty += l->size[c] == 0;
    if (n_empty == 0) return KITH_OK;
    far *order = NULL;
    KI_TRY(ki_alloc_or(&order, (size_t)l->data->n, sizeof *order, "rows by distance", err));
    for (int64_t i = 0; i < l->data->n; i++) order[i] = (far){l->own[i].score, (int32_t)i};
    qsort(order, (size_t)l->data->n, sizeof *order, farthest_first);
    int64_t at = 0;
    for (int64_t c = 0; c < l->n_clusters; c++) {
        if (l->size[c] > 0) continue;
        while (at < l->data->n && l->size[l->own[order[at].row].cluster] < 2) at++;
        if (at == l->data->n) break;
        best *own = l->own + order[at++].row;
        l->size[own->cluster]--;
        l->has_changed[own->cluster] = l->has_changed[c] = true;
        /* Its score is not known yet, but the centroid is about to become the row itself. */
        *own = (best){0, (int32_t)c};
        l->size[c]++;
        l->n_refilled++;
        ++*changes;
    }
    ki_free(order);
    return KITH_OK;
}

static void move_centroids(void *context, int64_t begin, int64_t end) {
    lloyd *l = context;
    const int64_t dim = l->data->dim;
    enum { STRETCH = 256 };
    double sum[STRETCH];
    for (int64_t c = begin; c < end; c++) {
        l->has_moved[c] = false;
        if (!l->has_changed[c] || l->size[c] == 0) continue;
        l->has_changed[c] = false;
        for (int64_t k0 = 0; k0 < dim; k0 += STRETCH) {
            const int64_t width = dim - k0 < STRETCH ? dim - k0 : STRETCH;
            memset(sum, 0, sizeof sum);
            for (int64_t m = l->begin[c]; m < l->begin[c + 1]; m++) {
                const float *x = l->data->x + l->place[m] * dim + k0;
                for (int64_t k = 0; k < width; k++) sum[k] += (double)x[k];
            }
            for (int64_t k = 0; k < width; k++) {
                const float mean = (float)(sum[k] / (double)l->size[c]);
                l->has_moved[c] |= mean != l->centroid[c * dim + k0 + k];
                l->centroid[c * dim + k0 + k] = mean;
            }
        }
    }
}

/* The same on a device, which compares all, whatever has moved. */
static kith_status move_there(lloyd *l, kith_error *err) {
    const ki_knn_device *d = &l->data->device;
    ki_device_move move = {.which = l->columns, .begin = l->begin, .member = l->place};
    for (int64_t c = 0; c < l->n_clusters; c++) {
        if (!l->has_changed[c] || l->size[c] == 0) continue;
        l->has_changed[c] = false;
        l->columns[move.n++] = (int32_t)c;
    }
    return d->type->move(d->backend, l->means, &move, err);
}

/* The mean of every cluster whose members changed, summed in the order of rows. */
static kith_status update(lloyd *l, kith_error *err) {
    l->begin[0] = 0;
    for (int64_t c = 0; c < l->n_clusters; c++) l->begin[c + 1] = l->begin[c] + l->size[c];
    for (int64_t i = l->data->n - 1; i >= 0; i--) { /* from the back, so that begin ends at its right place */
        int64_t *end = l->begin + l->own[i].cluster + 1;
        l->place[--*end] = (int32_t)i;
    }
    for (int64_t c = 0; c < l->n_clusters; c++) l->begin[c] = l->begin[c + 1];
    l->begin[l->n_clusters] = l->data->n;
    if (l->data->device.type) return move_there(l, err);
    ki_parallel_for(l->n_clusters, 16, move_centroids, l);
    return KITH_OK;
}

/* Each centroid begins as one of the rows. */
static kith_status begin_at(lloyd *l, const int64_t *row, kith_error *err) {
    const int64_t dim = l->data->dim;
    for (int64_t k = 0; k < l->n_clusters; k++) {
        memcpy(l->centroid + k * dim, l->data->x + row[k] * dim, (size_t)dim * sizeof(float));
        l->has_moved[k] = l->has_changed[k] = true;
    }
    for (int64_t i = 0; i < l->data->n; i++) l->own[i] = (best){0, -1};
    if (!l->data->device.type) return KITH_OK;
    for (int64_t k = 0; k < l->n_clusters; k++) {
        l->place[k] = (int32_t)row[k];
        l->columns[k] = (int32_t)k;
        l->begin[k] = k;
    }
    l->begin[l->n_clusters] = l->n_clusters;
    const ki_knn_device *d = &l->data->device;
    const ki_device_move move = {
        .n = l->n_clusters, .which = l->columns, .begin = l->begin, .member = l->place};
    return d->type->move(d->backend, l->means, &move, err);
}

static double objective_now(const lloyd *l) {
    double sum = 0;
    for (int64_t i = 0; i < l->data->n; i++) sum += fmax(0, -2 * (double)l->own[i].score);
    return sum;
}

static double objective_exact(const lloyd *l) {
    const ki_rows x = {KITH_F32, l->data->n, l->data->dim, l->data->x, NULL};
    const ki_rows c = {KITH_F32, l->n_clusters, l->data->dim, l->centroid, NULL};
    double sum = 0;
    for (int64_t i = 0; i < l->data->n; i++) sum += ki_rows_sqdist(&x, i, &c, l->own[i].cluster);
    return sum;
}

static void lloyd_release(lloyd *l) {
    void *const owned[] = {l->centroid, l->has_moved, l->has_changed, l->own,   l->found, l->own_now,
                           l->columns,  l->rows,      l->place,       l->begin, l->size,  l->keys};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) ki_free(owned[i]);
    if (l->means) l->data->device.type->unload(l->data->device.backend, l->means);
    *l = (lloyd){0};
}

static kith_status lloyd_init(lloyd *l, const ki_kmeans_data *data, int64_t n_clusters, kith_error *err) {
    const size_t n = (size_t)data->n, k = (size_t)n_clusters;
    *l = (lloyd){.data = data, .kernel = ki_knn_kernel_best(), .n_clusters = n_clusters};
    KI_TRY(ki_alloc_or(&l->centroid, k, (size_t)data->dim * sizeof(float), "centroids", err));
    KI_TRY(ki_alloc_or(&l->has_moved, k, sizeof *l->has_moved, "centroid marks", err));
    KI_TRY(ki_alloc_or(&l->has_changed, k, sizeof *l->has_changed, "centroid marks", err));
    KI_TRY(ki_alloc_or(&l->own, n, sizeof *l->own, "assignments", err));
    KI_TRY(ki_alloc_or(&l->found, n, sizeof *l->found, "assignments", err));
    KI_TRY(ki_alloc_or(&l->own_now, n, sizeof *l->own_now, "assignments", err));
    KI_TRY(ki_alloc_or(&l->columns, k, sizeof *l->columns, "centroid list", err));
    KI_TRY(ki_alloc_or(&l->rows, n, sizeof *l->rows, "row list", err));
    KI_TRY(ki_alloc_or(&l->place, n, sizeof *l->place, "members", err));
    KI_TRY(ki_alloc_or(&l->begin, k + 2, sizeof *l->begin, "members", err));
    if (data->device.type) {
        KI_TRY(ki_alloc_or(&l->keys, n, sizeof *l->keys, "assignments", err));
        KI_TRY(data->device.type->means(data->device.backend, data->loaded, n_clusters, &l->means, err));
    }
    return ki_alloc_or(&l->size, k, sizeof *l->size, "cluster sizes", err);
}

typedef struct course {
    const kith_kmeans_options *options;
    int64_t restart;
    int64_t n_iterations;
} course;

static kith_status report(const course *c, int64_t iteration, kith_error *err) {
    const kith_kmeans_options *o = c->options;
    const int64_t per_run = o->n_iterations + 1;
    if (o->progress && o->progress(o->user, c->restart * per_run + iteration, o->n_restarts * per_run) != 0)
        return ki_fail(err, KITH_ECANCELED, "stopped after %lld iterations", (long long)iteration);
    return KITH_OK;
}

static kith_status run(lloyd *l, course *c, kith_error *err) {
    const kith_kmeans_options *o = c->options;
    const ki_knn_device *d = &l->data->device;
    const int64_t n = l->data->n;
    int64_t *start = NULL;
    kith_status status = KITH_OK;
    KI_CHECK(ki_alloc_or(&start, (size_t)l->n_clusters, sizeof *start, "starting rows", err));
    if (o->is_random_start)
        KI_CHECK(ki_kmeans_random(n, l->n_clusters, o->seed, (uint32_t)c->restart, start, err));
    else
        KI_CHECK(ki_kmeans_plus_plus(l->data, l->n_clusters, o->seed, (uint32_t)c->restart, start, err));
    KI_CHECK(begin_at(l, start, err));
    l->n_refilled = 0;
    double before = INFINITY;
    int64_t n_changes = 0;
    for (c->n_iterations = 0; c->n_iterations < o->n_iterations; c->n_iterations++) {
        KI_CHECK(report(c, c->n_iterations + 1, err));
        KI_CHECK(assign(l, &n_changes, err));
        count_members(l);
        KI_CHECK(refill(l, &n_changes, err));
        const double now = objective_now(l);
        if (n_changes == 0) break;
        KI_CHECK(update(l, err));
        if (before - now < o->tolerance * before) break;
        before = now;
    }
    KI_CHECK(assign(l, &n_changes, err)); /* to the centroids that are returned */
    count_members(l);
    if (d->type) KI_CHECK(d->type->means_read(d->backend, l->means, l->centroid, err));
    KI_CHECK(report(c, o->n_iterations + 1, err));
done:
    ki_free(start);
    return status;
}

static kith_status check(const kith_kmeans_options *o, const ki_rows *rows, kith_error *err) {
    if (o->n_clusters < 1 || o->n_clusters > rows->n)
        return ki_fail(err, KITH_EINVAL, "%lld clusters for %lld rows; wanted 1 to %lld",
                       (long long)o->n_clusters, (long long)rows->n, (long long)rows->n);
    if (o->n_iterations < 1)
        return ki_fail(err, KITH_EINVAL, "%lld iterations; wanted at least 1", (long long)o->n_iterations);
    if (o->n_restarts < 1)
        return ki_fail(err, KITH_EINVAL, "%lld restarts; wanted at least 1", (long long)o->n_restarts);
    if (!(o->tolerance >= 0))
        return ki_fail(err, KITH_EINVAL, "tolerance %g; wanted at least 0", o->tolerance);
    return KITH_OK;
}

KI_OPTIONS_INIT(kith_kmeans_options, .n_iterations = 25, .n_restarts = 1, .normalize = true)

static void keep(const lloyd *l, const course *c, double objective, kith_kmeans_result *result) {
    memcpy(result->centroids.data, l->centroid, (size_t)(l->n_clusters * l->data->dim) * sizeof(float));
    for (int64_t i = 0; i < l->data->n; i++) result->cluster[i] = l->own[i].cluster;
    memcpy(result->size, l->size, (size_t)l->n_clusters * sizeof *l->size);
    result->objective = objective;
    result->n_iterations = c->n_iterations;
    result->n_refilled = l->n_refilled;
    result->restart = c->restart;
}

kith_status ki_kmeans_run(const ki_rows *all, const ki_knn_device *device, const kith_kmeans_options *options,
                          kith_kmeans_result *ret_result, kith_error *err) {
    kith_status status = KITH_OK;
    KI_TRY(check(options, all, err));
    ki_kmeans_data data = {0};
    lloyd l = {0};
    kith_kmeans_result result = {0};
    const int64_t k = options->n_clusters;
    if (device)
        data.device = (ki_knn_device){device->backend, device->type, .is_borrowed = true};
    else
        KI_CHECK(ki_knn_device_open(options->device, &data.device, err));
    KI_CHECK(ki_kmeans_data_init(&data, all, options->normalize, err));
    KI_CHECK(lloyd_init(&l, &data, k, err));
    KI_CHECK(kith_array_init(KITH_F32, 2, (int64_t[]){k, all->dim}, &result.centroids, err));
    KI_CHECK(ki_alloc_or(&result.cluster, (size_t)all->n, sizeof *result.cluster, "clusters", err));
    KI_CHECK(ki_alloc_or(&result.size, (size_t)k, sizeof *result.size, "cluster sizes", err));
    result.objective = INFINITY;
    for (course c = {.options = options}; c.restart < options->n_restarts; c.restart++) {
        KI_CHECK(run(&l, &c, err));
        const double objective = objective_exact(&l);
        if (objective < result.objective) keep(&l, &c, objective, &result);
    }
    *ret_result = result;
    result = (kith_kmeans_result){0};
done:
    kith_kmeans_result_release(&result);
    lloyd_release(&l);
    ki_kmeans_data_release(&data);
    return status;
}

kith_status kith_kmeans(const kith_array *rows, const kith_kmeans_options *options,
                        kith_kmeans_result *ret_result, kith_error *err) {
    KI_NEED(err, rows, ret_result);
    ki_rows all;
    KI_OPTIONS_TAKE(kith_kmeans_options, o, options, err);
    KI_TRY(ki_rows_init(rows, "rows", &all, err));
    return ki_kmeans_run(&all, NULL, &o, ret_result, err);
}

void kith_kmeans_result_release(kith_kmeans_result *result) {
    if (!result) return;
    kith_array_release(&result->centroids);
    ki_free(result->cluster);
    ki_free(result->size);
    *result = (kith_kmeans_result){0};
}
