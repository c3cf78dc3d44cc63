/* Principal components in float64, from blocks of centred rows: the covariance matrix and its eigenvectors,
 * or, for many columns, subspace iteration (Halko, Martinsson and Tropp, "Finding structure with
 * randomness", SIAM Review 2011), which never forms that matrix.
 *
 * BLAS is called on fixed stripes, one thread each, and LAPACK on one thread: how these libraries split their
 * work must not change the bits. */
#include "knn/pca.h"

#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/blas.h"
#include "base/parallel.h"
#include "base/rng.h"

enum { BLOCK = 512, STRIPE = 128, SPARE = 10, N_POWERS = 4, MOST_EXACT = 3000 };

/* c [m, n] = beta c + op(a) b with b [k, n]; a is [m, k], or [k, m] when transposed. All row-major. */
typedef struct product {
    bool is_transposed;
    int64_t m, n, k;
    const double *a, *b;
    int64_t lda, ldb, ldc;
    double beta;
    double *c;
} product;

static void product_stripes(void *context, int64_t begin, int64_t end) {
    const product *p = context;
    for (int64_t s = begin; s < end; s++) {
        const int64_t row = s * STRIPE, m = p->m - row < STRIPE ? p->m - row : STRIPE;
        cblas_dgemm(CblasRowMajor, p->is_transposed ? CblasTrans : CblasNoTrans, CblasNoTrans, (int)m,
                    (int)p->n, (int)p->k, 1, p->a + (p->is_transposed ? row : row * p->lda), (int)p->lda,
                    p->b, (int)p->ldb, p->beta, p->c + row * p->ldc, (int)p->ldc);
    }
}

static int64_t n_stripes_of(int64_t m) { return (m + STRIPE - 1) / STRIPE; }

static void multiply(const product *p) {
    const int64_t n_stripes = n_stripes_of(p->m);
    const int n_threads = ki_threads();
    if (n_stripes == 1) ki_threads_set(1);
    product copy = *p;
    ki_parallel_for(n_stripes, 1, product_stripes, &copy);
    ki_threads_set(n_threads);
}

/* Rows begin … begin + n - 1, centred, into block [n, dim]. */
static void load_block(const ki_rows *rows, const double *mean, int64_t begin, int64_t n, double *block) {
    for (int64_t i = 0; i < n; i++) {
        ki_rows_get(rows, begin + i, block + i * rows->dim);
        for (int64_t k = 0; k < rows->dim; k++) block[i * rows->dim + k] -= mean[k];
    }
}

static int64_t block_rows(const ki_rows *rows, int64_t begin) {
    return rows->n - begin < BLOCK ? rows->n - begin : BLOCK;
}

/* a [n, n] symmetric, destroyed: the m largest eigenvalues and their vectors (rows of vector [m, n]),
 * largest first. */
static kith_status eigen(double *a, int64_t n, int64_t m, double *value, double *vector, kith_error *err) {
    kith_status status = KITH_OK;
    double *all = NULL, *found = NULL;
    lapack_int *support = NULL, n_found = 0;
    KI_CHECK(ki_alloc_or(&all, (size_t)n, sizeof *all, "eigenvalues", err));
    KI_CHECK(ki_alloc_or(&found, (size_t)n * (size_t)m, sizeof *found, "eigenvectors", err));
    KI_CHECK(ki_alloc_or(&support, 2 * (size_t)m, sizeof *support, "eigenvector support", err));
    const int n_threads = ki_threads();
    ki_threads_set(1);
    /* Column-major: a symmetric matrix is the same either way, and vectors come out contiguous. */
    const lapack_int info = LAPACKE_dsyevr(LAPACK_COL_MAJOR, 'V', 'I', 'U', (lapack_int)n, a, (lapack_int)n,
                                           0, 0, (lapack_int)(n - m + 1), (lapack_int)n, 0, &n_found, all,
                                           found, (lapack_int)n, support);
    ki_threads_set(n_threads);
    if (info == LAPACK_WORK_MEMORY_ERROR || info == LAPACK_TRANSPOSE_MEMORY_ERROR) {
        status = ki_fail_memory(err, (size_t)n * sizeof *a, "the eigenvalue problem");
        goto done;
    }
    if (info != 0 || n_found != m) {
        status = ki_fail(err, KITH_EBACKEND, "LAPACK's dsyevr found %d of %lld eigenvectors (info %d)",
                         (int)n_found, (long long)m, (int)info);
        goto done;
    }
    for (int64_t j = 0; j < m; j++) {
        value[j] = all[m - 1 - j];
        memcpy(vector + j * n, found + (m - 1 - j) * n, (size_t)n * sizeof *vector);
    }
done:
    ki_free(all);
    ki_free(found);
    ki_free(support);
    return status;
}

