/* Pair scores on a CUDA device: matrices stay there, products are computed in tiles by the matrix product,
 * and kernels read each tile before the next one overwrites it. */
#include <math.h>

#include "backend/cuda/gemm/gemm.h"
#include "knn/cuda/inside.h"
#include "knn/cuda/kernels.h"

enum { TILE_ROWS = 2048, TILE_COLS = 8192 };

void ki_knn_cuda_unload(ki_backend *backend, ki_device_rows *rows) {
    if (!rows) return;
    void *const owned[] = {rows->x,      rows->half,   rows->norm,  rows->mean,
                           rows->center, rows->member, rows->which, rows->begin};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) ki_cuda_free(backend, owned[i]);
    ki_free(rows);
}

kith_status ki_knn_cuda_take(ki_backend *backend, int64_t n, int64_t width, size_t size, void *ret_ptr,
                             kith_error *err) {
    void *ptr = NULL;
    size_t count, bytes;
    if (!ki_mul_size((size_t)n, (size_t)width, &count) || !ki_mul_size(count, size, &bytes))
        return ki_fail_memory(err, SIZE_MAX, "a matrix on the device");
    KI_TRY(ki_cuda_alloc(backend, bytes ? bytes : 1, &ptr, err));
    *(void **)ret_ptr = ptr;
    return KITH_OK;
}

kith_status ki_knn_cuda_copy_in(ki_backend *backend, const void *host, int64_t n, size_t size, void *ret_ptr,
                                kith_error *err) {
    KI_TRY(ki_knn_cuda_take(backend, n, 1, size, ret_ptr, err));
    return n > 0 ? backend->type->memory.upload(backend, *(void **)ret_ptr, host, (size_t)n * size, err)
                 : KITH_OK;
}

/* From the host's panels … */
static kith_status unpack_in(ki_backend *backend, const ki_panels *p, float *x, kith_error *err) {
    kith_status status;
    const int64_t n = p->rows.n, dim = p->rows.dim, padded = (int64_t)ki_round_up((size_t)n, KI_PANEL);
    float *packed = NULL;
    if (n == 0) return KITH_OK;
    KI_CHECK(ki_knn_cuda_copy_in(backend, p->data, padded, (size_t)dim * sizeof(float), &packed, err));
    const cudaError_t error = ki_knn_unpack(ki_cuda_of(backend)->stream, packed, x, n, dim);
    if (error != cudaSuccess) KI_CHECK(ki_cuda_fail(err, error, "ki_knn_unpack"));
    KI_CHECK(backend->type->memory.sync(backend, err));
done:
    if (status != KITH_OK)
        backend->type->memory.sync(backend, NULL); /* the upload may still read the panels */
    ki_cuda_free(backend, packed);
    return status;
}

/* … or from the rows that the device has, scaled as knn/panels.c scales them. */
static kith_status scale_in(ki_backend *backend, const ki_panels *p, float *x, kith_error *err) {
    kith_status status = KITH_OK;
    const int64_t n = p->rows.n, dim = p->rows.dim;
    double *norm = NULL, *center = NULL;
    if (n == 0) return KITH_OK;
    if (p->metric == KITH_COSINE)
        KI_CHECK(ki_knn_cuda_copy_in(backend, p->norm, n, sizeof *norm, &norm, err));
    if (p->center) KI_CHECK(ki_knn_cuda_copy_in(backend, p->center, dim, sizeof *center, &center, err));
    const cudaError_t error =
        ki_knn_scale(ki_cuda_of(backend)->stream, p->rows.there, norm, KI_LEAST_NORM, center, x, n, dim);
    if (error != cudaSuccess) KI_CHECK(ki_cuda_fail(err, error, "ki_knn_scale"));
    KI_CHECK(backend->type->memory.sync(backend, err));
done:
    if (status != KITH_OK) backend->type->memory.sync(backend, NULL); /* the uploads may still read */
    ki_cuda_free(backend, norm);
    ki_cuda_free(backend, center);
    return status;
}

