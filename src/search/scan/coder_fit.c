/* Fitting a coder: a sample of rows, their k-means centroids or their mean, the axes of their spread around those, and how the
 * bits of a code are shared out among the axes. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "knn/panels.h"
#include "knn/rows.h"
#include "search/scan/coder_parts.h"

enum {
    FEW_ROWS = 4096,    /* below, one list: a scan of all codes takes less than ranking lists */
    SAMPLE_A_LIST = 25, /* rows that k-means sees for each list */
    ITERATIONS = 5,
    MEAN_SAMPLE = 65536,
    AXIS_ROWS = 16,      /* rows for each axis, at most … */
    LEAST_AXIS_ROWS = 4, /* … and at least */
};

int64_t ki_coder_lists_for(int64_t n) {
    if (n < FEW_ROWS) return 1;
    const int64_t lists = (int64_t)(4 * sqrt((double)n)) / KI_LIST_PANEL * KI_LIST_PANEL;
    return lists < KI_CODER_MOST_LISTS ? lists : KI_CODER_MOST_LISTS;
}

/* Of the rows left, each is as likely as another to be one of those still wanted. */
void ki_coder_draw(int64_t n, int64_t n_drawn, uint64_t seed, int64_t *ret_rows) {
    ki_rng rng = ki_rng_at(seed, KI_RNG_SEARCH, 1, 0);
    int64_t n_got = 0;
    for (int64_t i = 0; n_got < n_drawn; i++) {
        if (ki_rng_double(&rng) * (double)(n - i) < (double)(n_drawn - n_got)) ret_rows[n_got++] = i;
    }
}

static kith_status read_sample(const ki_coder *c, const ki_row_source *rows, int64_t n_sample,
                               kith_array *ret_sample, kith_error *err) {
    kith_status status = KITH_OK;
    int64_t *number = NULL;
    kith_array sample = {0};
    KI_CHECK(ki_alloc_or(&number, (size_t)n_sample, sizeof *number, "sample", err));
    KI_CHECK(kith_array_init(KITH_F32, 2, (int64_t[]){n_sample, rows->dim}, &sample, err));
    ki_coder_draw(rows->n, n_sample, c->seed, number);
    float *x = sample.data;
    KI_CHECK(ki_source_read(rows, number, n_sample, x, err));
    const ki_rows all = {KITH_F32, n_sample, rows->dim, x, NULL};
    for (int64_t i = 0; c->metric == KITH_COSINE && i < n_sample; i++) {
        const double norm = fmax(sqrt(ki_rows_dot(&all, i, &all, i)), KI_LEAST_NORM);
        for (int64_t k = 0; k < rows->dim; k++)
            x[i * rows->dim + k] = (float)((double)x[i * rows->dim + k] / norm);
    }
    *ret_sample = sample;
    sample = (kith_array){0};
done:
    kith_array_release(&sample);
    ki_free(number);
    return status;
}

static void mean_of(const kith_array *sample, float *ret) {
    const int64_t n = sample->dim[0], dim = sample->dim[1];
    const float *x = sample->data;
    for (int64_t k = 0; k < dim; k++) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++) sum += (double)x[i * dim + k];
        ret[k] = (float)(sum / (double)n);
    }
}

/* Centroids [n_lists, dim] of the sample; the sample becomes its rows less their centroids. */
static kith_status find_lists(const ki_coder *c, kith_array *sample, const ki_coder_options *o,
                              float *ret_centroids, kith_error *err) {
    kith_kmeans_result found = {0};
    const int64_t n = sample->dim[0], dim = sample->dim[1];
    float *x = sample->data;
    if (c->n_lists == 1) {
        mean_of(sample, ret_centroids);
    } else {
        kith_kmeans_options k;
        kith_kmeans_options_init(&k, sizeof k);
        k.n_clusters = c->n_lists;
        k.n_iterations = ITERATIONS;
        k.seed = c->seed;
        k.normalize = false;
        k.is_random_start = true;
        k.progress = o->progress;
        k.user = o->user;
        KI_TRY(kith_kmeans(sample, &k, &found, err));
        memcpy(ret_centroids, found.centroids.data, (size_t)(c->n_lists * dim) * sizeof(float));
    }
    for (int64_t i = 0; i < n; i++) {
        const float *center = ret_centroids + (c->n_lists == 1 ? 0 : found.cluster[i] * dim);
        for (int64_t k = 0; k < dim; k++) x[i * dim + k] -= center[k];
    }
    kith_kmeans_result_release(&found);
    return KITH_OK;
}