static bool has_device(const ki_knn_device *device, const ki_rows *rows) {
    return device && device->type && rows->dtype == KITH_F32;
}

/* Xc' Xc, on the host. */
static kith_status scatter(const ki_rows *rows, const double *mean, double *sum, kith_error *err) {
    double *block = NULL;
    const size_t dim = (size_t)rows->dim;
    KI_TRY(ki_blas_prepare(n_stripes_of(rows->dim), err));
    KI_TRY(ki_alloc_or(&block, BLOCK * dim, sizeof *block, "centred rows", err));
    memset(sum, 0, dim * dim * sizeof *sum);
    for (int64_t i = 0; i < rows->n; i += BLOCK) {
        const int64_t n = block_rows(rows, i);
        load_block(rows, mean, i, n, block);
        const product p = {true,      rows->dim, rows->dim, n, block, block,
                           rows->dim, rows->dim, rows->dim, 1, sum};
        multiply(&p);
    }
    ki_free(block);
    return KITH_OK;
}

static kith_status fit_exact(const ki_rows *rows, const ki_knn_device *device, int64_t m, kith_pca *pca,
                             kith_error *err) {
    kith_status status = KITH_ENOMEM;
    double *covariance = NULL;
    const size_t dim = (size_t)rows->dim;
    KI_TRY(ki_alloc_or(&covariance, dim * dim, sizeof *covariance, "the covariance matrix", err));
    if (has_device(device, rows))
        status = device->type->scatter(device->backend, rows, pca->mean.data, covariance, err);
    if (status == KITH_ENOMEM) status = scatter(rows, pca->mean.data, covariance, err);
    if (status != KITH_OK) goto done;
    for (size_t i = 0; i < dim * dim; i++) covariance[i] /= (double)(rows->n - 1);
    KI_CHECK(eigen(covariance, rows->dim, m, pca->variance.data, pca->components.data, err));
done:
    ki_free(covariance);
    return status;
}

/* Orthonormal columns for a [m, n], m >= n. */
static kith_status orthonormalize(double *a, int64_t m, int64_t n, kith_error *err) {
    double *tau = NULL;
    KI_TRY(ki_alloc_or(&tau, (size_t)n, sizeof *tau, "reflectors", err));
    const int n_threads = ki_threads();
    ki_threads_set(1);
    lapack_int info = LAPACKE_dgeqrf(LAPACK_ROW_MAJOR, (lapack_int)m, (lapack_int)n, a, (lapack_int)n, tau);
    if (info == 0)
        info = LAPACKE_dorgqr(LAPACK_ROW_MAJOR, (lapack_int)m, (lapack_int)n, (lapack_int)n, a, (lapack_int)n,
                              tau);
    ki_threads_set(n_threads);
    ki_free(tau);
    if (info == 0) return KITH_OK;
    if (info == LAPACK_WORK_MEMORY_ERROR || info == LAPACK_TRANSPOSE_MEMORY_ERROR)
        return ki_fail_memory(err, (size_t)(m * n) * sizeof *a, "orthonormalisation");
    return ki_fail(err, KITH_EBACKEND, "LAPACK's dgeqrf or dorgqr failed (info %d)", (int)info);
}