static kith_status load(ki_backend *backend, const ki_panels *p, ki_device_tile tile,
                        ki_device_rows **ret_rows, kith_error *err) {
    kith_status status = KITH_OK;
    const int64_t n = p->rows.n, dim = p->rows.dim;
    ki_device_rows *rows = NULL;
    KI_TRY(ki_zalloc_or(&rows, 1, sizeof *rows, "a matrix on the device", err));
    *rows = (ki_device_rows){.panels = p, .n = n, .dim = dim, .tile = tile};
    if (rows->tile.n_rows <= 0) rows->tile = (ki_device_tile){TILE_ROWS, TILE_COLS};
    KI_CHECK(ki_knn_cuda_take(backend, n, dim, sizeof *rows->x, &rows->x, err));
    if (p->half) KI_CHECK(ki_knn_cuda_copy_in(backend, p->half, n, sizeof *rows->half, &rows->half, err));
    if (p->metric != KITH_COSINE)
        KI_CHECK(ki_knn_cuda_copy_in(backend, p->norm, n, sizeof *rows->norm, &rows->norm, err));
    KI_CHECK(p->rows.there ? scale_in(backend, p, rows->x, err) : unpack_in(backend, p, rows->x, err));
    KI_CHECK(backend->type->memory.sync(backend, err));
    *ret_rows = rows;
    rows = NULL;
done:
    if (status != KITH_OK)
        backend->type->memory.sync(backend, NULL); /* the upload may still read the panels */
    ki_knn_cuda_unload(backend, rows);
    return status;
}

static kith_status hold(ki_backend *backend, const ki_rows *rows, const double *norm, float **ret_there,
                        kith_error *err) {
    kith_status status = KITH_OK;
    const int64_t n = rows->n, dim = rows->dim;
    float *x = NULL;
    double *by = NULL;
    KI_CHECK(ki_knn_cuda_take(backend, n, dim, sizeof *x, &x, err));
    if (norm) KI_CHECK(ki_knn_cuda_copy_in(backend, norm, n, sizeof *by, &by, err));
    if (!rows->there)
        KI_CHECK(backend->type->memory.upload(backend, x, rows->data, (size_t)(n * dim) * sizeof *x, err));
    if (rows->there || norm) {
        const cudaError_t error = ki_knn_scale(ki_cuda_of(backend)->stream, rows->there ? rows->there : x, by,
                                               KI_LEAST_NORM, NULL, x, n, dim);
        if (error != cudaSuccess) KI_CHECK(ki_cuda_fail(err, error, "ki_knn_scale"));
    }
    KI_CHECK(backend->type->memory.sync(backend, err));
    *ret_there = x;
    x = NULL;
done:
    if (status != KITH_OK) backend->type->memory.sync(backend, NULL); /* the uploads may still read */
    ki_cuda_free(backend, x);
    ki_cuda_free(backend, by);
    return status;
}

static kith_status columns(ki_backend *backend, const ki_rows *rows, int64_t from, int64_t width,
                           float **ret_there, kith_error *err) {
    float *x = NULL;
    KI_TRY(ki_knn_cuda_take(backend, rows->n, width, sizeof *x, &x, err));
    const cudaError_t error = cudaMemcpy2DAsync(
        x, (size_t)width * sizeof *x, rows->there + from, (size_t)rows->dim * sizeof *x,
        (size_t)width * sizeof *x, (size_t)rows->n, cudaMemcpyDeviceToDevice, ki_cuda_of(backend)->stream);
    const kith_status status = error == cudaSuccess ? backend->type->memory.sync(backend, err)
                                                    : ki_cuda_fail(err, error, "cudaMemcpy2DAsync");
    if (status == KITH_OK)
        *ret_there = x;
    else
        ki_cuda_free(backend, x);
    return status;
}

/* ---- tiles ---- */

typedef struct walk {
    ki_backend *backend;
    const ki_device_rows *rows, *cols;
    float *s;
    ki_knn_tile tile; /* the present one */
    int64_t step_rows, step_cols;
    int64_t n_done, n_all;
} walk;

