/* Fitting a coder: a sample of rows, their k-means centroids or their mean, turned by the rotation. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "knn/panels.h"
#include "knn/rows.h"
#include "search/scan/coder_parts.h"

enum {
    FEW_ROWS = 4096,    /* below, one list: a scan of all codes takes less than ranking lists */
    SAMPLE_A_LIST = 40, /* rows that k-means sees for each list */
    ITERATIONS = 8,
    MEAN_SAMPLE = 65536,
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

/* Centroids of the sample, padded and rotated, to their place. */
static kith_status place_lists(ki_coder *c, const kith_array *sample, const ki_coder_options *o,
                               kith_error *err) {
    kith_kmeans_result found = {0};
    const size_t bytes = (size_t)c->dim * sizeof(float);
    memset(c->centroid, 0, (size_t)(c->n_lists * c->padded) * sizeof(float));
    if (c->n_lists == 1) {
        mean_of(sample, c->centroid);
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
        for (int64_t l = 0; l < c->n_lists; l++)
            memcpy(c->centroid + l * c->padded, (const float *)found.centroids.data + l * c->dim, bytes);
        kith_kmeans_result_release(&found);
    }
    for (int64_t l = 0; l < c->n_lists; l++) ki_rotation_apply(&c->rotation, c->centroid + l * c->padded);
    ki_coder_finish(c);
    return KITH_OK;
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
    c->bits = options->bits ? options->bits : 1;
    c->dim = rows->dim;
    c->n_lists = options->n_lists ? options->n_lists : ki_coder_lists_for(rows->n);
    c->seed = options->seed;
    int64_t n_sample = options->n_sample;
    if (n_sample <= 0) n_sample = c->n_lists == 1 ? MEAN_SAMPLE : c->n_lists * SAMPLE_A_LIST;
    if (n_sample < c->n_lists) n_sample = c->n_lists;
    if (n_sample > rows->n) n_sample = rows->n;
    KI_CHECK(ki_coder_init(c, err));
    KI_CHECK(read_sample(c, rows, n_sample, &sample, err));
    KI_CHECK(place_lists(c, &sample, options, err));
    ki_coder_seal(c);
    *ret_coder = c;
    c = NULL;
done:
    kith_array_release(&sample);
    ki_coder_free(c);
    return status;
}