/* y [dim, l] = Xc' Xc q, or, with inner [l, l] not NULL, inner = (Xc q)' (Xc q). */
static void apply_here(const ki_rows *rows, const double *mean, const double *q, int64_t l, double *block,
                       double *z, double *y, double *inner) {
    const int64_t dim = rows->dim;
    for (int64_t i = 0; i < rows->n; i += BLOCK) {
        const int64_t n = block_rows(rows, i);
        const double beta = i == 0 ? 0 : 1;
        load_block(rows, mean, i, n, block);
        multiply(&(product){false, n, l, dim, block, q, dim, l, l, 0, z});
        if (inner)
            multiply(&(product){true, l, l, n, z, z, l, l, l, beta, inner});
        else
            multiply(&(product){true, dim, l, n, block, z, dim, l, l, beta, y});
    }
}

typedef struct applying {
    const ki_rows *rows;
    const ki_knn_device *device; /* NULL, or one that lacked the memory: the host does the work */
    const double *mean;
    int64_t l;
    double *block, *z; /* of the host */
} applying;

static kith_status apply_covariance(applying *a, const double *q, double *y, double *inner, kith_error *err) {
    kith_status status = KITH_ENOMEM;
    const ki_knn_device *d = a->device;
    if (has_device(d, a->rows))
        status = d->type->spread(d->backend, a->rows, a->mean, q, a->l, inner ? NULL : y, inner, err);
    if (status != KITH_ENOMEM) return status;
    a->device = NULL;
    if (!a->block) {
        const size_t dim = (size_t)a->rows->dim;
        KI_TRY(ki_blas_prepare(n_stripes_of(a->rows->dim > BLOCK ? a->rows->dim : BLOCK), err));
        KI_TRY(ki_alloc_or(&a->block, BLOCK * dim, sizeof *a->block, "centred rows", err));
        KI_TRY(ki_alloc_or(&a->z, BLOCK * (size_t)a->l, sizeof *a->z, "projected rows", err));
    }
    apply_here(a->rows, a->mean, q, a->l, a->block, a->z, y, inner);
    return KITH_OK;
}

static kith_status fit_randomized(const ki_rows *rows, const ki_knn_device *device, int64_t m, uint64_t seed,
                                  kith_pca *pca, kith_error *err) {
    kith_status status = KITH_OK;
    const int64_t dim = rows->dim, most = rows->n < dim ? rows->n : dim;
    const int64_t l = m + SPARE < most ? m + SPARE : most;
    double *q = NULL, *y = NULL, *inner = NULL, *vector = NULL;
    applying a = {.rows = rows, .device = device, .mean = pca->mean.data, .l = l};
    KI_CHECK(ki_alloc_or(&q, (size_t)dim * (size_t)l, sizeof *q, "the subspace", err));
    KI_CHECK(ki_alloc_or(&y, (size_t)dim * (size_t)l, sizeof *y, "the subspace", err));
    KI_CHECK(ki_alloc_or(&inner, (size_t)l * (size_t)l, sizeof *inner, "the small matrix", err));
    KI_CHECK(ki_alloc_or(&vector, (size_t)m * (size_t)l, sizeof *vector, "small eigenvectors", err));
    ki_rng rng = ki_rng_at(seed, KI_RNG_PCA, 0, 0);
    for (int64_t i = 0; i < dim * l; i++) q[i] = ki_rng_normal(&rng);
    for (int power = 0; power < N_POWERS; power++) {
        KI_CHECK(apply_covariance(&a, q, y, NULL, err));
        memcpy(q, y, (size_t)(dim * l) * sizeof *q);
        KI_CHECK(orthonormalize(q, dim, l, err));
    }
    KI_CHECK(apply_covariance(&a, q, NULL, inner, err));
    for (int64_t i = 0; i < l * l; i++) inner[i] /= (double)(rows->n - 1);
    KI_CHECK(eigen(inner, l, m, pca->variance.data, vector, err));
    /* components [m, dim] = vector [m, l] q' */
    double *to = pca->components.data;
    for (int64_t j = 0; j < m; j++) {
        for (int64_t k = 0; k < dim; k++) {
            double sum = 0;
            for (int64_t i = 0; i < l; i++) sum += vector[j * l + i] * q[k * l + i];
            to[j * dim + k] = sum;
        }
    }
done:
    ki_free(a.block);
    ki_free(a.z);
    ki_free(q);
    ki_free(y);
    ki_free(inner);
    ki_free(vector);
    return status;
}