static int64_t least_of(int64_t a, int64_t b) { return a < b ? a : b; }

static kith_status walk_begin(ki_backend *backend, const ki_device_rows *rows, const ki_device_rows *cols,
                              walk *w, kith_error *err) {
    *w = (walk){.backend = backend, .rows = rows, .cols = cols};
    w->step_rows = least_of(cols->tile.n_rows, rows->n);
    w->step_cols = least_of(cols->tile.n_cols, cols->n);
    w->n_all = ((rows->n + w->step_rows - 1) / w->step_rows) * ((cols->n + w->step_cols - 1) / w->step_cols);
    w->tile = (ki_knn_tile){.row = 0, .col = -w->step_cols, .row_half = rows->half, .col_half = cols->half};
    return ki_cuda_alloc(backend, (size_t)(w->step_rows * w->step_cols) * sizeof(float), (void **)&w->s, err);
}

static void walk_end(walk *w) {
    if (w->backend) ki_cuda_free(w->backend, w->s);
}

/* Queue the products of the next tile; the column advances first. *ret_more is false after the last tile. */
static kith_status walk_next(walk *w, bool *ret_more, kith_error *err) {
    ki_knn_tile *t = &w->tile;
    t->col += w->step_cols;
    if (t->col >= w->cols->n) t->col = 0, t->row += w->step_rows;
    *ret_more = t->row < w->rows->n;
    if (!*ret_more) return KITH_OK;
    t->s = w->s;
    t->n_rows = least_of(w->step_rows, w->rows->n - t->row);
    t->n_cols = least_of(w->step_cols, w->cols->n - t->col);
    t->ld = w->step_cols;
    w->n_done++;
    const int64_t dim = w->rows->dim;
    return ki_cuda_gemm(w->backend, false, true, t->n_rows, t->n_cols, dim, 1, w->rows->x + t->row * dim,
                        KI_NUMBER_FLOAT, dim, w->cols->x + t->col * dim, dim, 0, w->s, KI_NUMBER_FLOAT, t->ld,
                        err);
}

static kith_status report(const walk *w, kith_progress_fn progress, void *user, kith_error *err) {
    if (progress && progress(user, w->n_done, w->n_all) != 0)
        return ki_fail(err, KITH_ECANCELED, "stopped after %lld of %lld tiles", (long long)w->n_done,
                       (long long)w->n_all);
    return KITH_OK;
}

/* ---- the k best ---- */

static kith_status best(ki_backend *backend, const ki_device_best *ask, kith_error *err) {
    kith_status status = KITH_OK;
    cudaStream_t stream = ki_cuda_of(backend)->stream;
    walk w = {0};
    uint64_t *lists = NULL;
    int32_t *self = NULL;
    const int64_t n = ask->rows->n;
    size_t bytes;
    if (ask->k < 1 || ask->k > KI_KNN_MOST_K) {
        ki_fail(err, KITH_EUNSUPPORTED, "%lld neighbours on a CUDA device; wanted 1 to %d", (long long)ask->k,
                (int)KI_KNN_MOST_K);
        return ki_hint(err, KITH_EUNSUPPORTED, "use device cpu for longer lists");
    }
    if (n == 0) return KITH_OK;
    if (!ki_mul_size((size_t)n, (size_t)ask->k * sizeof *lists, &bytes))
        return ki_fail_memory(err, SIZE_MAX, "neighbour lists");
    KI_CHECK(ki_cuda_alloc(backend, bytes, (void **)&lists, err));
    KI_CHECK(backend->type->memory.zero(backend, lists, bytes, err));
    if (ask->self) KI_CHECK(ki_knn_cuda_copy_in(backend, ask->self, n, sizeof *self, &self, err));
    KI_CHECK(walk_begin(backend, ask->rows, ask->cols, &w, err));
    for (bool more = true;;) {
        KI_CHECK(walk_next(&w, &more, err));
        if (!more) break;
        const cudaError_t error = ki_knn_keep_best(stream, &w.tile, self, ask->is_square, ask->k, lists);
        if (error != cudaSuccess) KI_CHECK(ki_cuda_fail(err, error, "ki_knn_keep_best"));
        KI_CHECK(report(&w, ask->progress, ask->user, err));
    }
    KI_CHECK(backend->type->memory.download(backend, lists, ask->ret_keys, bytes, err));
done:
    if (backend->type->memory.sync(backend, status == KITH_OK ? err : NULL) != KITH_OK && status == KITH_OK)
        status = KITH_EBACKEND;
    walk_end(&w);
    ki_cuda_free(backend, lists);
    ki_cuda_free(backend, self);
    return status;
}

