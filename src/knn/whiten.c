/* Whitening of directions, by the PCA of rows and of their opposites: so its mean is 0, and its variances are second moments. */
#include "knn/whiten.h"

#include <math.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "kith/knn.h"

static kith_status make_opposites(const float *rows, int64_t n, int64_t dim, kith_array *ret,
                                  kith_error *err) {
    KI_TRY(kith_array_init(KITH_F32, 2, (int64_t[]){2 * n, dim}, ret, err));
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
    KI_CHECK(make_opposites(rows, n, dim, &both, err));
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