/* The mean, and the total variance. */
static double mean_here(const ki_rows *rows, double *mean, double *row) {
    memset(mean, 0, (size_t)rows->dim * sizeof *mean);
    for (int64_t i = 0; i < rows->n; i++) {
        ki_rows_get(rows, i, row);
        for (int64_t k = 0; k < rows->dim; k++) mean[k] += row[k];
    }
    for (int64_t k = 0; k < rows->dim; k++) mean[k] /= (double)rows->n;
    double sum = 0;
    for (int64_t i = 0; i < rows->n; i++) {
        ki_rows_get(rows, i, row);
        for (int64_t k = 0; k < rows->dim; k++) sum += (row[k] - mean[k]) * (row[k] - mean[k]);
    }
    return sum / (double)(rows->n - 1);
}

static kith_status find_mean(const ki_rows *rows, const ki_knn_device *device, kith_pca *pca,
                             kith_error *err) {
    kith_status status = KITH_ENOMEM;
    double *row = NULL, sum = 0;
    KI_TRY(ki_alloc_or(&row, (size_t)rows->dim, sizeof *row, "a row", err));
    if (has_device(device, rows))
        status = device->type->mean(device->backend, rows, pca->mean.data, row, err);
    for (int64_t k = 0; status == KITH_OK && k < rows->dim; k++) sum += row[k];
    pca->total_variance = sum / (double)(rows->n - 1);
    if (status == KITH_ENOMEM) {
        pca->total_variance = mean_here(rows, pca->mean.data, row);
        status = KITH_OK;
    }
    ki_free(row);
    return status;
}

/* The sign of an eigenvector is arbitrary: make the largest entry positive. */
static void fix_signs(double *components, int64_t m, int64_t dim) {
    for (int64_t j = 0; j < m; j++) {
        double *v = components + j * dim;
        int64_t at = 0;
        for (int64_t k = 1; k < dim; k++) at = fabs(v[k]) > fabs(v[at]) ? k : at;
        if (v[at] >= 0) continue;
        for (int64_t k = 0; k < dim; k++) v[k] = -v[k];
    }
}

kith_status ki_pca_fit(const ki_rows *given, const ki_knn_device *device, const kith_pca_options *options,
                       kith_pca *ret_pca, kith_error *err) {
    kith_status status = KITH_OK;
    const ki_rows rows = *given;
    const int64_t m = options->n_components, most = rows.n - 1 < rows.dim ? rows.n - 1 : rows.dim;
    if (rows.n < 2)
        return ki_fail(err, KITH_EINVAL, "%lld rows; principal components want at least 2",
                       (long long)rows.n);
    if (m < 1 || m > most)
        return ki_fail(err, KITH_EINVAL, "%lld components of %lld rows of %lld values; wanted 1 to %lld",
                       (long long)m, (long long)rows.n, (long long)rows.dim, (long long)most);
    if (rows.dim > INT32_MAX / 2)
        return ki_fail(err, KITH_ESHAPE, "rows of %lld values are too long", (long long)rows.dim);
    kith_pca pca = {0};
    KI_CHECK(kith_array_init(KITH_F64, 1, (int64_t[]){rows.dim}, &pca.mean, err));
    KI_CHECK(kith_array_init(KITH_F64, 1, (int64_t[]){m}, &pca.variance, err));
    KI_CHECK(kith_array_init(KITH_F64, 2, (int64_t[]){m, rows.dim}, &pca.components, err));
    KI_CHECK(find_mean(&rows, device, &pca, err));
    const bool is_exact = options->method == KITH_PCA_EXACT ||
                          (options->method == KITH_PCA_AUTO && (rows.dim <= MOST_EXACT || m > most / 3));
    if (is_exact)
        KI_CHECK(fit_exact(&rows, device, m, &pca, err));
    else
        KI_CHECK(fit_randomized(&rows, device, m, options->seed, &pca, err));
    fix_signs(pca.components.data, m, rows.dim);
    pca.whiten = options->whiten;
    *ret_pca = pca;
    pca = (kith_pca){0};
done:
    kith_pca_release(&pca);
    return status;
}

static double whitening(const kith_pca *pca, int64_t component) {
    const double variance = ((const double *)pca->variance.data)[component];
    return variance > 1e-12 * pca->total_variance ? 1 / sqrt(variance) : 0;
}