/* ---- places among the relevant ---- */

typedef struct placing {
    walk w;
    ki_knn_places p;
    float *least;
    int32_t *row_class, *col_class;
    int64_t *begin;
    double *score;
    uint64_t *pairs; /* host */
    size_t pairs_capacity;
} placing;

static kith_status placing_begin(ki_backend *backend, const ki_device_places *ask, placing *g,
                                 kith_error *err) {
    const int64_t n = ask->rows->n, n_relevant = ask->begin[n];
    const ki_bound bound = ki_panels_bound_of(ask->rows->panels);
    KI_TRY(ki_knn_cuda_copy_in(backend, ask->least, n, sizeof *g->least, &g->least, err));
    KI_TRY(ki_knn_cuda_copy_in(backend, ask->row_class, n, sizeof *g->row_class, &g->row_class, err));
    KI_TRY(
        ki_knn_cuda_copy_in(backend, ask->col_class, ask->cols->n, sizeof *g->col_class, &g->col_class, err));
    KI_TRY(ki_knn_cuda_copy_in(backend, ask->begin, n + 1, sizeof *g->begin, &g->begin, err));
    KI_TRY(ki_knn_cuda_copy_in(backend, ask->score, n_relevant, sizeof *g->score, &g->score, err));
    const size_t count_bytes = (size_t)(n_relevant > 0 ? n_relevant : 1) * sizeof *g->p.n_before;
    KI_TRY(ki_cuda_alloc(backend, count_bytes, (void **)&g->p.n_before, err));
    KI_TRY(backend->type->memory.zero(backend, g->p.n_before, count_bytes, err));
    KI_TRY(walk_begin(backend, ask->rows, ask->cols, &g->w, err));
    const size_t tile = (size_t)(g->w.step_rows * g->w.step_cols);
    KI_TRY(ki_cuda_alloc(backend, tile * sizeof *g->p.pairs, (void **)&g->p.pairs, err));
    KI_TRY(ki_cuda_alloc(backend, sizeof *g->p.n_pairs, (void **)&g->p.n_pairs, err));
    g->p.least = g->least;
    g->p.row_class = g->row_class;
    g->p.col_class = g->col_class;
    g->p.begin = g->begin;
    g->p.score = g->score;
    g->p.row_norm = ask->rows->norm;
    g->p.col_norm = ask->cols->norm;
    g->p.factor = bound.factor;
    g->p.tiny = bound.tiny;
    g->p.is_plain = !ask->rows->norm;
    return KITH_OK;
}

static void placing_end(ki_backend *backend, placing *g) {
    void *const owned[] = {g->least, g->row_class,  g->col_class, g->begin,
                           g->score, g->p.n_before, g->p.pairs,   g->p.n_pairs};
    walk_end(&g->w);
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) ki_cuda_free(backend, owned[i]);
    ki_free(g->pairs);
}