/* The principal axes of what is left of the sample. Rows that are too few for them, or too long, have none. */
static kith_status find_axes(const kith_array *sample, kith_pca *ret_pca, kith_error *err) {
    const int64_t dim = sample->dim[1];
    kith_array part = *sample;
    kith_pca_options options;
    if (part.dim[0] > AXIS_ROWS * dim) part.dim[0] = AXIS_ROWS * dim;
    if (part.dim[0] < LEAST_AXIS_ROWS * dim || dim > KI_CODER_MOST_AXES || dim <= 16) return KITH_OK;
    kith_pca_options_init(&options, sizeof options);
    options.n_components = dim;
    options.method = KITH_PCA_EXACT;
    return kith_pca_fit(&part, &options, ret_pca, err);
}

static void place_axes(ki_coder *c, const kith_pca *pca) {
    const double *axis = pca->components.data, *variance = pca->variance.data;
    for (int64_t j = 0; j < c->dim; j++) {
        c->variance[j] = (float)fmax(0, variance[j]);
        for (int64_t k = 0; k < c->dim; k++)
            c->axes[(j / KI_AXIS_PANEL * c->dim + k) * KI_AXIS_PANEL + j % KI_AXIS_PANEL] =
                (float)axis[j * c->dim + k];
    }
}

/* All that is learned from the sample, which is used up. */
static kith_status learn(ki_coder *c, kith_array *sample, const ki_coder_options *o, kith_error *err) {
    kith_status status = KITH_OK;
    float *centroids = NULL;
    kith_pca pca = {0};
    KI_CHECK(
        ki_alloc_or(&centroids, (size_t)c->n_lists, (size_t)c->dim * sizeof *centroids, "centroids", err));
    KI_CHECK(find_lists(c, sample, o, centroids, err));
    KI_CHECK(find_axes(sample, &pca, err));
    KI_CHECK(ki_coder_init(c, pca.components.data != NULL, err));
    if (c->axes) place_axes(c, &pca);
    ki_coder_share_bits(c, o->bits ? o->bits : 1);
    if (c->coded == c->padded)
        ki_coder_drop_axes(c); /* they would not help, and turning to them takes time */
    KI_CHECK(ki_coder_rotate(c, err));
    for (int64_t l = 0; l < c->n_lists; l++) {
        ki_coder_align(c, centroids + l * c->dim, c->centroid + l * c->padded);
        ki_rotation_apply(&c->rotation, c->centroid + l * c->padded);
    }
    ki_coder_finish(c);
done:
    kith_pca_release(&pca);
    ki_free(centroids);
    return status;
}

static kith_status check(const ki_row_source *rows, const ki_coder_options *o, kith_error *err) {
    if (rows->n < 1) return ki_fail(err, KITH_EINVAL, "no rows to learn codes from; wanted at least 1");
    if (rows->dim < 1 || rows->dim > KI_CODER_MOST_DIM)
        return ki_fail(err, KITH_EINVAL, "rows of %lld values; wanted 1 to %d", (long long)rows->dim,
                       KI_CODER_MOST_DIM);
    if (o->bits < 0 || o->bits > KI_CODER_MOST_BITS)
        return ki_fail(err, KITH_EINVAL, "codes of %d bits; wanted 1 to %d", o->bits, KI_CODER_MOST_BITS);
    if (o->n_lists < 0 || o->n_lists > KI_CODER_MOST_LISTS || o->n_lists > rows->n)
        return ki_fail(err, KITH_EINVAL, "%lld lists for %lld rows; wanted 1 to %lld", (long long)o->n_lists,
                       (long long)rows->n,
                       (long long)(rows->n < KI_CODER_MOST_LISTS ? rows->n : KI_CODER_MOST_LISTS));
    return KITH_OK;
}

kith_status ki_coder_fit(const ki_row_source *rows, const ki_coder_options *options, ki_coder **ret_coder,
                         kith_error *err) {
    kith_status status = KITH_OK;
    kith_array sample = {0};
    ki_coder *c = NULL;
    KI_TRY(check(rows, options, err));
    KI_CHECK(ki_zalloc_or(&c, 1, sizeof *c, "coder", err));
    c->metric = options->metric;
    c->dim = rows->dim;
    c->n_lists = options->n_lists ? options->n_lists : ki_coder_lists_for(rows->n);
    c->seed = options->seed;
    int64_t n_sample = options->n_sample;
    if (n_sample <= 0) n_sample = c->n_lists == 1 ? MEAN_SAMPLE : c->n_lists * SAMPLE_A_LIST;
    if (n_sample < c->n_lists) n_sample = c->n_lists;
    if (n_sample > rows->n) n_sample = rows->n;
    KI_CHECK(read_sample(c, rows, n_sample, &sample, err));
    KI_CHECK(learn(c, &sample, options, err));
    ki_coder_seal(c);
    *ret_coder = c;
    c = NULL;
done:
    kith_array_release(&sample);
    ki_coder_free(c);
    return status;
}