/* to [n, m] = Xc by', by [m, dim]; on the host. */
static kith_status project(const ki_rows *rows, const double *mean, const double *by, int64_t m, float *to,
                           kith_error *err) {
    kith_status status;
    const int64_t dim = rows->dim;
    double *block = NULL, *z = NULL, *transposed = NULL;
    KI_CHECK(ki_blas_prepare(n_stripes_of(rows->n < BLOCK ? rows->n : BLOCK), err));
    KI_CHECK(ki_alloc_or(&block, BLOCK * (size_t)dim, sizeof *block, "centred rows", err));
    KI_CHECK(ki_alloc_or(&z, BLOCK * (size_t)m, sizeof *z, "projected rows", err));
    KI_CHECK(ki_alloc_or(&transposed, (size_t)dim * (size_t)m, sizeof *transposed, "components", err));
    for (int64_t j = 0; j < m; j++) {
        for (int64_t k = 0; k < dim; k++) transposed[k * m + j] = by[j * dim + k];
    }
    for (int64_t i = 0; i < rows->n; i += BLOCK) {
        const int64_t n = block_rows(rows, i);
        load_block(rows, mean, i, n, block);
        multiply(&(product){false, n, m, dim, block, transposed, dim, m, m, 0, z});
        for (int64_t k = 0; k < n * m; k++) to[i * m + k] = (float)z[k];
    }
done:
    ki_free(block);
    ki_free(z);
    ki_free(transposed);
    return status;
}

kith_status ki_pca_apply(const kith_pca *pca, const ki_rows *rows, const ki_knn_device *device,
                         kith_array *ret_projected, kith_error *err) {
    kith_status status;
    const int64_t m = pca->components.dim[0], dim = pca->components.dim[1];
    if (rows->dim != dim)
        return ki_fail(err, KITH_ESHAPE, "rows have %lld values; the components were fitted to %lld",
                       (long long)rows->dim, (long long)dim);
    kith_array projected = {0};
    double *by = NULL;
    KI_CHECK(kith_array_init(KITH_F32, 2, (int64_t[]){rows->n, m}, &projected, err));
    KI_CHECK(ki_alloc_or(&by, (size_t)m * (size_t)dim, sizeof *by, "components", err));
    for (int64_t j = 0; j < m; j++) {
        const double factor = pca->whiten ? whitening(pca, j) : 1;
        for (int64_t k = 0; k < dim; k++)
            by[j * dim + k] = factor * ((const double *)pca->components.data)[j * dim + k];
    }
    status = KITH_ENOMEM;
    if (has_device(device, rows))
        status = device->type->project(device->backend, rows, pca->mean.data, by, m, projected.data, err);
    if (status == KITH_ENOMEM) status = project(rows, pca->mean.data, by, m, projected.data, err);
    if (status != KITH_OK) goto done;
    *ret_projected = projected;
    projected = (kith_array){0};
done:
    kith_array_release(&projected);
    ki_free(by);
    return status;
}

KI_OPTIONS_INIT(kith_pca_options, 0)

kith_status kith_pca_fit(const kith_array *array, const kith_pca_options *options, kith_pca *ret_pca,
                         kith_error *err) {
    KI_NEED(err, array, ret_pca);
    ki_rows rows;
    KI_OPTIONS_TAKE(kith_pca_options, o, options, err);
    KI_TRY(ki_rows_init(array, "rows", &rows, err));
    return ki_pca_fit(&rows, NULL, &o, ret_pca, err);
}

kith_status kith_pca_apply(const kith_pca *pca, const kith_array *array, kith_array *ret_projected,
                           kith_error *err) {
    KI_NEED(err, pca, array, ret_projected);
    ki_rows rows;
    KI_TRY(ki_rows_init(array, "rows", &rows, err));
    return ki_pca_apply(pca, &rows, NULL, ret_projected, err);
}

void kith_pca_release(kith_pca *pca) {
    if (!pca) return;
    kith_array_release(&pca->mean);
    kith_array_release(&pca->components);
    kith_array_release(&pca->variance);
    *pca = (kith_pca){0};
}