/* One tile: counts stay on the device; pairs that it could not decide are copied to the host. */
static kith_status place_tile(ki_backend *backend, const ki_device_places *ask, placing *g, kith_error *err) {
    unsigned long long n_pairs = 0;
    KI_TRY(backend->type->memory.zero(backend, g->p.n_pairs, sizeof n_pairs, err));
    KI_CUDA(ki_knn_place(ki_cuda_of(backend)->stream, &g->w.tile, &g->p));
    KI_TRY(backend->type->memory.download(backend, g->p.n_pairs, &n_pairs, sizeof n_pairs, err));
    KI_TRY(backend->type->memory.sync(backend, err));
    if (n_pairs == 0) return KITH_OK;
    KI_TRY(ki_grow(&g->pairs, &g->pairs_capacity, (size_t)n_pairs, sizeof *g->pairs, "undecided pairs", err));
    KI_TRY(backend->type->memory.download(backend, g->p.pairs, g->pairs, (size_t)n_pairs * sizeof *g->pairs,
                                          err));
    KI_TRY(backend->type->memory.sync(backend, err));
    ask->unsettled(ask->context, g->pairs, (int64_t)n_pairs);
    return KITH_OK;
}

static kith_status place(ki_backend *backend, const ki_device_places *ask, kith_error *err) {
    kith_status status = KITH_OK;
    placing g = {0};
    const int64_t n_relevant = ask->begin[ask->rows->n];
    if (ask->rows->n == 0 || ask->cols->n == 0 || n_relevant == 0) return KITH_OK;
    KI_CHECK(placing_begin(backend, ask, &g, err));
    for (bool more = true;;) {
        KI_CHECK(walk_next(&g.w, &more, err));
        if (!more) break;
        KI_CHECK(place_tile(backend, ask, &g, err));
        KI_CHECK(report(&g.w, ask->progress, ask->user, err));
    }
    KI_CHECK(backend->type->memory.download(backend, g.p.n_before, ask->ret_n_before,
                                            (size_t)n_relevant * sizeof *ask->ret_n_before, err));
done:
    if (backend->type->memory.sync(backend, status == KITH_OK ? err : NULL) != KITH_OK && status == KITH_OK)
        status = KITH_EBACKEND;
    placing_end(backend, &g);
    return status;
}

/* ---- scores themselves ---- */

static kith_status scores(ki_backend *backend, const ki_device_rows *rows, const ki_device_rows *cols,
                          float *ret_scores, kith_error *err) {
    kith_status status = KITH_OK;
    float *s = NULL;
    size_t n, bytes;
    if (!ki_mul_size((size_t)rows->n, (size_t)cols->n, &n) || !ki_mul_size(n, sizeof(float), &bytes))
        return ki_fail_memory(err, SIZE_MAX, "scores");
    if (n == 0) return KITH_OK;
    KI_TRY(ki_cuda_alloc(backend, bytes, (void **)&s, err));
    const ki_knn_tile tile = {.s = s,
                              .ld = cols->n,
                              .n_rows = rows->n,
                              .n_cols = cols->n,
                              .row_half = rows->half,
                              .col_half = cols->half};
    KI_CHECK(ki_cuda_gemm(backend, false, true, rows->n, cols->n, rows->dim, 1, rows->x, KI_NUMBER_FLOAT,
                          rows->dim, cols->x, cols->dim, 0, s, KI_NUMBER_FLOAT, cols->n, err));
    const cudaError_t error = ki_knn_finish(ki_cuda_of(backend)->stream, &tile);
    if (error != cudaSuccess) KI_CHECK(ki_cuda_fail(err, error, "ki_knn_finish"));
    KI_CHECK(backend->type->memory.download(backend, s, ret_scores, bytes, err));
done:
    if (backend->type->memory.sync(backend, status == KITH_OK ? err : NULL) != KITH_OK && status == KITH_OK)
        status = KITH_EBACKEND;
    ki_cuda_free(backend, s);
    return status;
}

const ki_knn_device_type ki_knn_cuda = {.most_k = KI_KNN_MOST_K,
                                        .load = load,
                                        .unload = ki_knn_cuda_unload,
                                        .best = best,
                                        .place = place,
                                        .scores = scores,
                                        .hold = hold,
                                        .columns = columns,
                                        .means = ki_knn_cuda_means,
                                        .move = ki_knn_cuda_move,
                                        .means_read = ki_knn_cuda_means_read,
                                        .mean = ki_knn_cuda_mean,
                                        .scatter = ki_knn_cuda_scatter,
                                        .spread = ki_knn_cuda_spread,
                                        .project = ki_knn_cuda_project};
