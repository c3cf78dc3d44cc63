/* Whitening of directions, by the PCA of rows and of their opposites: so its mean is 0, and its variances are second moments. */
#include "knn/whiten.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "kith/knn.h"

static kith_status make_opposites(const float *rows, int64_t n, int64_t dim, int64_t least, kith_array *ret,
                                  kith_error *err) {
    const int64_t n_made = 2 * n < least ? least : 2 * n; /* further rows are zeros, which change no moment */
    KI_TRY(kith_array_init(KITH_F32, 2, (int64_t[]){n_made, dim}, ret, err));
    memset(ret->data, 0, (size_t)n_made * (size_t)dim * sizeof(float));
    float *x = ret->data;
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t k = 0; k < dim; k++) sum += (double)rows[i * dim + k] * (double)rows[i * dim + k];
        const double factor = sum > 0 ? 1 / sqrt(sum) : 0;
        for (int64_t k = 0; k < dim; k++) {
            const float value = (float)(factor * (double)rows[i * dim + k]);
            x[2 * i * dim + k] = value;
            x[(2 * i + 1) * dim + k] = -value;
        }
    }
    return KITH_OK;
}

/* map = rest I + sum over j of (gain_j - rest) u_j u_j^T */
typedef struct assembly {
    int64_t n, dim;
    const double *u, *gain; /* [n, dim], [n] */
    double rest, *map;
} assembly;

static void assemble_rows(void *context, int64_t begin, int64_t end) {
    const assembly *a = context;
    for (int64_t r = begin; r < end; r++) {
        double *row = a->map + r * a->dim;
        for (int64_t c = 0; c < a->dim; c++) row[c] = r == c ? a->rest : 0;
        for (int64_t j = 0; j < a->n; j++) {
            const double *u = a->u + j * a->dim, factor = (a->gain[j] - a->rest) * u[r];
            for (int64_t c = 0; c < a->dim; c++) row[c] += factor * u[c];
        }
    }
}

kith_status ki_whiten_map(const float *rows, int64_t n, int64_t dim, double *ret_map, kith_error *err) {
    kith_status status;
    kith_array both = {0};
    kith_pca pca = {0};
    if (n < 2) return ki_fail(err, KITH_EINVAL, "%lld rows to whiten by; wanted at least 2", (long long)n);
    KI_CHECK(make_opposites(rows, n, dim, 0, &both, err));
    const kith_pca_options options = {
        .size = sizeof options, .n_components = 2 * n - 1 < dim ? 2 * n - 1 : dim, .method = KITH_PCA_EXACT};
    KI_CHECK(kith_pca_fit(&both, &options, &pca, err));
    const double moment = (double)(2 * n - 1) / (double)(2 * n); /* variances are sums over n - 1 */
    double *l = pca.variance.data;
    const double s = dim > 1 ? moment * (pca.total_variance - l[0]) / (double)(dim - 1) : 0;
    if (s <= 1e-12 * pca.total_variance) {
        status = ki_fail(err, KITH_EINVAL, "the rows to whiten by all have one direction");
        goto done;
    }
    for (int64_t j = 0; j < options.n_components; j++)
        l[j] = sqrt(s / (moment * l[j] + KI_WHITEN_SOFTNESS * s));
    assembly a = {options.n_components, dim, pca.components.data, l, sqrt(1 / KI_WHITEN_SOFTNESS), ret_map};
    ki_parallel_for(dim, 1, assemble_rows, &a);
done:
    kith_array_release(&both);
    kith_pca_release(&pca);
    return status;
}

kith_status ki_whiten_axes(const float *rows, int64_t n, int64_t dim, int64_t n_axes, bool is_white,
                           double *ret_map, kith_error *err) {
    kith_status status;
    kith_array both = {0};
    kith_pca pca = {0};
    if (n < 2) return ki_fail(err, KITH_EINVAL, "%lld rows to find axes of; wanted at least 2", (long long)n);
    KI_CHECK(make_opposites(rows, n, dim, dim + 1, &both, err));
    const kith_pca_options options = {
        .size = sizeof options, .n_components = n_axes, .method = KITH_PCA_EXACT};
    KI_CHECK(kith_pca_fit(&both, &options, &pca, err));
    /* Variances are sums over rows - 1; what matters is their ratio to the others. */
    const double *l = pca.variance.data, *u = pca.components.data;
    const double s = dim > 1 ? (pca.total_variance - l[0]) / (double)(dim - 1) : 0;
    if (s <= 1e-12 * pca.total_variance) {
        status = ki_fail(err, KITH_EINVAL, "the rows to find axes of all have one direction");
        goto done;
    }
    for (int64_t j = 0; j < n_axes; j++) {
        const double moment = l[j] > 0 ? l[j] : 0;
        const double gain = is_white ? sqrt(s / (moment + KI_WHITEN_SOFTNESS * s)) : 1;
        for (int64_t c = 0; c < dim; c++) ret_map[j * dim + c] = gain * u[j * dim + c];
    }
done:
    kith_array_release(&both);
    kith_pca_release(&pca);
    return status;
}
